"""Which tools fit a few words: plain BM25 over names, descriptions and parameters; no model, no dependency.

A tool is a bag of words. Those of its name count more than those of its description, and those of its parameters less.
Two words are the same when they differ in case or by a plural ending; where one begins with the other, as `repo` and
`repository`, they are counted in part.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from math import log
from typing import Final, NamedTuple

__all__ = ["MAX_QUERY_CHARS", "MAX_TEXT_CHARS", "Ranking", "SearchText", "words_of"]

MAX_QUERY_CHARS: Final = 1_000
"""What counts of a query, in characters."""

MAX_TEXT_CHARS: Final = 2_000
"""What counts of each text of a tool, in characters."""

_NAME_WEIGHT: Final = 4.0
_TEXT_WEIGHT: Final = 1.0
_PARAMETER_WEIGHT: Final = 0.5
_PART_WEIGHT: Final = 0.4
"""How much a word counts that only begins with the one that was asked for, or the other way round."""

_SATURATION: Final = 1.2
_LENGTH: Final = 0.5
"""BM25's k1 and b. Descriptions of tools differ in length more by style than by what they cover, so b is low."""

_MIN_STEM: Final = 3
_WORD: Final = re.compile(r"[^\W_]+")
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
"""Scripts whose words have no spaces between them, or whose words carry their endings with them: taken in pairs."""

_STOP_WORDS: Final = frozenset(
    # Words, not a list of forty quotes.
    """
    a an and are as at be by can do for from how i in is it me my of on or please that the this to tool tools use want
    what which will with you your
    """.split()  # noqa: SIM905
)


class SearchText(NamedTuple):
    """What is searched of one tool: its name, its description, and the names of its parameters."""

    name: str
    description: str
    parameters: Sequence[str] = ()


class Ranking:
    """An index of tools, made once and asked often.

    Args:
        tools: the tools, in any order.
    """

    def __init__(self, tools: Iterable[SearchText]) -> None:
        self._names: list[str] = []
        self._by_spelling: dict[str, list[int]] = {}
        self._postings: dict[str, list[tuple[int, float]]] = {}
        lengths: list[float] = []
        known: dict[str, list[str]] = {}
        for number, tool in enumerate(sorted(tools, key=lambda tool: tool.name)):
            self._names.append(tool.name)
            self._by_spelling.setdefault(tool.name.casefold(), []).append(number)
            weights = _weights(tool, known)
            for word, weight in weights.items():
                self._postings.setdefault(word, []).append((number, weight))
            lengths.append(sum(weights.values()))
        mean = sum(lengths) / len(lengths) if lengths else 0.0
        self._norms = [_SATURATION * (1 - _LENGTH + _LENGTH * length / (mean or 1.0)) for length in lengths]
        self._vocabulary = sorted(self._postings)

    def search(self, query: str) -> list[str]:
        """Returns the names of the tools that have any word of the query, the best first; of equals, by name."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(words_of(query[:MAX_QUERY_CHARS])):
            best: dict[int, float] = {}
            for same, share in self._alike(word):
                postings = self._postings[same]
                rarity = share * log(1 + (len(self._names) - len(postings) + 0.5) / (len(postings) + 0.5))
                for number, weight in postings:
                    score = rarity * weight * (_SATURATION + 1) / (weight + self._norms[number])
                    best[number] = max(best.get(number, 0.0), score)
            for number, score in best.items():
                scores[number] = scores.get(number, 0.0) + score
        for number in self._by_spelling.get(query[:MAX_QUERY_CHARS].strip().casefold(), ()):
            scores[number] = float("inf")
        return [self._names[number] for number in sorted(scores, key=lambda number: (-scores[number], number))]

    def _alike(self, word: str) -> list[tuple[str, float]]:
        """Returns the words of the index that count for this one, and how much."""
        alike = [(word, 1.0)] if word in self._postings else []
        if len(word) < _MIN_STEM:
            return alike
        start = bisect_left(self._vocabulary, word)
        longer = takewhile(lambda other: other.startswith(word), self._vocabulary[start:])
        alike += [(other, _PART_WEIGHT) for other in longer if other != word]
        shorter = (word[:size] for size in range(_MIN_STEM, len(word)))
        return alike + [(other, _PART_WEIGHT) for other in shorter if other in self._postings]


def _weights(tool: SearchText, known: dict[str, list[str]]) -> Mapping[str, float]:
    weights: dict[str, float] = {}
    parts = (
        (_NAME_WEIGHT, [tool.name]),
        (_TEXT_WEIGHT, [tool.description]),
        (_PARAMETER_WEIGHT, tool.parameters),
    )
    for weight, texts in parts:
        for text in texts:
            for word in words_of(text[:MAX_TEXT_CHARS], known):
                weights[word] = weights.get(word, 0.0) + weight
    return weights


def words_of(text: str, known: dict[str, list[str]] | None = None) -> list[str]:
    """Returns the words of a text or a name, as they are compared: `listOpenIssues` has `list`, `open` and `issue`.

    Args:
        text: the text.
        known: remembers what has been split, for texts that have many words in common.
    """
    known = {} if known is None else known
    words: list[str] = []
    for chunk in _WORD.findall(text if text.isascii() else unicodedata.normalize("NFKC", text)):
        found = known.get(chunk)
        if found is None:
            found = known[chunk] = [word for run in _runs(chunk) for word in _words_in(run)]
        words += found
    return words


def _words_in(run: str) -> list[str]:
    if _UNSPACED.match(run):
        return [run[at : at + 2] for at in range(max(1, len(run) - 1))]
    return [word for hump in _HUMPS.split(run) if (word := _singular(hump.casefold())) not in _STOP_WORDS]


def _runs(chunk: str) -> list[str]:
    """Splits a chunk where a script without spaces begins or ends."""
    if chunk.isascii():
        return [chunk]
    runs: list[str] = []
    end = 0
    for found in _UNSPACED.finditer(chunk):
        runs += [chunk[end : found.start()], found.group()]
        end = found.end()
    return [run for run in (*runs, chunk[end:]) if run]


def _singular(word: str) -> str:
    if len(word) <= _MIN_STEM or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1]
