# ruff: noqa: E501 - each line is a program's own
"""Ways out of a restricted language, each as a program that returns a text starting with `REACHED` where it gets through.

The names say what kind of way it is; those of known advisories are theirs.
"""

from __future__ import annotations

__all__ = ["ESCAPES", "REFUSED"]

_TEXT = """
# CVE-2023-37271 frames of generators
g = (g.gi_frame.f_back.f_back for _ in [1])
return "REACHED" + str([x for x in g][0])
# CVE-2023-37271 frames of generators by computed names
def g(): yield 1
return "REACHED" + str(getattr(getattr(g(), "gi" + "_frame"), "f_" + "globals"))
# CVE-2023-41039 format method of the class
class X: pass
return "REACHED" + str.format("{0.__init__.__globals__}", X)
# CVE-2023-41039 format_map
return "REACHED" + "{x.__class__}".format_map({"x": 1})
# CVE-2023-41039 format of a subclass, by super
class S(str):
    def go(self): return super().format(1)
return "REACHED" + S("{0.__class__}").go()
# CVE-2024-47532 AttributeError.obj
try: tools.nothing_here
except AttributeError as e:
    o = e.obj
    return "none" if o is None else "REACHED" + repr(o)
# CVE-2024-47532 AttributeError.obj by getattr
try: tools.nothing_here
except AttributeError as e:
    for get in (lambda: getattr(e, "obj"), lambda: e.__getattribute__("obj"), lambda: vars(e)["obj"], lambda: "{0.obj}".format(e)):
        try:
            if get() not in (None, "None"): return "REACHED"
        except (AttributeError, TypeError): pass
return "refused"
# CVE-2024-47532 string module
import string
return "REACHED" + str(string._re)
# CVE-2025-22153 try except star
class E(Exception): pass
try: raise ExceptionGroup("g", [E()])
except* E as e: return "REACHED" + str(e)
# CVE-2026-55830 positional-only parameter shadows a guard
def f(_getattr_, _write_=None, _getitem_=None, /): return ().__class__
return "REACHED" + str(f(lambda o, n: "shadowed"))
# CVE-2026-55830 a parameter with the name of a guard
def f(**names): return names
f(**{"<guard: write to>": lambda t, n: t})
import json
json.dumps = 1
return "REACHED"
# CVE-2026-76825 Formatter.get_field
import string
return "REACHED" + str(string.Formatter().get_field("0.__class__", (1,), {})[0])
# CVE-2026-76825 Formatter subclass
import string
class F(string.Formatter):
    def get_value(self, key, args, kwargs): return json_dumps
import json
json_dumps = json.dumps
return "REACHED" + F().format("{0.__globals__}")
# CVE-2026-76825 Formatter of the base
import string
class F(string.Formatter): pass
return "REACHED" + str(F.mro()[-2].get_field(F(), "0.__class__", (1,), {}))
# CVE-2025-5120 a module inside an allowed module
import random, statistics, queue
return "REACHED" + str(random._os.getcwd())
# CVE-2025-5120 submodule through an allowed package
import json.decoder, asyncio.base_events, collections.abc
return "REACHED" + str(asyncio.base_events.os)
# CVE-2025-5120 from import of a submodule
from asyncio import base_events
return "REACHED" + str(base_events.os)
# CVE-2025-9959 dunder by a string
n = "__" + "cla" + "ss__"
return "REACHED" + str(getattr((), n))
# CVE-2025-9959 dunder by a template
t = "{0.__" + "class__}"
return "REACHED" + t.format(())
# CVE-2025-9959 dunder by a mapping of the instance
class A: pass
return "REACHED" + str(vars(A)["__" + "dict__"])
# source text in the name of a field of make_dataclass
import contextlib, io
from dataclasses import make_dataclass
class Name(str):
    def isidentifier(self): return True
    def __format__(self, spec):
        global asked
        asked += 1
        return "x=print('REACHED', ().__class__.__base__),y" if asked == at else "x"
with contextlib.redirect_stdout(io.StringIO()) as out:
    for at in range(1, 30):
        asked = 0
        try: make_dataclass("D", [(Name("x"), int, 1)])
        except Exception as error: told = repr(error)
return out.getvalue() or told
# source text in the name of a field that a base is given
from dataclasses import dataclass, MISSING
import contextlib, io
class Same:
    def __eq__(self, other): return True
class Field:
    name = "y:print('REACHED', ().__class__.__base__)=1, *, z"
    init, kw_only, repr, compare, hash, type = True, False, False, False, None, int
    default, default_factory = MISSING, MISSING
    def __init__(self): self._field_type = Same()
@dataclass
class A:
    x: int
A.__dataclass_fields__["y"] = Field()
try:
    @dataclass
    class B(A):
        w: int
except SyntaxError as error:
    return "REACHED" + repr(error)
return "REACHED" if len(B.__dataclass_fields__) > 2 else "no field"
# a field whose name is __class__
from dataclasses import make_dataclass
class Other: pass
D = make_dataclass("D", [("__class__", object)])
return "REACHED" + str(type(D(Other)))
# dunder by a pattern with run-time names
from dataclasses import make_dataclass
P = make_dataclass("P", ["gi_frame"])
from abc import ABC
class Q(P, ABC): pass
def g(): yield 1
x = g()
Q.register(type(x))
match x:
    case Q(f): return "REACHED" + str(f)
return "no match"
# raw format by a pattern
from dataclasses import dataclass
from abc import ABC
@dataclass
class P(ABC):
    format: str
P.register(str)
match "{0.__class__}":
    case P(f): return "REACHED" + f(1)
return "no match"
# raw format by a protocol and a keyword pattern
from typing import Protocol, runtime_checkable
@runtime_checkable
class P(Protocol):
    __match_args__ = ("format",)
    format: str
match "{0.__class__}":
    case P(f): return "REACHED" + f(1)
return "no match"
# __match_args__ changed after the class is made
class P:
    __match_args__ = ["x"]
    x = 1
P.__match_args__.append("__class__")
match P():
    case P(a, b): return "REACHED" + str(b)
# __match_args__ by setattr
class P: pass
setattr(P, "__match" + "_args__", ("__class__",))
match P():
    case P(c): return "REACHED" + str(c)
# three-argument type by a metaclass of another class
import enum, abc
class C(enum.Enum): A = 1
class K(abc.ABC): pass
for t in (type(C), type(K), type(type(C)), type(int), type[int], abc.ABCMeta, enum.EnumMeta, enum.EnumType):
    try: made = t("K", (), {"__getattribute__": lambda s, n: n})
    except TypeError: continue
    return "REACHED" + str(made)
return "refused"
# functional enumeration with special names
from enum import Enum
E = Enum("E", {"__reduce_ex__": lambda s, p: (str, ())})
return "REACHED" + str(E)
# functional enumeration whose names lie
from enum import Enum
class N(str):
    def startswith(self, *a): return False
E = Enum("E", [(N("__reduce_ex__"), 1)])
return "REACHED" + str(E)
# private converter of enumerations
from enum import Enum
class C(Enum): pass
return "REACHED" + str(list(C._convert_("X", "posixpath", lambda n: n == "os")))
# copy with a reductor in the instance
import copy
class A: pass
class P: pass
a = A()
vars(a)["__reduce_ex__"] = lambda p: (lambda: P, (), (None, {"__match_args__": ("__class__",)}))
copy.deepcopy(a)
match P():
    case P(c): return "REACHED" + str(c)
# copy with a reductor that hides itself
import copy
class A: pass
class P: pass
a = A()
def say(protocol):
    vars(a).clear()
    return (lambda: P, (), (None, {"__match_args__": ("__class__",)}))
vars(a)["__reduce_ex__"] = say
copy.deepcopy(a)
match P():
    case P(c): return "REACHED" + str(c)
# copy with __new__ that gives another object
import copy
class P: pass
class A:
    __slots__ = ("shared",)
    def __new__(cls): return P
a = object.__new__(A)
a.shared = 1
copy.copy(a)
return "REACHED" if hasattr(P, "shared") else "unchanged"
# copy shows what a guard is made of, in the memo
import copy
class Memo(dict):
    seen = []
    def __setitem__(self, k, v): self.seen.append(v); super().__setitem__(k, v)
memo = Memo()
for one in (getattr, str.format, "{0.__class__}".format, setattr, vars, type):
    try: copy.deepcopy(one, memo)
    except (TypeError, copy.Error): pass
kept = [k for v in memo.values() if isinstance(v, list) for k in v]
return "REACHED" + str(kept) if any(type(v).__name__ not in ("list", "str") for v in memo.seen + kept) else "nothing"
# copy shows what a queue is made of, in the memo
import copy, asyncio
q = asyncio.Queue()
try: await asyncio.wait_for(q.get(), 0.01)
except asyncio.TimeoutError: pass
memo = {}
class Peek:
    def __deepcopy__(self, memo): kept.append(dict(memo)); return self
kept = []
call = tools.echo(value=1)
for one in (q, asyncio.Lock(), asyncio.current_task(), tools, call):
    try: copy.deepcopy([one, Peek()], memo)
    except (TypeError, copy.Error): pass
await call
names = {type(v).__name__ for m in [memo, *kept] for v in m.values()} | {type(x).__name__ for v in memo.values() if isinstance(v, list) for x in v}
return "REACHED" + str(names) if names & {"Queue", "GuestLoop", "deque", "CallLedger"} else "nothing"
# a task with a loop of the program's own
import asyncio
class Loop:
    def get_debug(self): return False
    def call_soon(self, callback, *args, context=None): self.got = [callback, args, context]
loop = Loop()
async def f(): pass
for make in (lambda: asyncio.Task(f(), loop=loop), lambda: type(asyncio.current_task())(f(), loop=loop), lambda: asyncio.Future(loop=loop).set_result(1)):
    try: make()
    except TypeError: pass
return "REACHED" + str(loop.got) if hasattr(loop, "got") else "refused"
# a future of the program's own
import asyncio
class F:
    _asyncio_future_blocking = False
    def get_loop(self): return self
    def get_debug(self): return False
    def add_done_callback(self, callback, *, context=None): self.got = callback
    def call_soon(self, callback, *args, context=None): self.got = context
    def __await__(self): yield self
f = F()
for make in (lambda: asyncio.gather(f), lambda: asyncio.shield(f), lambda: asyncio.ensure_future(f)):
    try: make()
    except (TypeError, AttributeError): pass
await asyncio.sleep(0)
return "REACHED" + str(f.got) if hasattr(f, "got") else "refused"
# copy of a dataclass by asdict
from dataclasses import dataclass, asdict
class P: pass
@dataclass
class D: v: object
class A: pass
a = A()
vars(a)["__reduce_ex__"] = lambda p: (lambda: P, (), (None, {"__match_args__": ("__class__",)}))
asdict(D(a))
return "REACHED" if hasattr(P, "__match_args__") else "unchanged"
# wraps with names of its own
import functools, json
seen = {}
class W:
    def __setattr__(self, n, v): seen[n] = v
functools.update_wrapper(W(), json.dumps, assigned=("__globals__", "__code__"), updated=())
return "REACHED" + str(sorted(seen)) if "__globals__" in seen or "__code__" in seen else "refused"
# wraps with names to update
import functools, json
class D(dict): pass
class W:
    kept = D()
    def __getattr__(self, n): return self.kept
functools.update_wrapper(W(), json.dumps, assigned=(), updated=("__globals__",))
return "REACHED" if "__builtins__" in W.kept or "dumps" in W.kept else "refused"
# single dispatch evaluates an annotation
import functools
@functools.singledispatch
def f(x): return 1
@f.register
def _(x: "().__class__.__base__.__subclasses__() and int"): return 2
return "REACHED"
# type hints evaluate text
import typing
class A: x: "().__class__.__base__"
return "REACHED" + str(typing.get_type_hints(A))
# forward references evaluate text
import typing
r = typing.get_args(typing.List["().__class__"])[0]
for n in ("evaluate", "_evaluate"):
    try: return "REACHED" + str(getattr(r, n)({}, {}, frozenset()))
    except (AttributeError, TypeError): pass
return "refused"
# dataclass of a class of the library
import dataclasses, json
dataclasses.dataclass(json.JSONEncoder)
return "REACHED"
# writing to a class of the library
import json
json.JSONEncoder.default = lambda s, o: "x"
return "REACHED"
# writing to a class of the library by setattr
import collections
setattr(collections.Counter, "total", None)
return "REACHED"
# writing to a class of the library by the class of an instance
import fractions
type(fractions.Fraction(1)).limit = 1
return "REACHED"
# writing by object.__setattr__
import json
class A:
    def go(self): object.__setattr__(json, "dumps", 1)
A().go()
return "REACHED"
# writing by super().__setattr__ with a special name
class A:
    def go(self): super().__setattr__("__class__", int)
A().go()
return "REACHED"
# writing a slot by its descriptor
import dataclasses
@dataclasses.dataclass
class D: x: int
f = dataclasses.fields(D)[0]
type(f).name.__set__(f, "__class__")
return "REACHED"
# augmented assignment reads a guarded name
class R:
    def __radd__(self, o): self.got = o; return o
r = R()
try: tools.nothing_here
except AttributeError as e:
    e.obj += r
return "REACHED" + str(r.got)
# private attributes of the library through a subclass
import asyncio
class Q(asyncio.Queue): pass
return "REACHED" + str(Q()._get_loop())
# private attributes of the library through a name of the class
import asyncio
class Lock: pass
return "REACHED" + str(asyncio.Lock()._get_loop())
# private attributes of the library by mangling
import asyncio
class Queue:
    def go(self, q): return q.__loop
class _Q:
    def go(self, q): return q._loop
return "REACHED" + str(_Q().go(asyncio.create_task(asyncio.sleep(0))))
# private attribute that a base of the library has, uncovered
from enum import Enum
class C(Enum):
    A = 1
    _member_names_ = None
return "REACHED" + str(C._member_map_)
# a context manager gets a traceback
class M:
    def __exit__(self, t, e, tb): self.f = getattr(tb, "tb_" + "frame"); return True
    def __enter__(self): return self
m = M()
with m: 1 / 0
return "REACHED" + str(m.f)
# a context manager gets a traceback, written out
class M:
    def __enter__(self): return self
    def __exit__(self, t, e, tb): return tb.tb_frame
with M(): pass
return "REACHED"
# the traceback of an exception
try: 1 / 0
except ZeroDivisionError as e: return "REACHED" + str(e.__traceback__.tb_frame)
# the context of an exception by getattr
try:
    try: 1 / 0
    except ZeroDivisionError: {}["k"]
except KeyError as e: return "REACHED" + str(getattr(e, "__context__"))
# a task leads to its frames
import asyncio
return "REACHED" + str(asyncio.current_task().get_stack())
# a task leads to the loop
import asyncio
return "REACHED" + str(asyncio.ensure_future(asyncio.sleep(0)).get_loop())
# a pending call leads to the host's side
k = tools.echo(value=1)
f = next(k.__await__())
return "REACHED" + str(f.get_loop())
# a pending call has private parts
k = tools.echo(value=1)
return "REACHED" + str(k._inner)
# names of the program's own module
import __main__
return "REACHED" + str(__main__)
# builtins replaced by a future import
from __future__ import annotations as __builtins__
return "REACHED"
# builtins by assignment
__builtins__ = {}
return "REACHED"
# builtins as a name
return "REACHED" + str(__builtins__)
# the importer of the builtins
imp = __import__
return "REACHED" + str(imp("_strptime").sys)
# the builder of classes
b = __build_class__
return "REACHED"
# loader, spec and file
return "REACHED" + str([__loader__, __spec__])
# star import of a private name
from json import *
return "REACHED" + str(codecs)
# mangled import
class A:
    import json as __j
    def go(self): return self.__j.codecs
return "REACHED" + str(A().go())
# subclasses of object
return "REACHED" + str(object.__subclasses__())
# mro by super
class A:
    def go(self): return super(A, A).mro()
return "REACHED" + str(A().go())
# mro through an alias
import typing
return "REACHED" + str(typing.List[int].mro())
# raw getattribute of object
return "REACHED" + str(object.__getattribute__((), "__class__"))
# raw getattribute by super
class A:
    def go(self): return super().__getattribute__("__class__")
return "REACHED" + str(A().go())
# special attribute by methodcaller
import operator
return "REACHED" + str(operator.methodcaller("__reduce_ex__", 2)([]))
# special attribute by attrgetter of several
import operator
return "REACHED" + str(operator.attrgetter("real", "__class__")(1))
# special attribute by a lying string
class S(str):
    def __eq__(self, o): return False
    def __hash__(self): return 1
    def startswith(self, *a): return False
import operator
return "REACHED" + str(operator.attrgetter(S("__class__"))(1))
# special attribute in a nested format specification
class F:
    def __format__(self, spec): self.got = spec; return ""
f = F()
try: "{0:{1.__class__}}{".format(f, 1)
except (ValueError, AttributeError): pass
return "REACHED" + f.got if hasattr(f, "got") else "refused"
# special attribute in a format of a subclass of str
class S(str):
    def __str__(self): return "{}"
return "REACHED" + S("{0.__class__}").format(1)
# special attribute by partial of format
import functools
return "REACHED" + functools.partial(str.format, "{0.__class__}")(1)
# special attribute by map of format
return "REACHED" + list(map("{0.__class__}".format, [1]))[0]
# module in a repr
import json
return "REACHED" if "/" in repr(json) + str(json) else "no path"
# paths in the repr of a task
import asyncio
async def f(): await asyncio.sleep(0)
t = asyncio.create_task(f())
t.add_done_callback(print)
g = asyncio.gather(f(), f())
await asyncio.sleep(0)
return "REACHED" if "/" in repr(t) + repr(g) + repr(asyncio.current_task()) + repr(asyncio.all_tasks()) else "no path"
# paths in a warning
import warnings, io, contextlib
b = io.StringIO()
with contextlib.redirect_stderr(b): warnings.warn("x", stacklevel=4)
return "REACHED" if ".py" in b.getvalue() else "no path"
# code of a function
def f(): pass
return "REACHED" + str(f.__code__)
# code of a function by dir
def f(): pass
return "REACHED" if any(n.startswith("__") for n in dir(f)) else "none"
# closure and defaults
def f(a=[]): return a
return "REACHED" + str(f.__defaults__)
# a metaclass of the program's own
class M(type): pass
class A(metaclass=M): pass
return "REACHED"
# a class with __getattribute__
class A:
    def __getattribute__(self, n): return 1
return "REACHED"
# a class with a lying __class__
class A:
    @property
    def __class__(self): return int
return "REACHED"
# a class with __instancecheck__
class A:
    def __instancecheck__(self, o): return True
return "REACHED"
# a class that inherits from a guard
class A(type(len)): pass
return "REACHED"
# a class that inherits from a task
import asyncio
class A(asyncio.Task): pass
return "REACHED"
# a class that inherits from an unsafe base by make_dataclass
import asyncio
from dataclasses import make_dataclass
D = make_dataclass("D", ["x"], bases=(asyncio.Queue,))
return "REACHED"
# a class that inherits from a queue
import asyncio
class Q(asyncio.Queue): pass
return "REACHED"
# copy of a mapping with __new__ that gives another object
import json
from collections import UserDict
class D(UserDict):
    def __new__(cls): return json
d = UserDict.__new__(D)
d.data = {}
d.dumps = "poisoned"
d.__copy__()
return "REACHED" if json.dumps == "poisoned" else "unchanged"
# slots changed after the class is made
class A:
    __slots__ = ["a"]
A.__slots__.append("__class__")
return "REACHED"
# special attribute by getattr with a lying string
class S(str):
    def startswith(self, *a): return False
    def endswith(self, *a): return False
return "REACHED" + str(getattr((), S("__class__")))
# raw format by a keyword pattern
match "{0.__class__}":
    case str(format=f): return "REACHED" + f(1)
# a class that a namespace of make_dataclass gives special methods
from dataclasses import make_dataclass
D = make_dataclass("D", ["x"], namespace={"__reduce_ex__": lambda s, p: (str, ())})
return "REACHED"
# special names by a loop in a class
class A:
    for __match_args__ in [("__class__",)]: pass
return "REACHED"
# special names by a walrus in a class
class A:
    x = (__slots__ := ["a"])
return "REACHED"
# special names by a nested function of a class
class A:
    def f(self):
        def __reduce_ex__(s, p): return 1
        return __reduce_ex__
A.__reduce_ex__ = A().f()
return "REACHED"
# special names by decorated definitions
class A:
    @staticmethod
    def __subclasshook__(o): return True
return "REACHED"
# special names with letters that Python normalises
return "REACHED" + str(()._\uff3fclass_\uff3f)
"""

REFUSED: dict[str, tuple[str, list[str]]] = {
    "one construct": ("x = 1\nreturn ().__subclasses__()", ["line 2", "'__subclasses__'", "keep your own list"]),
    "several constructs": (
        "a = x.__globals__\nb = open('f')\nc = eval('1')\nd = f.__code__\ne = g.gi_frame\nh = y.__mro__\ni = exec('')",
        ["line 1", "line 2: open()", "line 3: eval()", "line 4: ", "line 5: ", "and 2 more"],
    ),
    "open": ("with open('x') as f: pass", ["there are no files", "io.StringIO"]),
    "input": ("name = input('?')", ["input() is not available"]),
    "except star": ("try:\n    pass\nexcept* ValueError:\n    pass", ["except ExceptionGroup as group"]),
    "relative import": ("from . import x", ["relative imports"]),
    "private import": ("from random import _os", ["random._os"]),
    "special method": ("class A:\n    def __reduce__(self): pass", ["line 2", "'__reduce__'"]),
    "traceback": ("def f(e):\n    return e.__traceback__", ["traceback.format_exc()"]),
    "augmented": ("e.obj += 1", ["write `x.obj"]),
}
"""Programs that are refused before they run, and what the refusal says."""


def _split(text: str) -> dict[str, str]:
    programs: dict[str, str] = {}
    name = ""
    for line in text.strip("\n").split("\n"):
        if line.startswith("# "):
            name = line[2:]
            programs[name] = ""
        else:
            programs[name] += line + "\n"
    return programs


ESCAPES = _split(_TEXT)
