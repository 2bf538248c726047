"""A tool set and what can be told of it: in full, as an index, tool by tool, or what fits a few words.

What is told of one tool alone is what the full block says of it, to the letter: names of classes are handed out over
all the tools (contract G19), so that nothing has two names, wherever a model has read it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from .build import TRANSPORT, build_maps
from .index import IndexForm, index_line, index_lines
from .model import ObjectType
from .python import PythonPart, declarations, python_block, python_parts
from .ranking import Ranking, SearchText
from .sdk_text import SdkText, template

if TYPE_CHECKING:
    from ..registry.definition import ToolSchema

__all__ = ["Catalogue", "DiscoveryCalls", "FittedSdk", "SdkForm", "estimate_tokens"]

SdkForm: TypeAlias = Literal["full"] | IndexForm
"""How much of a tool set a text tells; see `Catalogue.fit`."""

_FORMS: Final[tuple[IndexForm, ...]] = ("index", "names", "groups")
_BYTES_PER_TOKEN: Final = 4
_NEAR: Final = 3
_CLEARLY: Final = 0.8
_CUTOFF: Final = 0.6
"""Likeness of names: the clearly like ones are told alone."""
_MAX_NEAR_CHARS: Final = 200


def estimate_tokens(text: str) -> int:
    """Estimates how many tokens a text takes: one for every four bytes of UTF-8, rounded up.

    For SDK text that is 0 to 15 % more than common tokenizers count, which is the side to err on for a limit.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class DiscoveryCalls:
    """The two tools that lead from an index to declarations: one that finds tools, one that describes them."""

    search: ToolSchema
    describe: ToolSchema


@dataclass(frozen=True, slots=True)
class FittedSdk:
    """The text that a budget allows.

    Attributes:
        form: how much it tells.
        text: the text.
        tokens: how many tokens it takes.
    """

    form: SdkForm
    text: SdkText
    tokens: int


class Catalogue:
    """A tool set in Python.

    Args:
        tools: the tools, in any order; of two with one name the later counts.
        transport: the tool that carries programs; it is left out.
    """

    def __init__(self, tools: Sequence[ToolSchema], *, transport: str = TRANSPORT) -> None:
        self._transport = transport
        self._args, outputs = build_maps(tools, transport=transport)
        self._parts = python_parts(self._args, outputs)

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __len__(self) -> int:
        return len(self._parts)

    @cached_property
    def full(self) -> SdkText:
        """The text that has every tool in full: what `render_python` gives (contract G1)."""
        return SdkText(self._instructions(), python_block(list(self._parts.values())), "python")

    def index(self, form: IndexForm, calls: DiscoveryCalls) -> SdkText:
        """Returns the text that has the discovery calls in full, and the tools as an index.

        Args:
            form: how much the index says.
            calls: the discovery calls, as they are called in this tool set.
        """
        search, describe = calls.search.name, calls.describe.name
        block = template("python_index.j2").render(
            block=python_block(list(call_parts(calls).values())),
            lines=index_lines({name: tool.description for name, tool in self._args.items()}, form),
            form=form,
            search=search,
            describe=describe,
        )
        added = template("python_index_instructions.j2").render(form=form, search=search, describe=describe)
        return SdkText(f"{self._instructions()}\n{added}", block.rstrip("\n"), "python")

    def fit(self, budget: int, count_tokens: Callable[[str], int], calls: DiscoveryCalls) -> FittedSdk:
        """Returns the text that tells most within a budget.

        In this order: everything in full; an index with a line for each tool; one with the names alone; one with the
        groups of names and their sizes. When nothing fits it is the shortest of them, whatever that takes.

        Args:
            budget: the most tokens for the whole text, the instructions included.
            count_tokens: counts the tokens of a text.
            calls: the discovery calls, for all but the first.

        Raises:
            TypeError: `count_tokens` did not return an integer.
        """
        tried: list[FittedSdk] = []
        for form in ("full", *_FORMS):
            text = self.full if form == "full" else self.index(form, calls)
            fitted = FittedSdk(form, text, _counted(count_tokens, text.text))
            if fitted.tokens <= budget:
                return fitted
            tried.append(fitted)
        return min(tried, key=lambda fitted: fitted.tokens)

    def declared(self, names: Iterable[str]) -> str:
        """Returns what the full block says of these tools alone, in the order given.

        Raises:
            KeyError: there is no such tool.
        """
        return declarations([self._parts[name] for name in names])

    def line(self, name: str) -> str:
        """Returns a tool's line of the index.

        Raises:
            KeyError: there is no such tool.
        """
        return index_line(name, self._args[name].description)

    def groups(self) -> list[str]:
        """Returns a line for each group of names, with its size."""
        return index_lines(dict.fromkeys(self._parts, ""), "groups")

    def search(self, query: str) -> list[str]:
        """Returns the names of the tools that have any word of the query, the best first."""
        return self._ranking.search(query)

    def near(self, name: str) -> list[str]:
        """Returns the names that may have been meant, the likeliest first: by spelling, or else by words."""
        near: list[str] = []
        if len(name) <= _MAX_NEAR_CHARS:
            near = difflib.get_close_matches(name, self._parts, n=_NEAR, cutoff=_CLEARLY)
            near = near or difflib.get_close_matches(name, self._parts, n=_NEAR, cutoff=_CUTOFF)
        return near or self.search(name)[:_NEAR]

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking(SearchText(name, tool.description, self._parameters(name)) for name, tool in self._args.items())

    def _parameters(self, name: str) -> list[str]:
        root = self._args[name].document.root
        return [item.name for item in root.properties] if isinstance(root, ObjectType) else []

    def _instructions(self) -> str:
        return template("python_instructions.j2").render(transport=self._transport)


def call_parts(calls: DiscoveryCalls) -> dict[str, PythonPart]:
    """Returns what the discovery calls add to a block."""
    return python_parts(*build_maps([calls.search, calls.describe]))


def _counted(count_tokens: Callable[[str], int], text: str) -> int:
    count: object = count_tokens(text)
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"count_tokens must return an integer, not {type(count).__name__}")
    return count
