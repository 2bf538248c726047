"""Cards: what a person who watches sees of a call, while it is pending and once it is completed (contract H1 to H4).

    pending      GenericCallCard    TerminalCallCard    DiffCallCard
    completed    GenericResultCard  TerminalResultCard  DiffResultCard  ReadCard
                 SearchMatchesCard  SearchPathsCard     WebSearchCard   WebFetchCard

`CallCard` and `ResultCard` are the unions of the two rows. In Python a card has Python's spelling, and `None` where it
says nothing; on the wire it is camelCase JSON, in which what is absent has no key. `to_wire()` makes that JSON, and
pydantic's `model_dump` and `model_dump_json` give the same (the latter to some 250 levels of nesting). A null stands on
the wire only where it says something: as the `oldText` of a new file, and as a `rawInput` that is JSON null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from typing_extensions import TypeAliasType

from .card_fields import Content, Count, Json, LineNumber, Name, Several, Shape, Text
from .values import MISSING

__all__ = [
    "CallCard",
    "CardKind",
    "DiffCallCard",
    "DiffResultCard",
    "FileDiff",
    "GenericCallCard",
    "GenericResultCard",
    "Location",
    "NumberedLine",
    "ReadCard",
    "ResultCard",
    "SearchFile",
    "SearchMatch",
    "SearchMatchesCard",
    "SearchPathsCard",
    "TerminalCallCard",
    "TerminalResultCard",
    "WebFetchCard",
    "WebSearchCard",
    "WebSource",
    "as_call_card",
    "as_result_card",
    "card_problems",
]

CardKind = TypeAliasType("CardKind", Literal["read", "edit", "delete", "move", "search", "execute", "fetch", "other"])
"""What sort of thing a call does, for an icon or a filter (contract H3)."""


# Shapes that several cards share -------------------------------------------------------------------------------------


class Location(Shape):
    """A place that a call is about (contract H4).

    Attributes:
        path: the file.
        line: the line in it, from 1.
    """

    path: Name
    line: LineNumber | None = None


class FileDiff(Shape):
    """What changes in one file (contract H4).

    Attributes:
        path: the file.
        old_text: what it held; `None` for a new file, or when that is not known.
        new_text: what it holds afterwards.
    """

    path: Name
    old_text: Text | None
    new_text: Text


class NumberedLine(Shape):
    """One line of a file, by its number from 1 (contract H4)."""

    number: LineNumber
    text: Text


class SearchMatch(Shape):
    """One line that a search has found, by its number from 1."""

    line_number: LineNumber
    line: Text


class SearchFile(Shape):
    """What a search has found in one file."""

    path: Name
    matches: Several[SearchMatch]


class WebSource(Shape):
    """One page that a search of the web has found.

    Attributes:
        url: its address.
        title: its title.
        snippet: the passage that was found.
        published_at: when it was published, as the source says it.
    """

    url: Name
    title: Text | None = None
    snippet: Text | None = None
    published_at: Text | None = None


# Pending calls -------------------------------------------------------------------------------------------------------


class GenericCallCard(Shape):
    """A pending call of any sort (contract H1).

    Attributes:
        title: what the call does.
        kind: what sort of thing it does.
        raw_input: what it was given, any JSON.
        content: content blocks.
        locations: the places that it is about.
    """

    view: Literal["generic"] = "generic"
    title: Text
    kind: CardKind = "other"
    raw_input: Json = Field(default_factory=lambda: MISSING)
    content: Content = None
    locations: Several[Location] | None = None


class TerminalCallCard(Shape):
    """A command that is about to run (contract H1).

    Attributes:
        title: the command, or what it does.
        description: more about it.
        cwd: the folder that it runs in.
    """

    view: Literal["terminal"] = "terminal"
    title: Text
    description: Text | None = None
    cwd: Text | None = None


class DiffCallCard(Shape):
    """Changes of files that are about to be made (contract H1)."""

    view: Literal["diff"] = "diff"
    title: Text
    diffs: Several[FileDiff]
    locations: Several[Location] | None = None


CallCard: TypeAlias = Annotated[GenericCallCard | TerminalCallCard | DiffCallCard, Field(discriminator="view")]
"""The card of a pending call; `view` tells which (contract H1)."""


# Completed calls -----------------------------------------------------------------------------------------------------


class GenericResultCard(Shape):
    """A completed call of any sort (contract H2).

    Attributes:
        title: what was done; the pending card's title stays when it is `None`.
        content: content blocks.
    """

    view: Literal["generic"] = "generic"
    title: Text | None = None
    content: Content = None


class TerminalResultCard(Shape):
    """A command that has run (contract H2).

    Attributes:
        title: the command, or what it did; the pending card's title stays when it is `None`.
        output: what it wrote.
        exit_code: the code that it ended with.
        signal: the signal that ended it, for example `SIGKILL`; never beside an `exit_code`.
    """

    view: Literal["terminal"] = "terminal"
    title: Text | None = None
    output: Text | None = None
    exit_code: int | None = None
    signal: Text | None = None

    @model_validator(mode="after")
    def _ended_one_way(self) -> Self:
        if self.exit_code is not None and self.signal is not None:
            raise ValueError("a command ends with an exit code or by a signal, so give only one of them")
        return self


class DiffResultCard(Shape):
    """Changes of files that were made; it replaces the pending card, so it repeats what still holds (contract H8)."""

    view: Literal["diff"] = "diff"
    title: Text | None = None
    diffs: Several[FileDiff]


class SearchMatchesCard(Shape):
    """What a search has found in files (contract H2). It has no copy of the content (contract H9).

    Attributes:
        title: what was searched for.
        files: the files, each with what was found in it.
        truncated: whether there is more than the card has.
        total: how many matches there are in all.
    """

    view: Literal["search"] = "search"
    shape: Literal["matches"] = "matches"
    title: Text | None = None
    files: Several[SearchFile]
    truncated: bool
    total: Count


class SearchPathsCard(Shape):
    """Which files a search has found (contract H2). It has no copy of the content (contract H9).

    Attributes:
        title: what was searched for.
        paths: the files.
        truncated: whether there are more than the card has.
        total: how many there are in all.
    """

    view: Literal["search"] = "search"
    shape: Literal["paths"] = "paths"
    title: Text | None = None
    paths: Several[Name]
    truncated: bool
    total: Count


class ReadCard(Shape):
    """A part of a file that was read (contract H2).

    Attributes:
        title: what was read.
        path: the file.
        offset: the first line that was asked for, from 1, also when there are no lines (contract H4).
        lines: the lines.
        total_lines: how many lines the file has.
        lang: the language, for highlighting.
        content: content blocks, for what is not lines of text.
    """

    view: Literal["read"] = "read"
    title: Text | None = None
    path: Name
    offset: LineNumber
    lines: Several[NumberedLine]
    total_lines: Count
    lang: Text | None = None
    content: Content = None


class WebSearchCard(Shape):
    """What a search of the web has found (contract H2). It has no copy of the content (contract H9).

    Attributes:
        title: what was searched for.
        sources: the pages.
        answer: an answer that the search service gave.
        truncated: whether there is more than the card has.
    """

    view: Literal["web"] = "web"
    kind: Literal["search"] = "search"
    title: Text | None = None
    sources: Several[WebSource]
    answer: Text | None = None
    truncated: bool


class WebFetchCard(Shape):
    """A page of the web that was fetched (contract H2). It has no copy of the content (contract H9).

    Attributes:
        title: the page's title.
        url: its address.
        status_code: the status of the HTTP answer.
        truncated: whether only a part of the page was taken.
    """

    view: Literal["web"] = "web"
    kind: Literal["fetch"] = "fetch"
    title: Text | None = None
    url: Name
    status_code: Annotated[int, Field(ge=100, le=999)]
    truncated: bool


_SearchCard: TypeAlias = Annotated[SearchMatchesCard | SearchPathsCard, Field(discriminator="shape")]
_WebCard: TypeAlias = Annotated[WebSearchCard | WebFetchCard, Field(discriminator="kind")]

ResultCard: TypeAlias = Annotated[
    GenericResultCard | TerminalResultCard | DiffResultCard | _SearchCard | ReadCard | _WebCard,
    Field(discriminator="view"),
]
"""The card of a completed call; `view` tells which, then `shape` of a search and `kind` of the web (contract H2)."""


# What presenters answer ----------------------------------------------------------------------------------------------

_DEFERRED: Final = ConfigDict(defer_build=True)
_CALL_CARDS: Final[TypeAdapter[CallCard]] = TypeAdapter(CallCard, config=_DEFERRED)
_RESULT_CARDS: Final[TypeAdapter[ResultCard]] = TypeAdapter(ResultCard, config=_DEFERRED)


def as_call_card(answer: object) -> CallCard:
    """Returns the card of a pending call, from a card or from a mapping in the wire's or Python's spelling.

    Raises:
        ValidationError: it is no such card.
    """
    return _CALL_CARDS.validate_python(dict(answer) if isinstance(answer, Mapping) else answer)


def as_result_card(answer: object) -> ResultCard:
    """Returns the card of a completed call, from a card or from a mapping in the wire's or Python's spelling.

    Raises:
        ValidationError: it is no such card.
    """
    return _RESULT_CARDS.validate_python(dict(answer) if isinstance(answer, Mapping) else answer)


_SHOWN_PROBLEMS: Final = 5
_SHOWN_PLACE: Final = 80
_SHOWN_PROBLEM: Final = 200


def card_problems(error: ValidationError) -> str:
    """Says in one line of some hundred characters why something is no card: places, and what is wrong there."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    told = [_told(".".join(map(str, each["loc"])), each["msg"]) for each in problems[:_SHOWN_PROBLEMS]]
    more = len(problems) - len(told)
    return "; ".join([*told, f"and {more} more"] if more else told)


def _told(place: str, problem: str) -> str:
    told = _shown(problem, _SHOWN_PROBLEM)
    return f"{_shown(place, _SHOWN_PLACE)}: {told}" if place else told


def _shown(text: str, limit: int) -> str:
    """Returns text for one line: a key or a `view` that came from a model may be long, or steer a terminal."""
    plain = text if text.isascii() and text.isprintable() else ascii(text)
    return plain if len(plain) <= limit else f"{plain[:limit]}…"
