"""One run: from the request to the completion, with nothing left to do afterwards.

The request is a JSON object: `program`, `seed` (an integer) and `namespaces`, each with `global`, `members` (name to
parameter names) and `errorClass` (`name`, `property`) or null. The completion is a JSON array: `["value", value]`,
`["nothing"]`, or `["error", kind, message]`.
"""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from .channel import Channel
from .dialect import FULL_PYTHON, Dialect
from .jsontext import LossyValueError, decode, encode
from .loop import GuestLoop, install
from .namespaces import CallLedger, make_error_class, make_namespace
from .output import capture_output
from .program import FILENAME, Returned
from .report import describe, remember_source

__all__ = ["run"]


def run(channel: Channel, request: str, dialect: Dialect = FULL_PYTHON) -> str:
    """Runs one program and returns its completion as JSON text.

    Whatever the program raises is told in the completion; nothing is raised for it.

    Args:
        channel: the way to the host.
        request: what to run, as JSON text.
        dialect: the language that the program is written in.
    """
    told: Mapping[str, Any] = decode(request)  # type: ignore[assignment]
    random.seed(told["seed"])
    capture_output(channel.emit)
    loop = GuestLoop(channel)
    install(loop)
    source: str = told["program"]
    remember_source(source)
    try:
        code, needs = dialect.compile(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _failure("exception", describe(error))
    ledger = CallLedger()
    module = types.ModuleType("__main__")
    namespace = vars(module)
    namespace["__builtins__"] = dialect.builtins()
    namespace.update(needs)
    for one in told["namespaces"]:
        named = one["errorClass"]
        fail: Callable[[str, str], Exception] = _plain_failure
        if named is not None:
            fail = namespace[named["name"]] = make_error_class(named["name"], named["property"])
        namespace[one["global"]] = make_namespace(one["global"], one["members"], fail, loop, ledger)
    sys.modules["__main__"] = module
    exec(code, namespace)
    try:
        outcome = loop.run_program(_guarded(namespace.pop(FILENAME)))  # type: ignore[arg-type]
    except BaseException as error:
        outcome = _Raised(error)
    return _complete(outcome, ledger.never_awaited() + loop.unsent())


def _plain_failure(message: str, _member: str) -> Exception:
    """What a namespace without an error class of its own raises (contract F13)."""
    return RuntimeError(message)


class _Raised:
    """What the program raised."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _guarded(main: Callable[[], Coroutine[Any, Any, object]]) -> object:
    """Runs the program as a task that cannot raise: SystemExit and its kin mean something to loops."""
    try:
        return await main()
    except BaseException as error:
        return _Raised(error)


def _complete(returned: object, forgotten: list[str]) -> str:
    if isinstance(returned, _Raised):
        return _failure("exception", describe(returned.error))
    if forgotten:
        shown = "; ".join(forgotten[:5]) + ("; ..." if len(forgotten) > 5 else "")
        plural = "these calls were" if len(forgotten) > 1 else "this call was"
        return _failure("exception", f"{plural} never awaited and did not run: {shown}. Write `await` before the call.")
    if not isinstance(returned, Returned) or (returned.value is None and not returned.explicit):
        return '["nothing"]'
    try:
        return f'["value",{encode(returned.value, "the returned value")}]'
    except LossyValueError as lossy:
        return _failure("invalid-output", f"program completion must be lossless JSON: {lossy}")


def _failure(kind: str, message: str) -> str:
    safe = message.encode("utf-8", "backslashreplace").decode("utf-8")
    return f'["error",{encode(kind, "kind")},{encode(safe, "message")}]'
