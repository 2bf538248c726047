"""Bindings that a program cannot be given are refused before anything runs (contract F7 to F11)."""

from __future__ import annotations

import pytest
from ptc.sandbox.bindings import check_bindings
from ptc.sandbox.seam import ErrorClass, Member, Namespace, SandboxMisuseError


async def nothing(_call: object) -> None:
    return None


@pytest.mark.contract("F7", "F8")
@pytest.mark.parametrize(
    "name",
    ["", "1a", "a-b", "$a", "näme", "a\n", "class", "lambda", "let", "eval", "arguments", "match", "type", "_", "None",
     "console", "__builtins__", "__name__", "__main__", "__debug__", "asyncio"],
)  # fmt: skip
def test_a_global_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(SandboxMisuseError):
        check_bindings([Namespace(name, {})])
    with pytest.raises(SandboxMisuseError):
        check_bindings([Namespace("tools", {}, ErrorClass(name, "toolName"))])


@pytest.mark.contract("F7", "F11")
@pytest.mark.parametrize("name", ["tools", "_private", "A1", "__x"])
def test_an_ascii_identifier_is_a_global(name: str) -> None:
    check_bindings(
        [Namespace(name, {"": Member(nothing), "__proto__": Member(nothing), "constructor": Member(nothing)})]
    )


@pytest.mark.contract("F8", "F9")
@pytest.mark.parametrize(
    "namespaces",
    [
        [Namespace("a", {}), Namespace("a", {})],
        [Namespace("a", {}, ErrorClass("a", "p"))],
        [Namespace("a", {}, ErrorClass("b", "p")), Namespace("b", {})],
        [Namespace("a", {}, ErrorClass("E", "p")), Namespace("b", {}, ErrorClass("E", "p"))],
    ],
)
def test_a_name_is_taken_once(namespaces: list[Namespace]) -> None:
    with pytest.raises(SandboxMisuseError, match="twice"):
        check_bindings(namespaces)


@pytest.mark.contract("F10")
@pytest.mark.parametrize(
    "name", ["", "name", "message", "stack", "args", "with_traceback", "add_note", "__cause__", "__x__"]
)
def test_a_member_property_that_an_error_has_already_is_refused(name: str) -> None:
    with pytest.raises(SandboxMisuseError):
        check_bindings([Namespace("tools", {}, ErrorClass("E", name))])


@pytest.mark.contract("F10")
@pytest.mark.parametrize("name", ["toolName", "not an identifier", "____", "__", "_x_"])
def test_any_other_member_property_does(name: str) -> None:
    check_bindings([Namespace("tools", {}, ErrorClass("E", name))])
