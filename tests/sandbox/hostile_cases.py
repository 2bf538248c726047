"""The hostile programs of `tests/corpus/hostile`, what each may come to, and how an outcome is judged.

A class of outcome is what the host decided: the kind of failure, and the calls that it saw. Guest text is looked at
only where no kind exists: a program that was not compiled, or that met its memory limit, fails as `exception`.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import ptc
from ptc.sandbox.seam import (
    BindingCall,
    BindingError,
    ErrorClass,
    FailureKind,
    JsonValue,
    Member,
    Namespace,
    SandboxResult,
)

__all__ = ["CANARY", "Case", "Watched", "cases", "judge"]

CORPUS = Path(__file__).parent.parent / "corpus" / "hostile"
CANARY = "canary-5d1c0be6f3a74e21"
"""What the environment of the host holds in these tests, and no program may show."""

RULINGS = {
    "proto-060-not-awaited": ("ruling 37: a call that was never awaited fails the program", "exception"),
    "proto-078-return-coroutine": ("ruling 37: a call that was never awaited fails the program", "exception"),
    "proto-105-empty-program": ("ruling 32: falling off the end is an absent result", "nothing"),
    "proto-106-only-comment": ("ruling 32: falling off the end is an absent result", "nothing"),
}
"""Cases whose `expect` a ruling of the contract overrides: which one, and what is expected instead."""

SAME_EVERYWHERE = {"leak-035-set-order-fingerprint": "the hash seed belongs to the snapshot that every run starts from"}
"""Cases that may give one value in all instances, and why."""

FORGED_CALLS = ("AFTER-RETURN", "FROM-DEL", "FROM-FINALIZER", "FROM-RESULT-ENCODER")
"""Arguments of calls that a program tries to make once it has ended."""

_NEVER_COMPILED = re.compile(r"^(?:\w+Error)\b", re.MULTILINE)
_COMPILING = ("SyntaxError", "IndentationError", "TabError", "RecursionError", "MemoryError", "ValueError")


@dataclass(frozen=True)
class Case:
    """One program of the corpus."""

    id: str
    category: str
    source: str
    alternatives: tuple[str, ...]

    @property
    def follows(self) -> bool:
        """Whether it is the second of two that run one after the other."""
        return self.id.endswith("-2of2")

    @property
    def leads(self) -> bool:
        return self.id.endswith("-1of2")

    @property
    def may_time_out(self) -> bool:
        return "timeout" in self.alternatives

    @property
    def must_differ(self) -> bool:
        """Whether fresh instances must give different values."""
        return "distinct" in self.alternatives and self.id not in SAME_EVERYWHERE


def cases(category: str) -> list[Case]:
    """Returns the cases of one category, in the order of the file."""
    return [_case(one) for one in json.loads((CORPUS / f"{category}.json").read_text("utf-8"))]


def _case(told: dict[str, Any]) -> Case:
    source = told["program"]
    if "generate" in told:
        parts = told["generate"]
        source = parts["prefix"] + parts["unit"] * parts["count"] + parts["suffix"]
    expect = (RULINGS[told["id"]][1],) if told["id"] in RULINGS else tuple(_alternatives(told["expect"]))
    return Case(told["id"], told["category"], source, expect)


def _alternatives(expect: str) -> Iterator[str]:
    """Splits at `|`, of which the JSON of an `ok:` may have its own."""
    while expect:
        if expect.startswith("ok:"):
            _value, end = json.JSONDecoder().raw_decode(expect, 3)
        else:
            end = expect.find("|") if "|" in expect else len(expect)
        yield expect[:end]
        rest = expect[end:]
        assert not rest or rest[0] == "|", expect
        expect = rest[1:]


class Watched:
    """The tools of one run, and what was called; `ended` is set once the run has its result."""

    def __init__(self) -> None:
        self.made: list[BindingCall] = []
        self.late: list[BindingCall] = []
        self.denied = 0
        self.ended = False

    def _note(self, call: BindingCall, *parameters: str) -> list[Any]:
        (self.late if self.ended else self.made).append(call)
        arguments = call.arguments
        if not isinstance(arguments, dict) or sorted(arguments) != sorted(parameters):
            raise BindingError(f"{call.member} takes exactly {', '.join(parameters) or 'nothing'}")
        return [arguments[name] for name in parameters]

    async def _echo(self, call: BindingCall) -> JsonValue:
        return self._note(call, "value")[0]

    async def _add(self, call: BindingCall) -> JsonValue:
        a, b = self._note(call, "a", "b")
        if type(a) not in (int, float) or type(b) not in (int, float):
            raise BindingError("add takes two numbers")
        return a + b

    async def _slow(self, call: BindingCall) -> JsonValue:
        (ms,) = self._note(call, "ms")
        if type(ms) not in (int, float) or not 0 <= ms <= 2**31:
            raise BindingError("slow takes a number of milliseconds")
        await anyio.sleep(ms / 1000)
        return None

    async def _boom(self, call: BindingCall) -> JsonValue:
        raise BindingError(str(self._note(call, "message")[0]))

    async def _secret(self, call: BindingCall) -> JsonValue:
        self.denied += 1
        self._note(call)
        raise BindingError("secret is denied by policy")

    def namespace(self) -> Namespace:
        return Namespace(
            "tools",
            {
                "echo": Member(self._echo, ("value",)),
                "add": Member(self._add, ("a", "b")),
                "slow": Member(self._slow, ("ms",)),
                "boom": Member(self._boom, ("message",)),
                "secret": Member(self._secret),
            },
            ErrorClass("ToolCallError", "toolName"),
        )


def judge(case: Case, result: SandboxResult, tools: Watched, *, walled: bool) -> list[str]:
    """Returns what is wrong with an outcome; nothing when the case ended as it must.

    Args:
        case: the case.
        result: what came of it.
        tools: what it called.
        walled: whether the program may see the insides of its own interpreter.
    """
    wrong: list[str] = []
    if not any(_is(alternative, case, result, tools) for alternative in case.alternatives):
        wrong.append(f"expected {'|'.join(case.alternatives)[:200]}")
    shown = _shown(case, result)
    told = json.dumps([result.value_json, result.logs, [call.arguments for call in tools.made]], ensure_ascii=False)
    for marker in ("ESCAPED:", CANARY) if walled else ("ESCAPED:", "PIVOT:", CANARY):
        if marker in shown:
            wrong.append(f"shows {marker}")
    wrong += [f"shows {name} of the host" for name, found in _HOST.items() if found(case.source, shown)]
    wrong += [f"made the call {marker} after its end" for marker in FORGED_CALLS if f'"{marker}' in told]
    if tools.late:
        wrong.append(f"{len(tools.late)} calls were made after the result")
    if "FORGED-RESULT" in (result.value_json or ""):
        wrong.append("its result is forged")
    if not case.leads:
        wrong += [f"has {marker}" for marker in ("LEAK-FROM-RUN-1", "POISONED") if marker in shown]
    elif "POISONED" in (result.value_json or ""):
        wrong.append("has POISONED")
    if not wrong:
        return []
    end = f"{result.error.kind}: {result.error.message[-300:]}" if result.error else (result.value_json or "")[:200]
    return [f"{case.id}: {'; '.join(wrong)} -- ended as {end}"]


def _is(alternative: str, case: Case, result: SandboxResult, tools: Watched) -> bool:
    if alternative.startswith("ok:"):
        return result.error is None and _same(result.value_json, alternative[3:])
    kind = result.error.kind if result.error is not None else None
    message = result.error.message if result.error is not None else ""
    match alternative:
        case "ok" | "distinct":  # whether they are is for whoever runs it three times
            return kind is None
        case "nothing":
            return kind is None and result.value_json is None
        case "contained":
            return kind not in (FailureKind.ABORT, FailureKind.SANDBOX_UNAVAILABLE)
        case "timeout" | "exception" | "invalid-output" | "output-limit":
            return kind == alternative
        case "memory":
            # The interpreter dies of it (F19), or lives on and raises; there the text is all that tells.
            return kind is FailureKind.WORKER_EXIT or (kind is FailureKind.EXCEPTION and "MemoryError" in message)
        case "compile-error":
            never_ran = kind is FailureKind.EXCEPTION and not tools.made and not result.logs
            return never_ran and bool(_NEVER_COMPILED.search(message)) and any(name in message for name in _COMPILING)
        case "denied":
            return kind is FailureKind.EXCEPTION and tools.denied > 0
        case "tool-limit":
            return kind in (FailureKind.PROTOCOL, FailureKind.EXCEPTION) and "unanswered" in message
    raise AssertionError(f"{case.id} expects {alternative!r}, which is no class of outcomes")


def _same(value_json: str | None, expected: str) -> bool:
    """Compares strictly: 1, 1.0 and true differ."""

    def canonical(text: str) -> str:
        return json.dumps(json.loads(text), sort_keys=True)

    return value_json is not None and canonical(value_json) == canonical(expected)


def _shown(case: Case, result: SandboxResult) -> str:
    """Returns all text that a run hands out, without the program's own lines that a traceback quotes."""
    message = result.error.message if result.error is not None else ""
    if message:
        own = {line.strip() for line in re.split(r"[\r\n]", case.source)}
        message = "\n".join(line for line in message.split("\n") if line.strip() not in own)
    return "\n".join([*result.logs, result.value_json or "", message])


def _finder(needle: str) -> Any:
    bounded = re.compile(rf"(?<![\w]){re.escape(needle)}(?![\w])")

    def found(source: str, shown: str) -> bool:
        # What a program has written itself, it may show.
        return needle not in source and needle in shown and bounded.search(shown) is not None

    return found


def _host_facts() -> dict[str, Sequence[str]]:
    return {
        "the path of the package": (str(Path(ptc.__file__).parent),),
        "the path of its interpreter": tuple({sys.prefix, sys.base_prefix, sys.executable} - {"/usr", "/usr/local"}),
        "the home directory": (str(Path.home()),),
        "the working directory": (str(Path.cwd()),) if Path.cwd() != Path("/") else (),
        "the path of its standard library": (os.__file__.removesuffix("/os.py"),),
        "the name of the user": (getpass.getuser(),),
        "the name of the machine": (socket.gethostname(),),
    }


_HOST = {
    f"{what} ({needle})": _finder(needle) for what, needles in _host_facts().items() for needle in needles if needle
}
