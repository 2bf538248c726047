"""`ptc sdk`: the text that a model is given of the tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Settings, Tools, read_settings, usage_error

if TYPE_CHECKING:
    from ...registry import JsonObject

__all__ = ["sdk"]


def sdk(
    tools: Tools,
    settings: Settings = None,
    language: Annotated[
        str, typer.Option("--language", help="The language of the text: python, or typescript (see above).")
    ] = "python",
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            min=1,
            metavar="TOKENS",
            help="About what the Python text may take. Beyond it the tools come as an index, see sdk_budget.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for other programs.")] = False,
    stub: Annotated[
        bool, typer.Option("--stub", help="Write a stub module for type checkers instead: see above.")
    ] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file.", metavar="FILE")] = None,
) -> None:
    """Print what a model is told of the tools of a file: the instructions, and the typed declarations.

    The sandboxes of ptc run Python only. The TypeScript text is for hosts with a TypeScript backend of their own.

    With --stub: a Python module for type checkers. It declares `tools` with every form of a call, and the types of what
    each tool takes and gives. Write it to a file that ends in .pyi, and import from it in what you check.

    Exit codes: 0 printed, 2 wrong usage.
    """
    from ...registry import ToolRegistrationError, ToolRegistry, to_json_text
    from ...sdk_gen import render_python, render_stub, render_typescript
    from ..discovery import SdkBudget
    from ..tools_file import ToolsFileError, load_tools

    renderers = {"python": render_python, "typescript": render_typescript}
    if language not in renderers:
        raise usage_error(f"there is no SDK text in {language!r}; --language takes: {', '.join(renderers)}")
    if budget is not None and language != "python":
        raise usage_error(f"--budget is for --language python; in {language} there is no index")
    if stub and (json or budget is not None or language != "python"):
        raise usage_error("--stub writes a Python module; it goes with neither --json, --budget nor another --language")
    registry = ToolRegistry()
    try:
        for each in tools:
            for definition in load_tools(each, read_settings(settings)):
                registry.context().register(definition)
        fitted = None if budget is None else SdkBudget(registry, budget).plan(registry.view()).fitted
        schemas = registry.view().schemas(with_output=True)
        text = fitted.text if fitted else renderers[language](schemas)
    except (ToolsFileError, ToolRegistrationError, ValueError) as error:
        raise usage_error(str(error)) from None
    printed = render_stub(schemas) if stub else text.text.rstrip("\n") + "\n"
    if json:
        told: JsonObject = {
            "language": language,
            "instructions": text.instructions,
            "block": text.block,
            "text": text.text,
        }
        if fitted is not None:
            told |= {"form": fitted.form, "tokens": fitted.tokens}
        printed = to_json_text(told) + "\n"
    _write(printed, output)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise usage_error(f"{output} cannot be written: {error.strerror}") from None
