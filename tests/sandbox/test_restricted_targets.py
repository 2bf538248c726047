"""A function that has looked at a parameter once may not look again, but never takes one object for another.

No program runs in this process: see `restricted_child.py`.
"""

from __future__ import annotations

import textwrap

import pytest

from .restricted_harness import Answer, run_jobs

# Each is the body of a method; `self` and `other` are what the case says: an object of the program, or one that is not.
# The last write of each goes to an object that is not the program's.
LAST_WRITE_IS_REFUSED = {
    "first write": ("foreign", "self.x = 1"),
    "second write after one that was refused": (
        "foreign",
        """
        try:
            self.x = 1
        except AttributeError:
            pass
        self.y = 2
        """,
    ),
    "after a branch not taken": ("foreign", "if other is None:\n    self.x = 1\nself.y = 2"),
    "in the other branch": ("foreign", "if other is None:\n    self.x = 1\nelse:\n    self.y = 2"),
    "after a loop of no turns": ("foreign", "for _ in ():\n    self.x = 1\nself.y = 2"),
    "after a loop left early": ("foreign", "while True:\n    if other:\n        break\n    self.x = 1\nself.y = 2"),
    "after a match of no case": ("foreign", "match 1:\n    case 2:\n        self.x = 1\nself.y = 2"),
    "in a handler": ("foreign", "try:\n    1 / 0\n    self.x = 1\nexcept ZeroDivisionError:\n    self.y = 2"),
    "in finally": ("foreign", "try:\n    return 1\n    self.x = 1\nfinally:\n    self.y = 2"),
    "bound anew": ("own", "self.x = 1\nself = other\nself.y = 2"),
    "bound anew before, in a loop": (
        "own",
        """
        for turn in range(2):
            self.x = turn
            self.y = turn
            self = other
        """,
    ),
    "bound by a loop": ("own", "self.x = 1\nfor self in [other]:\n    self.y = 2"),
    "bound by with": ("own", "self.x = 1\nwith nullcontext(other) as self:\n    self.y = 2"),
    "bound by a walrus": ("own", "self.x = 1\n(self := other)\nself.y = 2"),
    "bound by a walrus in a comprehension": ("own", "self.x = 1\n[self := one for one in [other]]\nself.y = 2"),
    "bound by unpacking": ("own", "self.x = 1\n(_, [*_, self]) = 1, [other]\nself.y = 2"),
    "bound by a pattern": ("own", "self.x = 1\nmatch other:\n    case self:\n        self.y = 2"),
    "bound by a pattern of a sequence": ("own", "self.x = 1\nmatch [other]:\n    case [self]:\n        self.y = 2"),
    "bound by an import": ("own", "self.x = 1\nimport json as self\nself.y = 2"),
    "bound by an import of a name": ("own", "self.x = 1\nfrom json import JSONDecoder as self\nself.y = 2"),
    "bound by an inner function": (
        "own",
        """
        def change():
            nonlocal self
            self = other
        self.x = 1
        change()
        self.y = 2
        """,
    ),
    "two parameters": ("own", "self.x = 1\nself.y = 2\nother.x = 3"),
    "in an inner function with a parameter like it": (
        "own",
        "self.x = 1\ndef inner(self):\n    self.y = 2\ninner(other)",
    ),
    "in an inner function": ("foreign", "def inner():\n    self.y = 2\ninner()"),
    "in a coroutine": ("foreign", "async def inner(self):\n    self.x = 1\n    self.y = 2\ninner(self).send(None)"),
    "augmented": ("foreign", "self.strict += 1"),
    "annotated": ("foreign", "self.strict: int = 1"),
    "deleted": ("foreign", "del self.strict"),
}
LAST_READ_IS_REFUSED = {
    "private, first": ("foreign", "return self._x"),
    "private, after a public write that was refused": (
        "foreign",
        "try:\n    self.x = 1\nexcept AttributeError:\n    pass\nreturn self._x",
    ),
    "private, another name": ("class of the program", "self._mine = 1\nreturn self._abc_impl"),
    "private, not reached before": ("foreign", "other is None and self._x\nreturn self._x"),
    "private, in an expression not reached": ("foreign", "y = 1 if other else self._x\nreturn self._x"),
    "private, in a chain not reached": ("foreign", "2 < 1 < self._x\nreturn self._x"),
    "private, bound anew": ("own", "self._x = 1\nself._x\nself = other\nreturn self._x"),
}
PROGRAM = """
import json
from abc import ABC
from contextlib import nullcontext
class Own(ABC):
    def method(self, other):
{body}
foreign = json.JSONDecoder()
target = {{"foreign": foreign, "own": Own(), "class of the program": Own}}[{target!r}]
try:
    Own.method(target, foreign)
except AttributeError as error:
    return str(error)
return "written"
"""
KEPT = """
class Own:
    def __init__(self, n):
        '''Says what it makes.'''
        self.a = self.b = n
        self._c, self.d = n, [n]
    def turn(self, times):
        for one in range(times):
            if one % 2:
                self.a += one
                self._c = self.a
            else:
                self._c -= 1
                self.d.append(self._c)
        return self.a, self._c, self.d
    async def later(self, *, again=None):
        again.a = 7
        self._c = again._c + 1
        return [again.a for again.a in [self._c, again._c]], [self._c for _ in range(2)]
    def steps(self):
        self.b = 1
        yield self.b
        self.b = 2
        yield self.b
class Sub(Own):
    __slots__ = ("extra",)
    def __init__(self):
        super().__init__(3)
        self.extra = self._c
one, two = Own(1), Sub()
return [Own.__init__.__doc__, one.turn(5), two.turn(3), await two.later(again=one), list(one.steps()), two.extra]
"""


def program(target: str, body: str) -> str:
    return PROGRAM.format(body=textwrap.indent(textwrap.dedent(body), " " * 8), target=target)


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    cases = LAST_WRITE_IS_REFUSED | LAST_READ_IS_REFUSED
    return dict(zip(cases, run_jobs({"program": program(*case)} for case in cases.values()), strict=True))


@pytest.mark.contract("F15")
@pytest.mark.parametrize("name", LAST_WRITE_IS_REFUSED)
def test_a_write_to_what_is_not_the_programs_is_refused(answers: dict[str, Answer], name: str) -> None:
    assert answers[name].kind == "value", answers[name]
    assert "read-only in this sandbox" in answers[name].value


@pytest.mark.contract("F15")
@pytest.mark.parametrize("name", LAST_READ_IS_REFUSED)
def test_a_private_name_of_what_is_not_the_programs_is_refused(answers: dict[str, Answer], name: str) -> None:
    assert answers[name].kind == "value", answers[name]
    assert "is private" in answers[name].value


@pytest.mark.contract("F5")
def test_what_is_kept_changes_no_result() -> None:
    restricted, plain = run_jobs([{"program": KEPT}, {"program": KEPT, "native": True}])
    assert restricted.kind == plain.kind == "value"
    assert restricted.value == plain.value
