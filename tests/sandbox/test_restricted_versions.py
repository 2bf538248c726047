"""The restricted language on each version of Python: what is new is Python where it is admitted, and refused elsewhere.

Each entry says since which version it is Python; it is skipped on those before.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

import pytest
from ptc.sandbox.restricted.inside.language.policy import rewrite

from .restricted_harness import Answer, run_jobs, run_program

GENERIC_CLASS = """
class Box[T: (int, str), *Ts, **P]:
    def __init__(self, x: T): self._x = x; self.__y = x
    def get(self) -> T: return self._x + self.__y
return [Box(3).get(), Box[int, int, [str]](4).get(), Box.__name__]
"""
ADMITTED: dict[str, tuple[tuple[int, int], str, Any]] = {
    "generic functions": (
        (3, 12),
        "def f[T](xs: list[T]) -> T: return xs[0]\nasync def g[**P](x): return x\nreturn [f([1]), await g(2)]",
        [1, 2],
    ),
    "generic classes": ((3, 12), GENERIC_CLASS, [6, 8, "Box"]),
    "generic classes that inherit": (
        (3, 12),
        "class A[T]:\n def f(self): return 1\nclass B[T](A[T]):\n def f(self): return super().f() + 1\nreturn B().f()",
        2,
    ),
    "generic dataclasses and named tuples": (
        (3, 12),
        (
            "import dataclasses\nfrom typing import NamedTuple\n"
            "@dataclasses.dataclass\nclass P[T]:\n x: T\n y: int = 2\n"
            "class N[T](NamedTuple):\n x: T\nreturn [dataclasses.asdict(P(3)), str(N(1))]"
        ),
        [{"x": 3, "y": 2}, "N(x=1)"],
    ),
    "type aliases": (
        (3, 12),
        (
            "type X = int | list[X]\nclass A:\n type Y[T] = list[T]\ndef f():\n type Z = X\n return Z\n"
            "return [str(X), X.__name__, str(A.Y), str(f())]"
        ),
        ["X", "X", "Y", "Z"],
    ),
    "quotes, comments and lines in f-strings": (
        (3, 12),
        "d = {'a': 1}\nreturn f'{d['a']} {'\\n'.join(['x', 'y'])} {f'{f'{2}'}'} {\n    3  # three\n}'",
        "1 x\ny 2 3",
    ),
    "defaults of type parameters": (
        (3, 13),
        "class Box[T = int, *Ts = *tuple[int, ...]]: pass\ntype X[T = str] = list[T]\nreturn [str(X), Box.__name__]",
        ["X", "Box"],
    ),
}
REFUSED: dict[str, tuple[tuple[int, int], str, str]] = {
    "what an alias stands for": ((3, 12), "type X = int\nreturn X.__value__", "'__value__'"),
    "the value of an alias": ((3, 12), "type X = ().__class__.__subclasses__()", "'__subclasses__'"),
    "the bound of a parameter": ((3, 12), "def f[T: ().__class__.__bases__](x): pass", "'__bases__'"),
    "the parameters of a function": ((3, 12), "def f[T](): pass\nreturn f.__type_params__", "'__type_params__'"),
    "a parameter with a name of the language": ((3, 12), "class A[__init__]: pass", "'__init__'"),
    "a builtin in an alias": ((3, 12), "type X = open('x')", "open() is not available"),
    "an expression inside quotes inside an f-string": ((3, 12), "return f'{f'{().__class__.__mro__}'}'", "'__mro__'"),
    "the default of a parameter": ((3, 13), "class A[T = ().__class__.__mro__]: pass", "'__mro__'"),
    # What is checked must be what is read, and versions differ in what they read there.
    "a mangled name in the bases of a generic class": ((3, 12), "class A[T](x.__y): pass", "'__y' cannot be read"),
    "a mangled name in the keywords of one": ((3, 12), "class A[T](k=x.__y): pass", "'__y' cannot be read"),
    "a mangled name in the parameters of one": ((3, 12), "class A[T: x.__y]: pass", "'__y' cannot be read"),
    # Attributes that some version has.
    "attributes that a class sets": (
        (3, 11),
        "class A: pass\nreturn A.__static_attributes__",
        "'__static_attributes__'",
    ),
    "the line of a class": ((3, 11), "class A: pass\nreturn A.__firstlineno__", "'__firstlineno__'"),
    "the annotations' function": ((3, 11), "def f(x: int): pass\nreturn f.__annotate__", "'__annotate__'"),
    "the builtins of a function": ((3, 11), "def f(): pass\nreturn f.__builtins__", "'__builtins__'"),
    "a frame's generator": ((3, 11), "return frame.f_generator", "'f_generator'"),
    "whether a coroutine is suspended": ((3, 11), "async def f(): pass\nreturn f().cr_suspended", "'cr_suspended'"),
}
SAME_BY_NAME = """
names = ("get_loop", "get_coro", "get_context", "get_stack", "print_stack")
import asyncio
async def work(): return 1
task = asyncio.create_task(work())
await task
out = []
for target in (task, asyncio.Task, asyncio.Future, type(task)):
    for name in names:
        try: value = getattr(target, name)
        except AttributeError: continue
        out.append(name)
return out
"""


def known(version: tuple[int, int]) -> bool:
    return sys.version_info[:2] >= version


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    """What the entries that this Python has came to; those that are admitted once more in plain Python."""
    jobs: dict[str, dict[str, Any]] = {}
    for name, (version, program, _value) in ADMITTED.items():
        if known(version):
            jobs[name] = {"program": program}
            jobs[f"{name}, plain"] = {"program": program, "native": True}
    for name, (version, program, _told) in REFUSED.items():
        if known(version):
            jobs[name] = {"program": f"print('ran')\n{program}"}
    return dict(zip(jobs, run_jobs(jobs.values()), strict=True))


def of(answers: dict[str, Answer], name: str, version: tuple[int, int]) -> Answer:
    if not known(version):
        pytest.skip(f"Python has it since {version[0]}.{version[1]}")
    return answers[name]


@pytest.mark.contract("F5")
@pytest.mark.parametrize("name", ADMITTED)
def test_new_syntax_gives_what_python_gives(answers: dict[str, Answer], name: str) -> None:
    version, _program, value = ADMITTED[name]
    restricted = of(answers, name, version)
    plain = answers[f"{name}, plain"]
    assert (restricted.kind, restricted.value) == (plain.kind, plain.value) == ("value", value)


@pytest.mark.contract("F26", "F42")
@pytest.mark.parametrize("name", REFUSED)
def test_what_leads_out_is_refused_before_anything_runs(answers: dict[str, Answer], name: str) -> None:
    version, _program, told = REFUSED[name]
    answer = of(answers, name, version)
    assert (answer.kind, answer.output) == ("error", "")
    assert "SyntaxError: " in answer.value
    assert told in answer.value


@pytest.mark.contract("F42")
def test_methods_that_lead_out_are_refused_whatever_type_this_version_gives_them() -> None:
    """Methods of a task are of a subclass of the builtin methods' type since 3.12."""
    assert run_program(SAME_BY_NAME).value == []


class Novel(ast.stmt):
    """A statement that no version has."""

    _fields = ()


@pytest.mark.contract("F26", "F42")
@pytest.mark.parametrize("place", ["statement", "expression"])
def test_syntax_that_the_language_does_not_know_is_refused_by_name(place: str) -> None:
    module = ast.parse("x = 1\nif x:\n    y = [1, 2]")
    if place == "statement":
        module.body.append(ast.copy_location(Novel(), module.body[1]))
    else:
        novel = ast.copy_location(type("NovelExpression", (ast.expr,), {"_fields": ()})(), module.body[1])
        module.body[1].body[0].value.elts.append(novel)  # type: ignore[attr-defined]
    name = "Novel" if place == "statement" else "NovelExpression"
    with pytest.raises(SyntaxError, match=f"^{name} is not available in this sandbox") as refused:
        rewrite(module, "x = 1\nif x:\n    y = [1, 2]")
    assert refused.value.lineno == 2
