"""What every SDK language gives, and where its templates come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import jinja2

__all__ = ["SdkText", "template"]


@dataclass(frozen=True, slots=True)
class SdkText:
    """What a model is told of a tool set.

    Attributes:
        instructions: how to write and run a program.
        block: the declarations, as source of `language`.
        language: the language, as code fences name it.
    """

    instructions: str
    block: str
    language: str

    @property
    def text(self) -> str:
        """The whole section: the instructions, an empty line, the fenced block (contract G1)."""
        return f"{self.instructions}\n\n```{self.language}\n{self.block}\n```"


@cache
def template(name: str) -> jinja2.Template:
    """Returns a template of this package, compiled once."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__ or "ptc.sdk_gen"),
        autoescape=False,  # noqa: S701 - the text is Python source, not HTML; `text` does the escaping
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
