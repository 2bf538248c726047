"""`ptc sdk`: the text that a model is given of the tools."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Settings, Tools, read_settings, usage_error

if TYPE_CHECKING:
    from ...registry import JsonObject

__all__ = ["sdk"]


def sdk(
    tools: Tools,
    settings: Settings = None,
    language: Annotated[str, typer.Option("--language", help="The language of the text: python.")] = "python",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for other programs.")] = False,
) -> None:
    """Print what a model is told of the tools of a file: the instructions, and the typed declarations.

    Exit codes: 0 printed, 2 wrong usage.
    """
    from ...registry import ToolRegistrationError, ToolRegistry, to_json_text
    from ...sdk_gen import render_python
    from ..tools_file import ToolsFileError, load_tools

    if language != "python":
        raise usage_error(f"there is no SDK text in {language!r}; --language takes: python")
    registry = ToolRegistry()
    try:
        for each in tools:
            for definition in load_tools(each, read_settings(settings)):
                registry.context().register(definition)
        text = render_python(registry.view().schemas(with_output=True))
    except (ToolsFileError, ToolRegistrationError, ValueError) as error:
        raise usage_error(str(error)) from None
    if json:
        told: JsonObject = {
            "language": language,
            "instructions": text.instructions,
            "block": text.block,
            "text": text.text,
        }
        sys.stdout.write(to_json_text(told) + "\n")
    else:
        sys.stdout.write(text.text.rstrip("\n") + "\n")
