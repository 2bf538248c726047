"""Are these bindings ones that a program can be given? Checked before anything runs (contract F7 to F11)."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from .seam import ErrorClass, Namespace, SandboxMisuseError

__all__ = ["check_bindings"]

_GLOBAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DUNDER = re.compile(r"__.+__\Z", re.DOTALL)

_ECMASCRIPT = frozenset(
    # Words, not a list of a hundred quotes.
    """
    arguments async await break case catch class const continue debugger default delete do else enum eval export
    extends false finally for function if implements import in instanceof interface let new null of package private
    protected public return static super switch this throw true try typeof undefined var void while with yield
    NaN Infinity
    """.split()  # noqa: SIM905
)
RESERVED = _ECMASCRIPT | frozenset(keyword.kwlist) | {"match", "type", "_"}
"""Words that are no global names in either language of the seam."""

BACKEND_GLOBALS = frozenset({"console", "__builtins__", "__name__", "__main__", "__debug__", "asyncio"})
ERROR_PROPERTIES = frozenset({"name", "message", "stack", "args", "with_traceback", "add_note"})


def check_bindings(namespaces: Sequence[Namespace]) -> None:
    """Checks the namespaces of a request.

    Raises:
        SandboxMisuseError: for a name that a program cannot have, or that is taken.
    """
    taken: set[str] = set()
    for namespace in namespaces:
        _check_global(namespace.name, "binding global", taken)
    for namespace in namespaces:
        if namespace.error_class is not None:
            _check_error_class(namespace.error_class, taken)
        for member in namespace.members:
            if not _is_text(member):
                raise SandboxMisuseError(
                    f"a member name of {namespace.name} must be a string without lone surrogates, not {member!r}"
                )


def _is_text(name: object) -> bool:
    """Tells whether this is a string that can cross to a program (ruling 31)."""
    return type(name) is str and _SURROGATE.search(name) is None


def _check_global(name: str, what: str, taken: set[str]) -> None:
    if not isinstance(name, str) or not _GLOBAL.match(name):
        raise SandboxMisuseError(f"{what} {name!r} must be an ASCII identifier")
    if name in RESERVED:
        raise SandboxMisuseError(f"{what} {name!r} is a reserved word")
    if name in BACKEND_GLOBALS:
        raise SandboxMisuseError(f"{what} {name!r} belongs to the sandbox")
    if name in taken:
        raise SandboxMisuseError(f"{what} {name!r} is declared twice")
    taken.add(name)


def _check_error_class(error_class: ErrorClass, taken: set[str]) -> None:
    _check_global(error_class.name, "error class", taken)
    member_property = error_class.member_property
    if (
        not member_property
        or not _is_text(member_property)
        or member_property in ERROR_PROPERTIES
        or _DUNDER.match(member_property)
    ):
        raise SandboxMisuseError(
            f"error class {error_class.name!r} cannot keep the member's name in {member_property!r}"
        )
