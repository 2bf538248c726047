"""Takes secrets out of JSON values and of text: by the names and paths of fields, by shapes, and by detectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...registry.lossless import thaw, to_json_text
from .preview import GAP
from .redact_fields import find_fields
from .redact_json import find_documents, written
from .secret_shapes import KEY_END, Found, find_shapes, spans_of

if TYPE_CHECKING:
    from ...registry import JsonValue
    from .redact_rules import FieldRules, Places

__all__ = ["Detector", "Mark", "Redactor"]

Detector: TypeAlias = Callable[[str], Iterable[tuple[int, int]]]
"""Returns where in a text the secrets are, each as its first character and the one after its last."""

Mark: TypeAlias = Callable[[object], str]
"""Returns what stands in the place of a value."""

_SHORTEST: Final = 4
"""No text that is shorter is looked at."""

_LONG_NUMBER: Final = 10**7
"""Nor is any number that is less."""

_MAX_NESTED: Final = 4
"""How often a text in a JSON document may hold documents itself; what is further in is read as mere text."""

_NOTICE: Final = re.compile(r"\(\d+ bytes omitted; the whole text is kept under the locator [^\n]*\)\Z")
_AFTER: Final = re.compile(r"\S{1,512}")
_MAX_TOKEN: Final = 512


class Redactor:
    """Applies one set of rules. It keeps no state, and gives the same answer to the same question.

    Args:
        rules: the fields.
        shapes: whether the known shapes of secrets are looked for.
        patterns: further shapes; where one has a group `secret`, only that is taken out.
        detectors: what else finds secrets in text.
    """

    __slots__ = ("_detectors", "_patterns", "_shapes", "rules")

    def __init__(
        self, rules: FieldRules, *, shapes: bool, patterns: Sequence[re.Pattern[str]], detectors: Sequence[Detector]
    ) -> None:
        self.rules = rules
        self._shapes = shapes
        self._patterns = tuple(patterns)
        self._detectors = tuple(detectors)

    def value(self, value: JsonValue, mark: Mark) -> JsonValue:
        """Returns a JSON value without its secrets; paths begin at its root. One without any is returned itself."""
        return _Walk(self, mark, 0).value(value)

    def text(self, text: str, mark: Mark) -> str:
        """Returns a text without its secrets: the JSON documents in it, and what is around them."""
        return _Walk(self, mark, 0).text(text)

    def plain(self, text: str, mark: Mark, *, program: bool = False, fields: bool = True) -> str:
        """Returns a text without its secrets, whatever it is.

        Args:
            text: the text.
            mark: makes what stands in their place.
            program: whether it is the source of a program.
            fields: whether fields are looked for.
        """
        if len(text) < _SHORTEST:
            return text
        found = list(self._found(text, program, fields))
        if not found:
            return text
        parts: list[str] = []
        done = 0
        for secret in _joined(found):
            parts.append(text[done : secret.start])
            parts.append(mark(text[secret.start : secret.end] if secret.value is None else secret.value))
            done = secret.end
        parts.append(text[done:])
        return "".join(parts)

    def _found(self, text: str, program: bool, fields: bool) -> Iterator[Found]:
        if fields and self.rules.named:
            yield from find_fields(text, self.rules, program=program)
        if self._shapes:
            yield from find_shapes(text)
        for pattern in self._patterns:
            yield from spans_of(pattern, text)
        for detector in self._detectors:
            for begin, end in detector(text):
                if not 0 <= begin <= end <= len(text):
                    raise ValueError("a detector found a secret outside of its text")
                if begin < end:
                    yield Found(begin, end)
        if GAP in text and _NOTICE.search(text, text.rfind("\n")):
            yield from _cut(text)


class _Walk:
    """One walk over a value or a text.

    Args:
        redactor: the rules.
        mark: makes what stands in the place of a secret.
        nested: in how many documents the value is.
    """

    __slots__ = ("_changed", "_keys", "_mark", "_nested", "_redactor")

    def __init__(self, redactor: Redactor, mark: Mark, nested: int) -> None:
        self._redactor = redactor
        self._mark = mark
        self._nested = nested
        self._changed = False
        self._keys: dict[str, tuple[bool, str]] = {}

    def text(self, text: str) -> str:
        plain, mark = self._redactor.plain, self._mark
        if self._nested >= _MAX_NESTED or not ("{" in text or "[" in text):
            return plain(text, mark)
        parts: list[str] = []
        done = 0
        for start, end, value, exact in find_documents(text):
            parts.append(plain(text[done:start], mark))
            redacted = _Walk(self._redactor, mark, self._nested + 1).value(value)
            # Where nothing is in it, it stays as it was written.
            parts.append(text[start:end] if exact and redacted is value else written(redacted, like=text[start:end]))
            done = end
        parts.append(plain(text[done:], mark))
        return "".join(parts)

    def value(self, value: JsonValue) -> JsonValue:
        root: list[Any] = [thaw(value)]
        # Containers are changed in place; the stack is our own, for values may be nested deeper than calls.
        waiting: list[tuple[Any, Places]] = []
        self._item(root, 0, self._redactor.rules.start, waiting)
        while waiting:
            container, places = waiting.pop()
            if isinstance(container, dict):
                self._object(container, places, waiting)
                continue
            for index in range(len(container)):
                ended, inner = self._redactor.rules.step(places, index)
                if ended:
                    self._replace(container, index)
                else:
                    self._item(container, index, inner, waiting)
        return root[0] if self._changed else value

    def _object(self, container: dict[str, Any], places: Places, waiting: list[tuple[Any, Places]]) -> None:
        rules, renamed = self._redactor.rules, False
        for key in container:
            named, name = self._keys.get(key) or self._key(key)
            ended, inner = rules.step(places, key)
            if named or ended:
                self._replace(container, key)
            else:
                self._item(container, key, inner, waiting)
            renamed = renamed or name != key
        if renamed:
            self._rename(container)

    def _key(self, key: str) -> tuple[bool, str]:
        """Returns whether a key is that of a field, and what it is without secrets."""
        known = self._redactor.rules.has_name(key), self._redactor.plain(key, self._mark, fields=False)
        self._keys[key] = known
        return known

    def _rename(self, container: dict[str, Any]) -> None:
        members = list(container.items())
        container.clear()
        for key, member in members:
            name = unique = self._keys[key][1]
            number = 1
            while unique in container:
                number += 1
                unique = f"{name} ({number})"
            container[unique] = member
        self._changed = True

    def _item(self, container: Any, key: Any, places: Places, waiting: list[tuple[Any, Places]]) -> None:
        item = container[key]
        if isinstance(item, str):
            text = self.text(item)
            if text != item:
                container[key] = text
                self._changed = True
        elif isinstance(item, dict | list):
            waiting.append((item, places))
        elif isinstance(item, int | float) and abs(item) >= _LONG_NUMBER:
            number = to_json_text(item)
            if self._redactor.plain(number, self._mark, fields=False) != number:
                self._replace(container, key)

    def _replace(self, container: Any, key: Any) -> None:
        if container[key] is not None:  # null hides nothing
            container[key] = self._mark(container[key])
            self._changed = True


def _joined(found: Iterable[Found]) -> Iterator[Found]:
    """Yields what was found in order, and as one what overlaps."""
    last: Found | None = None
    for secret in sorted(found, key=lambda one: (one.start, -one.end)):
        if last is None or secret.start >= last.end:
            if last is not None:
                yield last
            last = secret
        elif secret.end > last.end:
            last = Found(last.start, secret.end)
    if last is not None:
        yield last


def _cut(text: str) -> Iterator[Found]:
    """Yields what a spill policy has cut through: half a secret has no shape, and is half known all the same."""
    place = text.find(GAP)
    while place >= 0:
        after = place + len(GAP)
        before = place
        while before > max(0, place - _MAX_TOKEN) and not text[before - 1].isspace():
            before -= 1
        if before < place:
            yield Found(before, place)
        behind = _AFTER.match(text, after)
        if behind is not None and not text.startswith("\n\n(", after):
            yield Found(after, behind.end())
        place = text.find(GAP, after)
    key_end = KEY_END.search(text, text.find(GAP))
    if key_end is not None and "-----BEGIN" not in text[: key_end.start()]:
        yield Found(text.find(GAP) + len(GAP), key_end.end())
