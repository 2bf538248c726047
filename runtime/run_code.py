"""`run_code`: the one tool that a model is given; its body runs a program whose calls pass the same pipeline.

The definition belongs to the executor and not to the registry, which only reserves its name (contract A23).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..registry import JsonObject, JsonValue, Pipeline, ToolDefinition, ToolRunContext, define_tool, text_block
from ..registry.views import RUN_CODE
from ..sandbox.seam import Sandbox
from .errors import UnknownLanguageError
from .program import FaultReport, Program, Provide, no_tools
from .rendering import render_outcome, render_value

if TYPE_CHECKING:
    from ..registry import ContentBlock
    from .preflight import Preflight

__all__ = ["LANGUAGES", "RUN_CODE", "make_run_code", "require_known_language"]

LANGUAGES: Final = ("python",)
"""The languages of programs for which there is SDK text, and a `run_code` that tells of it (contract E5)."""

_DESCRIPTION = (
    "Runs a Python program that calls tools. Two arguments are required: `code` and `description`. The code is the "
    "body of an async function, so `await` and `return` work at its top level. Call a tool as "
    "`await tools.name(key=value)`, with the arguments that the system prompt declares for it. Only what the program "
    "prints or returns is output; everything else stays in the program. Images that tools return are attached after "
    "the run."
)
_CODE = (
    "The program: Python source, the body of an async function. `await` and `return` work at its top level; `print` "
    "and the returned value, which must be JSON, are the output."
)
_LABEL = (
    "What the program does, for the person who watches: active voice, about 5 to 10 words, for example "
    "'Compare prices of the three nearest shops' or 'Collect open issues that mention timeouts'."
)


def require_known_language(sandbox: Sandbox) -> None:
    """Refuses a sandbox whose programs nobody can be told how to write (contract E5, E9).

    Raises:
        UnknownLanguageError: its language is none of `LANGUAGES`.
    """
    # Asked of the tuple, so that a name such as `__class__` is no more known than any other (contract E5).
    if sandbox.language not in LANGUAGES:
        raise UnknownLanguageError(sandbox.language, LANGUAGES)


def make_run_code(
    pipeline: Pipeline,
    sandbox: Sandbox,
    max_parallel_sub_calls: int,
    report: FaultReport,
    provide: Provide = no_tools,
    preflight: Preflight | None = None,
) -> ToolDefinition:
    """Makes the `run_code` of one executor (contract E1 to E8).

    Args:
        pipeline: what the sub-calls pass.
        sandbox: where programs run.
        max_parallel_sub_calls: how many tools of one program may run at once.
        report: told of faults of the host, for example a record that could not be written.
        provide: the tools of the executor's own that a program has.
        preflight: checks programs before they run.
    """

    async def execute(arguments: Any, run: ToolRunContext) -> JsonValue:
        if not arguments["description"].strip():
            raise ValueError("invalid description: expected a non-empty string")
        require_known_language(sandbox)
        program = Program(pipeline, sandbox, max_parallel_sub_calls, report, provide, run)
        if preflight is not None:
            await program.pass_preflight(arguments["code"], preflight)
        return await program.complete(arguments["code"])

    return define_tool(
        name=RUN_CODE,
        description=_DESCRIPTION,
        parameters={
            "code": {"type": "string", "required": True, "description": _CODE},
            "description": {"type": "string", "required": True, "description": _LABEL},
        },
        output={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "logs": {"type": "array", "items": {"type": "string"}, "required": True},
                "result": {"type": "json"},
            },
        },
        execute=execute,
        render=_render,
        present_call=_present_call,
    )


def _render(_arguments: Any, value: Any) -> list[ContentBlock]:
    result = render_value(value["result"]) if "result" in value else None
    return [text_block(render_outcome(value["logs"], result))]


def _present_call(arguments: Any) -> JsonObject:
    return {"view": "generic", "title": arguments["description"], "kind": "execute", "rawInput": arguments["code"]}
