"""Lines of keys: whatever TOML a key is written in, its line is known."""

from __future__ import annotations

import json
import re
import string
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptc.runtime.config import ConfigError
from ptc.runtime.config.source import key_text, read_toml

WRITTEN = """\
# a comment
top = 1
"quoted key" = 2

[a]
b.c = 1
b.d = { e = 1, "f g" = [1, 2] }
list = [
  "x",  # in between
  # alone
  "y",
  { z = 1 },
]
long = '''
one
two
'''
after = 1

[[rules]]
tools = "x"

[[rules]]
tools = "y"
[rules.more]
deep = 1
[[rules.inner]]
k = 1
[[rules.inner]]
k = 2

[ x . "y.z" . w ]
v = 1
"""
LINES = {
    ("top",): 2,
    ("quoted key",): 3,
    ("a",): 5,
    ("a", "b"): 6,
    ("a", "b", "c"): 6,
    ("a", "b", "d"): 7,
    ("a", "b", "d", "e"): 7,
    ("a", "b", "d", "f g"): 7,
    ("a", "b", "d", "f g", 1): 7,
    ("a", "list"): 8,
    ("a", "list", 0): 9,
    ("a", "list", 1): 11,
    ("a", "list", 2): 12,
    ("a", "list", 2, "z"): 12,
    ("a", "long"): 14,
    ("a", "after"): 18,
    ("rules",): 20,
    ("rules", 0): 20,
    ("rules", 0, "tools"): 21,
    ("rules", 1): 23,
    ("rules", 1, "tools"): 24,
    ("rules", 1, "more"): 25,
    ("rules", 1, "more", "deep"): 26,
    ("rules", 1, "inner"): 27,
    ("rules", 1, "inner", 0, "k"): 28,
    ("rules", 1, "inner", 1): 29,
    ("rules", 1, "inner", 1, "k"): 30,
    ("x",): 32,
    ("x", "y.z"): 32,
    ("x", "y.z", "w"): 32,
    ("x", "y.z", "w", "v"): 33,
}


def test_the_line_of_every_key_is_known():
    _values, source = read_toml(WRITTEN.encode(), "f.toml")
    assert {path: source.line(path) for path in LINES} == LINES
    assert set(LINES) <= set(source.lines)


@pytest.mark.parametrize(
    ("path", "line"),
    [(("a", "gone"), 5), (("rules", 1, "gone", "deeper"), 23), (("rules", 7), 20), (("gone",), None), ((), None)],
)
def test_what_is_not_there_has_the_line_of_what_is_around_it(path, line):
    _values, source = read_toml(WRITTEN.encode(), "f.toml")
    assert source.line(path) == line


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("a", "b-c", "d_9"), "a.b-c.d_9"),
        (("rules", 0, "tools"), "rules[0].tools"),
        (("a b", "c.d", 'e"f'), '"a b"."c.d"."e\\"f"'),
        (("", "x\ny\x1b[31m"), '""."x\\ny\\x1b[31m"'),
        ((), ""),
    ],
)
def test_a_key_is_written_as_toml_has_it_on_one_line(path, text):
    assert key_text(path) == text


# Any document -------------------------------------------------------------------------------------------------------


@dataclass
class Writer:
    """Writes a document, and notes by itself on which line each key comes to stand."""

    draw: Any
    text: list[str] = field(default_factory=lambda: [""])
    lines: dict[tuple[str | int, ...], int] = field(default_factory=dict)

    def put(self, text: str) -> None:
        first, *rest = text.split("\n")
        self.text[-1] += first
        self.text += rest

    def note(self, path: tuple[str | int, ...]) -> None:
        self.lines.setdefault(path, len(self.text))

    def key(self, name: str) -> str:
        bare = re.fullmatch(r"[A-Za-z0-9_-]+", name)
        return (
            name
            if bare and self.draw(st.booleans())
            else json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
        )

    def value(self, path: tuple[str | int, ...], value: Any) -> None:
        if isinstance(value, dict):
            self.put("{ ")
            for place, (name, inner) in enumerate(value.items()):
                self.put(", " if place else "")
                self.note((*path, name))
                self.put(f"{self.key(name)} = ")
                self.value((*path, name), inner)
            self.put(" }")
        elif isinstance(value, list):
            self.put("[")
            for place, inner in enumerate(value):
                self.put(self.draw(st.sampled_from(["", "\n", " # [x] = 1\n", "\n\n  "])))
                self.note((*path, place))
                self.value((*path, place), inner)
                self.put(",")
            self.put("]")
        elif isinstance(value, str) and "\n" in value:
            self.put('"""\n' + value + '"""')
        else:
            self.put(json.dumps(value))

    def table(self, path: tuple[str | int, ...], table: dict[str, Any]) -> None:
        later = []
        for name, value in table.items():
            tables = isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)
            if (isinstance(value, dict) or tables) and self.draw(st.booleans()):
                later.append((name, value))
                continue
            self.note((*path, name))
            self.put(f"{self.key(name)} = ")
            self.value((*path, name), value)
            self.put(self.draw(st.sampled_from(["\n", "  # = [[x]]\n", "\n\n"])))
        for name, value in later:
            for place, inner in enumerate(value if isinstance(value, list) else [value]):
                whole = (*path, name) if isinstance(value, dict) else (*path, name, place)
                self.note((*path, name))
                self.lines[whole] = len(self.text)
                names = ".".join(self.key(part) for part in whole if isinstance(part, str))
                self.put(f"[{names}]\n" if isinstance(value, dict) else f"[[{names}]]\n")
                self.table(whole, inner)


NAMES = st.text(st.sampled_from(string.ascii_letters + "_- .\"#[]'é"), max_size=5)
LEAVES = st.integers(-(2**40), 2**40) | st.booleans() | st.text("ab\n #[]={}", max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=4), st.data())
def test_the_lines_of_any_document_are_those_that_it_was_written_with(document, data):
    writer = Writer(data.draw)
    writer.table((), document)
    text = "\n".join(writer.text)
    values, source = read_toml(text.encode(), "f.toml")
    assert values == document
    assert dict(source.lines) == writer.lines


@settings(max_examples=300, deadline=None)
@given(st.text("a=.[]{}\"'#\n1, é\\", max_size=30) | st.binary(max_size=20))
def test_any_text_is_read_or_refused_with_a_line_that_it_has(text):
    data = text if isinstance(text, bytes) else text.encode()
    try:
        read_toml(data, "f.toml")
    except ConfigError as error:
        (finding,) = error.findings
        assert finding.line is not None
        assert 1 <= finding.line <= data.count(b"\n") + 1
        assert "\n" not in str(finding)
