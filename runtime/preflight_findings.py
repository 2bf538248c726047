"""From what the type checker says of a program to what its writer is told: the line, the tool and the argument.

A call of a tool counts when one of its arguments cannot be right for any value; a use of a result counts when the type
that the tool declares does not have it. The rest is the program's own business. What the program builds up, changes or
catches itself is given the benefit of the doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..sdk_gen.stub import StubModule
from ..sdk_gen.text import quoted
from .preflight_calls import ToolCalls
from .preflight_diagnostics import CALL_RULES, RESULT_RULES, Diagnostic
from .preflight_program import Program
from .preflight_results import Results, written_tool
from .preflight_tree import Node

__all__ = ["Finding", "explain"]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One mistake: the line, and what is wrong there, with the tool and the argument named."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


def explain(
    tree: Node,
    diagnostics: Sequence[Diagnostic],
    stub: StubModule,
    parameters: Mapping[str, object],
    known: Sequence[str],
) -> list[Finding]:
    """Returns the mistakes of a program, in order of lines.

    Args:
        tree: the program.
        diagnostics: what the checker found.
        stub: the stub that it read.
        parameters: the schema of what each tool takes, by name.
        known: the names of all tools that the program has.
    """
    program = Program(tree, parameters)
    if program.has_own_tools:
        return []
    calls = ToolCalls(program, diagnostics, stub, parameters)
    results = Results(program, stub, known)
    found: set[Finding] = set()
    seen: set[int] = set()
    for each in diagnostics:
        call = calls.call_at(each) if each.rule in CALL_RULES else None
        if call is None:
            if each.rule in RESULT_RULES:
                found.update(Finding(each.line, text) for text in results.problems(each))
        elif id(call) not in seen:
            seen.add(id(call))
            found.update(_of_call(call, program, calls))
    return sorted(found)


def _of_call(call: Node, program: Program, calls: ToolCalls) -> Iterator[Finding]:
    name = program.tool_of(call["func"])
    assert name is not None
    for problem in calls.problems(call):
        about = f"argument {quoted(problem.path)} " if problem.path else ""
        if problem.path and not problem.text.startswith("must"):
            about = f"in argument {quoted(problem.path)} "
        place = problem.node.place or call.place
        yield Finding(place[0] if place else 0, f"{written_tool(name)}(...): {about}{problem.text}")
