"""One run: from the request to the completion, with nothing left to do afterwards.

The request is a JSON object: `program`, `seed` (an integer), `limits` (`queuedBytes` of calls that may be unanswered at
once, `outputBytes`) and `namespaces`, each with `global`, `members` (name to parameter names) and `errorClass` (`name`,
`property`) or null. The completion is a JSON array: `["value", value]`,
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
from .intrinsics import INTRINSICS
from .jsontext import LossyValueError, decode, encode, exceeds
from .loop import GuestLoop, install
from .namespaces import CallLedger, make_error_class, make_namespace
from .output import capture_output
from .program import FILENAME, Returned
from .report import (
    World,
    describe,
    describe_forgotten,
    remember_source,
    suspended_at,
    tell_as_a_program_may_see,
    tell_of_coroutines,
)

__all__ = ["run"]

__builtins__ = INTRINSICS

_RESERVE = [bytearray(1 << 20)]
"""Memory that no program gets: when one has used up all of its own, there must be some left to say so.

It is there before the run, untouched, so that no run pays for it.
"""


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
    limits: Mapping[str, int] = told["limits"]
    loop = GuestLoop(channel, limits["queuedBytes"])
    install(loop)
    tell_as_a_program_may_see()
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
    main = namespace.pop(FILENAME)()  # type: ignore[operator]
    try:
        outcome = loop.run_program(_guarded(main))
    except BaseException as error:
        error.__traceback__ = suspended_at(main)  # the program is in the middle of a wait
        _RESERVE.clear()
        outcome = _Raised(error)
    forgotten = ledger.never_awaited() + loop.unsent()
    return _complete(outcome, forgotten, limits["outputBytes"], World(namespace, dialect.modules()))


def _plain_failure(message: str, _member: str) -> Exception:
    """What a namespace without an error class of its own raises (contract F13)."""
    return RuntimeError(message)


class _Raised:
    """What the program raised."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _guarded(main: Coroutine[Any, Any, object]) -> object:
    """Runs the program as a task that cannot raise: SystemExit and its kin mean something to loops."""
    try:
        return await main
    except BaseException as error:
        _RESERVE.clear()
        return _Raised(error)


def _complete(returned: object, forgotten: list[str], most_bytes: int, world: World) -> str:
    if isinstance(returned, _Raised):
        return _failure("exception", describe(returned.error, world))
    if forgotten:
        return _failure("exception", describe_forgotten(forgotten))
    tell_of_coroutines(world)
    if not isinstance(returned, Returned) or (returned.value is None and not returned.explicit):
        return '["nothing"]'
    return _encoded(returned.value, most_bytes)


def _encoded(value: object, most_bytes: int) -> str:
    """Returns the completion for a value; one that is too large is not sent, only told (contract F33, F47)."""
    too_large = _failure("output-limit", "")
    try:
        text = encode(value, "the returned value")
        return too_large if len(text) > most_bytes else f'["value",{text}]'
    except LossyValueError as lossy:
        if exceeds(value, most_bytes):
            return too_large
        return _failure("invalid-output", f"program completion must be lossless JSON: {lossy}")
    except MemoryError as error:
        _RESERVE.clear()
        return too_large if exceeds(value, most_bytes) else _failure("exception", describe(error))


def _failure(kind: str, message: str) -> str:
    safe = message.encode("utf-8", "backslashreplace").decode("utf-8")
    return f'["error",{encode(kind, "kind")},{encode(safe, "message")}]'
