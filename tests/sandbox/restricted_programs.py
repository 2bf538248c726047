# ruff: noqa: E501 - each line is a program's own
"""Programs of everyday Python, one for each construct, module and error: in the restricted language each must give what
plain Python gives.

Each is the body of an async function, and ends with `return`. The first line of each names it.
"""

from __future__ import annotations

__all__ = ["PROGRAMS"]

_TEXT = '''
# assignment of every form
a, b = 1, 2
a, b = b, a
(x, (y, *z)), w = (1, (2, 3, 4)), 5
[p, q] = [8, 9]
first, *rest = "abc"
d = {}
d["k"], d["j"] = 1, 2
e = f = []
n: int = 3
m: str
d["k"] += 5; d["j"] <<= 2
n **= 2; n //= 2; n ^= 1
e += [1]; e *= 2
del d["j"], first
l = list(range(6)); l[1:3] = [9]; del l[0]; l[-1] += 1
return [a, b, x, y, z, w, p, q, rest, d, f, n, l, l[::2], l[:-1]]
# attributes written in every form
class Box: pass
o = Box(); o.a = 1; o.a += 2; o.b: int = 5; o.c, o.d = 1, 2
for o.i in range(3): pass
from contextlib import nullcontext
with nullcontext(7) as o.w: pass
[o.s, *o.t] = [1, 2, 3]
o.child = Box(); o.child.deep = []; o.child.deep += [1]
calls = []
def get():
    calls.append(1)
    return o
get().a += 1
get()._p = 1
get()._p += 1
del o.d
return [o.a, o.b, o.c, hasattr(o, "d"), o.i, o.w, o.s, o.t, o.child.deep, len(calls), o._p, sorted(vars(o))]
# await inside targets
async def f(v): return v
out = []
for x in await f([1, 2]): out.append(x)
a, b = await f((3, 4))
x += await f(5)
d = {"n": 1}
d["n"] += await f(2)
class O: n = 1
o = O()
o.n += await f(9)
if (y := await f(6)) > 5: out.append(y)
return [out, a, b, x, d, o.n, [await f(i) for i in range(3)], {k: await f(k) for k in "ab"}]
# comprehensions
m = [[i * j for j in range(3)] for i in range(3)]
flat = [v for row in m for v in row if v if v % 2 == 0]
async def ag(n):
    for i in range(n):
        yield i
s = {x % 3 for x in range(10)}
g = (x for x in range(3))
return [m, flat, sorted(s), list(g), [x async for x in ag(3)], {str(x): x async for x in ag(2)}, sum(x for x in range(5)),
        [y for x in range(4) if (y := x * 2) > 2], y, sorted([x async for x in ag(3) if x])]
# functions
def f(a, b=2, /, c=3, *args, d, e=5, **kw): return [a, b, c, args, d, e, kw]
def g(*, x: int = 1) -> int: return x
h = lambda *a, k=1, **kw: (a, k, kw)
args, kw = (1, 2, 3, 4), {"d": 6, "z": 7}
def deco(n):
    def wrap(fn):
        def inner(*a, **k): return fn(*a, **k) * n
        inner.__name__ = fn.__name__
        inner.calls = 0
        return inner
    return wrap
@deco(2)
@deco(3)
def one(): return 1
def outer():
    n = 0
    def inc():
        nonlocal n
        n += 1
        return n
    inc(); return inc()
def doc():
    """Text."""
return [f(1, d=4), f(*args, **kw), g(x=2), h(1, *[2], k=3, **{"q": 4}), one(), one.__name__, outer(), doc.__doc__, g.__name__,
        (lambda: (yield))().send(None), [*args, *"ab"], {**kw, "d": 0}]
# generators
def gen():
    got = yield 1
    try:
        yield got
    except ValueError as e:
        yield str(e)
    finally:
        yield "end"
    return "value"
def both():
    r = yield from gen()
    yield r
g = gen(); out = [next(g), g.send("x"), g.throw(ValueError("v")), next(g)]
h = gen(); next(h); h.close()
def count(n):
    while n:
        n -= 1
        yield n
return [out, list(both()), list(count(3)), next(count(0), "none")]
# async generators and context managers
from contextlib import asynccontextmanager, contextmanager, ExitStack, AsyncExitStack, suppress, closing
log = []
class A:
    async def __aenter__(self): log.append("in"); return self
    async def __aexit__(self, t, e, tb): log.append(t.__name__ if t else None); return True
async with A() as a, A():
    raise KeyError(1)
@asynccontextmanager
async def am(x):
    log.append(x)
    try: yield x * 2
    finally: log.append("out")
async with am(2) as v: log.append(v)
@contextmanager
def cm():
    yield 1
with cm() as c, suppress(ZeroDivisionError): 1 / 0
with ExitStack() as st:
    st.callback(log.append, "cb"); st.enter_context(cm())
async with AsyncExitStack() as st: await st.enter_async_context(am("z"))
async def ag():
    try:
        yield 1
        yield 2
    finally:
        log.append("closed")
it = ag()
first = await anext(it)
await it.aclose()
class It:
    def __init__(self): self.n = 0
    def __aiter__(self): return self
    async def __anext__(self):
        self.n += 1
        if self.n > 2: raise StopAsyncIteration
        return self.n
return [log, first, [x async for x in It()]]
# exceptions
out = []
class Mine(ValueError):
    def __init__(self, code, *, note=None):
        super().__init__(f"code {code}")
        self.code, self._note = code, note
    def __str__(self): return f"<{self.code}:{self._note}>"
try:
    try: raise Mine(3, note="n")
    except Mine as e:
        out.append([str(e), repr(e), e.args, e.code])
        raise RuntimeError("outer") from e
    else: out.append("never")
    finally: out.append("finally")
except (RuntimeError, KeyError) as e:
    out.append([str(e), str(e.__cause__), type(e.__cause__).__name__, e.__class__.__name__])
def f():
    try: return 1
    finally: out.append("f")
f()
for bad in (lambda: 1 / 0, lambda: {}["k"], lambda: [][3], lambda: int("x"), lambda: None.x, lambda: "a" + 1, lambda: (1).real.y,
            lambda: nope, lambda: len(5), lambda: [1].index(2), lambda: next(iter([])), lambda: float("q"), lambda: f(1),
            lambda: {}.missing, lambda: b"\\xff".decode(), lambda: [].pop(), lambda: {1: 2}.popitem()[5], lambda: "".foo):
    try: bad()
    except Exception as e: out.append([type(e).__name__, str(e)])
try: assert 1 == 2, "msg"
except AssertionError as e: out.append(str(e))
try: raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
except ExceptionGroup as g: out.append([g.message, [str(x) for x in g.exceptions], g.split(ValueError)[0].exceptions[0].args])
try:
    try: 1 / 0
    except: raise
except ArithmeticError as e: e.add_note("n"); out.append(e.__notes__)
return out
# classes
class Base:
    count = 0
    _made = []
    def __init__(self, n): self.n = n; self._p = n; self.__q = n; Base.count += 1; Base._made.append(n)
    def __repr__(self): return f"{type(self).__name__}({self.n!r})"
    def __eq__(self, other): return isinstance(other, Base) and self.n == other.n
    def __hash__(self): return hash(self.n)
    def __lt__(self, other): return self.n < other.n
    def __add__(self, other): return type(self)(self.n + other.n)
    __radd__ = lambda self, other: self
    def __iadd__(self, other): self.n += other; return self
    def __getitem__(self, k): return [self.n, k]
    def __setitem__(self, k, v): self.set = (k, v)
    def __delitem__(self, k): self.gone = k
    def __len__(self): return 3
    def __contains__(self, x): return x == 1
    def __call__(self, *a): return a
    def __iter__(self): return iter([1, 2])
    def __bool__(self): return False
    def __enter__(self): return self
    def __exit__(self, *a): return False
    def __getattr__(self, name): return f"dyn {name}"
    def __format__(self, spec): return f"[{spec}]"
    def _inner(self): return self.__q
    @property
    def size(self): return self._p
    @size.setter
    def size(self, v): self._p = v
    @classmethod
    def make(cls, *a): return cls(*a)
    @staticmethod
    def st(x): return x * 2
class Child(Base):
    def __init__(self, n, extra): super().__init__(n); self.extra = extra
    def _inner(self): return [super()._inner(), self.extra]
    @classmethod
    def make(cls, *a): return cls(*a, "e")
    def __setattr__(self, k, v): super().__setattr__(k, v)
    def name(self): return self.__class__.__name__
b, c = Base(2), Child.make(5)
b.size = 9; b += 1; b[0] = 1; del b["x"]; c.extra += "!"
return [repr(b), repr(c), b == Base(3), [repr(v) for v in sorted([c, b])], len({b, Base(3)}), repr(b + c), b["k"], b.set, b.gone, len(b), 1 in b, b(1), list(b),
        bool(b), b.size, Base.st(3), c._inner(), c.name(), b.missing, f"{b:>3}", Base.count, Base._made[:2], sum([b], 0) is b,
        isinstance(c, Base), issubclass(Child, Base), Child.__name__, c.__dict__, vars(b), hasattr(c, "extra"), str(type(c))]
# class machinery
class Plugin:
    registry = {}
    def __init_subclass__(cls, /, key=None, **kw):
        super().__init_subclass__(**kw)
        cls.key = key
        cls._tag = key
        Plugin.registry[key] = cls
class P1(Plugin, key="a"): pass
class P2(Plugin, key="b"): pass
class Field:
    def __set_name__(self, owner, name): self.name = name
    def __get__(self, obj, owner=None): return self if obj is None else obj.__dict__.get(self.name, 0)
    def __set__(self, obj, value): obj.__dict__[self.name] = value * 2
class M: f = Field()
m = M(); m.f = 4
class Single:
    _instance = None
    def __new__(cls, *a):
        if cls._instance is None: cls._instance = super().__new__(cls)
        return cls._instance
class Meters(float):
    def __new__(cls, v): return super().__new__(cls, v * 2)
class Tpl(tuple):
    def __new__(cls, *a): return tuple.__new__(cls, a)
class Sl:
    __slots__ = ("a", "_b")
    def __init__(self): self.a = 1; self._b = 2
    def both(self): return self.a + self._b
class Count(dict):
    def __missing__(self, k): return k * 2
class Chain(list):
    def push(self, x): self.append(x); return self
try: Sl().zzz = 1
except AttributeError as e: err = str(e)
class G:
    def __class_getitem__(cls, i): return i
class Mixin:
    def hello(self): return f"hi {self.name}"
class Multi(Mixin, M): name = "x"
return [sorted(Plugin.registry), P1.key, P2._tag, m.f, M.f.name, Single() is Single(), Meters(2), list(Tpl(1, 2)), Sl().both(), err,
        Count()["a"], Chain().push(1), G[3], Multi().hello(), [k.__name__ for k in (P1, P2)], Sl.__slots__]
# dataclasses
from dataclasses import dataclass, field, asdict, astuple, replace, fields, is_dataclass, make_dataclass, InitVar, FrozenInstanceError
@dataclass
class A:
    x: int
    y: list = field(default_factory=list)
    z: str = "z"
    _p: int = 0
    def __post_init__(self): self.total = self.x + len(self.y)
@dataclass(frozen=True, order=True)
class F:
    n: int
    m: int = field(default=1, compare=False, repr=False)
    def __post_init__(self): object.__setattr__(self, "n", self.n + 1)
@dataclass(slots=True, kw_only=True)
class S:
    a: int
    format: str = "f"
@dataclass
class B(A):
    w: InitVar[int] = 3
    def __post_init__(self, w): super().__post_init__(); self.w2 = w
out = [repr(A(1)), A(1) == A(1), asdict(A(1, [2])), astuple(A(1)), A(1, [1]).total, repr(F(3)), F(1) < F(2), hash(F(1)) == hash(F(1)),
       repr(S(a=1)), repr(replace(F(5), n=9)), [f.name for f in fields(A)], is_dataclass(A), B(1, w=4).w2, A.__doc__]
try: F(1).n = 2
except FrozenInstanceError as e: out.append(str(e))
try: A()
except TypeError as e: out.append(str(e))
Pt = make_dataclass("Pt", [("x", int), "y"], namespace={"s": lambda self: self.x + self.y})
out.append([repr(Pt(1, 2)), Pt(1, 2).s(), S(a=2).format])
match A(1, [2]):
    case A(x=1, y=[q]): out.append(q)
match F(0):
    case F(n): out.append(n)
return out
# enumerations
from enum import Enum, EnumType, IntEnum, StrEnum, Flag, IntFlag, auto, unique
class C(Enum):
    RED = "r"
    BLUE = "b"
    ALIAS = "r"
    @property
    def nice(self): return self.name.title()
    @classmethod
    def _missing_(cls, v): return cls.BLUE
    def __str__(self): return f"C:{self.value}"
class N(IntEnum):
    A = 1
    B = auto()
class S(StrEnum):
    X = auto()
    Y = "why"
class P(Flag):
    R = auto(); W = auto(); X = R | W
class Q(IntFlag):
    A = 1; B = 2
class Planet(Enum):
    E = (5.9, 6.3)
    M = (0.6, 3.3)
    def __init__(self, mass, radius): self.mass = mass; self._radius = radius
    def ratio(self): return round(self.mass / self._radius, 2)
class L(Enum):
    def __new__(cls, v, label):
        o = object.__new__(cls); o._value_ = v; o.label = label
        return o
    A = (1, "one")
class O(str, Enum):
    A = "a"
class W(Enum):
    def _generate_next_value_(name, start, count, last_values): return name.lower()
    AA = auto()
F = Enum("F", "ONE TWO"); H = IntEnum("H", {"X": 5}); K = Enum("K", ["A", "B"], start=5)
out = []
try: unique(C)
except ValueError as e: out.append(str(e))
try: N(9)
except ValueError as e: out.append(str(e))
try: C.RED = 1
except AttributeError as e: out.append(str(e))
return [repr(C.RED), str(C.RED), C("r") is C.ALIAS, C["BLUE"].value, [c.name for c in C], len(C), C.RED.nice, C("zz").name, repr(N.B), str(N.B),
        N.B + 1, N.A < 2, str(S.X), S.Y.upper(), f"{S.Y}", repr(P.R | P.W), P.R in P.X, int(Q.A | Q.B), repr(Q.A), Planet.E.ratio(), L(1).label,
        O.A == "a", W.AA.value, repr(F.TWO), H.X + 0, K.B.value, C.RED in C, hash(C.RED) == hash(C.RED), list(C.__members__), type(C.RED).__name__,
        isinstance(C.RED, C), {C.RED: 1}[C.RED], out, C.RED.value, repr(C), type(C) is EnumType, isinstance(C, EnumType)]
# named tuples and typed dicts
from typing import NamedTuple, TypedDict, Optional, NotRequired
from collections import namedtuple
class R(NamedTuple):
    a: int
    b: Optional[str] = None
    def both(self): return f"{self.a}{self.b}"
P = namedtuple("P", "x y", defaults=[0]); Q = namedtuple("Q", ["format", "obj"])
class T(TypedDict, total=False):
    k: int
class U(T):
    z: NotRequired[str]
class Sub(P):
    def norm(self): return self.x + self.y
t: T = {"k": 1}
r = R(1)
match P(3, 4):
    case P(x, y): got = [x, y]
try: P()
except TypeError as e: err = str(e)
return [repr(r), r._asdict(), r._replace(a=2), r._fields, r.both(), repr(P(1)), P._make([1, 2]), list(P(1, 2)), t, T(k=2), U(z="q"), Sub(1, 2).norm(), got,
        err, repr(Sub(1)), r == (1, None), Q("f", 2).format, Q("f", 2).obj, R._field_defaults]
# match statements
class Pt:
    __match_args__ = ("x", "y")
    def __init__(self, x, y): self.x, self.y = x, y
def kind(v):
    match v:
        case None | True | False: return ["single", v]
        case 0 | 1.5: return "number"
        case int(n) if n > 100: return ["big", n]
        case int() | float() as num: return ["num", num]
        case "a" | "b": return "letter"
        case str(s): return ["text", s]
        case []: return "empty"
        case [x]: return ["one", x]
        case [x, *_, y] if x == y: return ["same ends", x]
        case (1, 2, *rest): return ["rest", rest]
        case [_, [inner, _]]: return ["inner", inner]
        case {"type": "order", "items": [{"id": i}, *_], **rest}: return ["order", i, rest]
        case {"type": t}: return ["type", t]
        case {}: return "mapping"
        case Pt(0, y): return ["y axis", y]
        case Pt(x=x, y=0): return ["x axis", x]
        case Pt(): return "point"
        case _: return "other"
values = [None, True, 0, 1.5, 500, 7, "a", "hey", [], [1], [3, 4, 3], (1, 2, 3), [0, [9, 8]], {"type": "order", "items": [{"id": 4}, 1], "q": 1},
          {"type": 3}, {"z": 1}, Pt(0, 5), Pt(3, 0), Pt(1, 1), {1, 2}, b"x"]
import enum
class E(enum.Enum): A = 1
match E.A:
    case E.A: last = "E.A"
return [[kind(v) for v in values], last]
# abstract classes, protocols and generics
from abc import ABC, ABCMeta, abstractmethod
from typing import Protocol, runtime_checkable, Generic, TypeVar, Any, Callable
T = TypeVar("T")
class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...
    @property
    @abstractmethod
    def name(self): ...
class Sq(Shape):
    name = "sq"
    def area(self): return 4
class Meta(metaclass=ABCMeta): pass
@runtime_checkable
class HasArea(Protocol):
    def area(self) -> float: ...
class Stack(Generic[T]):
    def __init__(self) -> None: self._items: list[T] = []
    def push(self, x: T) -> "Stack[T]": self._items.append(x); return self
    def __len__(self): return len(self._items)
try: Shape()
except TypeError as e: err = str(e)
return [Sq().area(), err, isinstance(Sq(), HasArea), isinstance(1, HasArea), len(Stack[int]().push(1)), isinstance(Sq, type), isinstance(Sq, ABCMeta), repr(list[int]), type(Sq) is ABCMeta]
# builtins
class K: v = 1
k = K(); setattr(k, "w", 2); delattr(k, "w")
it = iter([1, 2])
return [abs(-1), all([]), any([0, 1]), ascii("é"), bin(5), bool(""), list(bytearray(b"a")), list(bytes(2)), callable(len), chr(65), complex(1, 2).real, dict(a=1),
        divmod(7, 2), list(enumerate("ab", 1)), list(filter(None, [0, 1])), float("1.5"), format(3.14159, ".2f"), sorted(frozenset([2, 1])), getattr(k, "v"), getattr(k, "no", 5),
        hasattr(k, "w"), hash("a") == hash("a"), hex(255), int("ff", 16), isinstance(1, (int, str)), issubclass(bool, int), next(it), list(map(str, [1])), max([1, 3], key=lambda x: -x),
        min(3, 1), max([], default=0), oct(8), ord("a"), pow(2, 5, 7), list(range(5, 0, -2)), repr("x"), list(reversed([1, 2])), round(2.567, 1), sorted([3, 1], reverse=True),
        str(b"a", "ascii"), sum([1, 2], 10), tuple("ab"), type(1).__name__, type("") is str, list(zip("ab", [1, 2], strict=True)), slice(1, 2).start, bytes.fromhex("ff")[0], type(None).__name__,
        isinstance(int, type), isinstance(1, type), type(int) is type, repr(type(1)), type([]) == list, id(k) == id(k), memoryview(b"ab")[0], [type(v).__name__ for v in (1, "", None, [], len, K, lambda: 1)]]
# strings and formats
class P:
    x = 1
    _y = 2
    d = {"k": [7]}
    def __str__(self): return "P!"
p = P()
return ["{} {}".format(1, 2), "{1}{0}".format(1, 2), "{a:>5}|{b:<4}|".format(a=1, b="x"), "{0.x} {0.d[k][0]}".format(p), "{:{w}.{n}f}".format(3.14159, w=8, n=2), "{!r:>6}".format("a"), "{p}".format(p=p),
        "{k[a]}".format(k={"a": 1}), "{x}".format_map({"x": 3}), "%s %d %5.2f %(no)" % () if 0 else "%s-%d-%5.2f" % ("a", 3, 2.5), "%(a)s" % {"a": 1}, f"{p.x:03d} {p!s} {p._y} {'q':^5} {1 + 1=}", str.format("{}", 1),
        list(map("{}!".format, [1, 2])), getattr("{}", "format")(5), "a,b".split(","), "x".join("ab"), "abc"[::-1], "ß".casefold(), "a\\tb".expandtabs(2), "Ab".swapcase(), "{{}}".format()]
# string errors
out = []
for f in (lambda: "{}".format(), lambda: "{a}".format(b=1), lambda: "{".format(1), lambda: "{0[x]}".format({}), lambda: "{0.zz}".format(1), lambda: "{:d}".format("a"), lambda: "{} {0}".format(1), lambda: "%d" % "a", lambda: "{!z}".format(1)):
    try: out.append(f())
    except Exception as e: out.append([type(e).__name__, str(e)])
return out
# asyncio
import asyncio
out = []
async def job(n, d=0):
    await asyncio.sleep(d)
    if n < 0: raise ValueError(n)
    return n
out.append(await asyncio.gather(job(1), job(2, 0.01)))
out.append([repr(x) for x in await asyncio.gather(job(1), job(-1), return_exceptions=True)])
t = asyncio.create_task(job(3), name="t3"); out.append([await t, t.done(), t.result(), t.get_name()])
try: await asyncio.wait_for(asyncio.sleep(5), 0.01)
except asyncio.TimeoutError: out.append("timeout")
try:
    async with asyncio.timeout(0.01): await asyncio.sleep(5)
except TimeoutError: out.append("timeout2")
async with asyncio.TaskGroup() as tg: ts = [tg.create_task(job(i)) for i in range(3)]
out.append([x.result() for x in ts])
try:
    async with asyncio.TaskGroup() as tg: tg.create_task(job(-5))
except ExceptionGroup as g: out.append([str(e) for e in g.exceptions])
out.append(sorted([await f for f in asyncio.as_completed([job(1), job(2)])]))
done, pending = await asyncio.wait([asyncio.ensure_future(job(7))]); out.append([len(done), len(pending)])
q = asyncio.Queue()
async def worker():
    while True:
        x = await q.get(); out.append(x); q.task_done()
w = asyncio.create_task(worker())
for i in range(2): await q.put(i)
await q.join(); w.cancel()
try: await w
except asyncio.CancelledError: out.append(["cancelled", w.cancelled()])
sem, lock, ev = asyncio.Semaphore(1), asyncio.Lock(), asyncio.Event()
async with sem, lock: ev.set()
await ev.wait(); out.append([lock.locked(), ev.is_set()])
loop = asyncio.get_event_loop(); out.append(loop.time() > 0)
out.append(asyncio.run(job(9))); out.append(await asyncio.to_thread(len, "abc")); out.append(asyncio.iscoroutinefunction(job))
fut = loop.create_future(); fut.set_result(4); out.append(await fut)
return out
# collections, itertools and functools
from collections import Counter, defaultdict, deque, OrderedDict, ChainMap, UserDict
import itertools as it, functools, operator, heapq, bisect
c = Counter("abca"); c["z"] += 2; dd = defaultdict(list); dd["a"].append(1); dd["n"] += [2]
dq = deque([1, 2], maxlen=2); dq.append(3); od = OrderedDict(a=1); od.move_to_end("a")
@functools.lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
@functools.cache
def sq(x): return x * x
@functools.total_ordering
class V:
    def __init__(self, n): self.n = n
    def __eq__(self, o): return self.n == o.n
    def __lt__(self, o): return self.n < o.n
class L:
    @functools.cached_property
    def v(self): return [1]
@functools.singledispatch
def show(x): return "other"
@show.register(int)
def _(x): return "int"
@show.register
def _(x: str): return "str"
@functools.wraps(fib)
def wrapped(*a): return fib(*a)
class UD(UserDict):
    def __getitem__(self, k): return self.data[k] * 2
l = L(); h = [5, 1, 3]; heapq.heapify(h)
rows = [{"k": 1, "n": {"z": 5}}, {"k": 2, "n": {"z": 6}}]
class O: a = 1; b = "x"
O.sub = O
return [c.most_common(2), dict(dd), list(dq), od, ChainMap({"a": 1}, {"b": 2})["b"], fib(20), fib.cache_info().hits, sq(3), V(1) >= V(0), l.v is l.v, show(1), show("a"), show(None), wrapped.__name__,
        UD({"a": 2})["a"], list(it.chain([1], [2])), list(it.accumulate([1, 2, 3])), [list(g) for _, g in it.groupby("aab")], list(it.product("ab", [1])), list(it.islice(it.count(), 2)), list(it.pairwise([1, 2, 3])),
        functools.reduce(operator.add, [1, 2]), functools.partial(int, base=2)("11"), operator.itemgetter("k")(rows[0]), sorted(rows, key=operator.itemgetter("k"), reverse=True)[0]["k"], operator.attrgetter("a")(O),
        list(operator.attrgetter("a", "sub.b")(O)), operator.methodcaller("upper")("a"), heapq.nsmallest(2, h), heapq.heappop(h), bisect.bisect([1, 3], 2), sorted([2, 1], key=functools.cmp_to_key(lambda a, b: a - b)),
        list(it.zip_longest([1], [2, 3])), list(map(operator.mul, [1, 2], [3, 4])), [list(b) for b in it.combinations("abc", 2)], dict(Counter(a=3) - Counter(a=1))]
# dates and numbers
from datetime import datetime, date, timedelta, timezone, UTC
from zoneinfo import ZoneInfo
from decimal import Decimal, getcontext, localcontext, ROUND_HALF_UP
from fractions import Fraction
import math, cmath, statistics, calendar, time, random
d = datetime(2024, 2, 29, 12, tzinfo=UTC)
with localcontext() as ctx:
    ctx.prec = 5
    small = str(Decimal(1) / 3)
getcontext().prec = 10
r = random.Random(3)
random.seed(1)
return [d.isoformat(), (d + timedelta(days=1)).strftime("%d/%m/%Y"), datetime.strptime("2024-01-02", "%Y-%m-%d").year, str(d.astimezone(ZoneInfo("Europe/Paris"))), date(2024, 1, 1).weekday(), str(timedelta(hours=25)), (date(2024, 3, 1) - date(2024, 2, 1)).days,
        small, str(Decimal("1.005").quantize(Decimal("0.01"), ROUND_HALF_UP)), str(Decimal(1) / 3), str(Fraction(1, 3) + 1), math.pi, math.floor(2.5), math.comb(5, 2), cmath.sqrt(-1).imag, statistics.mean([1, 2]), statistics.stdev([1, 2, 4]), calendar.monthrange(2024, 2),
        calendar.month_name[2], time.strftime("%Y", time.gmtime(0)), r.random(), r.choice("abc"), random.randint(1, 100), d.replace(tzinfo=None).timestamp() > 0, f"{d:%Y-%m}", d.date().isoformat(), datetime.fromisoformat("2024-01-01T00:00:00+02:00").utcoffset().seconds, min(d, d).year, str(timezone(timedelta(hours=2)))]
# text and data modules
import json, re, csv, io, textwrap, string, base64, hashlib, hmac, uuid, html, difflib, unicodedata, pprint, struct, zlib, ipaddress, tomllib, copy, binascii, array, secrets
import urllib.parse, xml.etree.ElementTree as ET
from urllib.parse import urlparse, parse_qs, urlencode, quote
from xml.sax.saxutils import escape
from html.parser import HTMLParser
class E(json.JSONEncoder):
    def default(self, o): return sorted(o) if isinstance(o, set) else super().default(o)
class H(HTMLParser):
    def __init__(self): super().__init__(); self.tags = []
    def handle_starttag(self, tag, attrs): self.tags.append(tag)
h = H(); h.feed("<p><b>x</b></p>")
rows = list(csv.DictReader(io.StringIO("a,b\\n1,2\\n")))
out = io.StringIO(); w = csv.DictWriter(out, ["a", "b"]); w.writeheader(); w.writerows(rows)
try: json.loads("{bad")
except json.JSONDecodeError as e: err = [e.msg, e.pos, e.lineno, str(e)]
m = re.search(r"(?P<y>\\d+)-(\\d+)", "on 2024-05")
root = ET.fromstring("<r><i n='1'>a</i><i n='2'/></r>")
class MyT(string.Template): delimiter = "#"
x = {"a": [1]}; y = copy.deepcopy(x); y["a"].append(2)
buf = io.BytesIO(); buf.write(b"hi")
return [json.dumps({"s": {1}, "n": None}, cls=E, indent=1), json.loads("[1.5]", parse_float=str), json.dumps("é", ensure_ascii=False), err, m.group("y"), m.groups(), m.span(), re.sub(r"\\d", lambda k: str(int(k.group()) + 1), "a1"), re.split(r"[,;]", "a,b;c"),
        re.compile("A", re.I).findall("aA"), re.escape("a.b"), rows, out.getvalue(), textwrap.shorten("a b c d", 5), textwrap.dedent(" a"), string.ascii_lowercase[:3], string.Template("$a").substitute(a=1), MyT("#a").substitute(a=2), string.capwords("a b"), string.Formatter().format("{0} {x.real}", 1, x=2),
        base64.b64encode(b"a").decode(), hashlib.sha256(b"a").hexdigest()[:6], hmac.new(b"k", b"m", "sha256").hexdigest()[:6], str(uuid.uuid5(uuid.NAMESPACE_DNS, "a")), uuid.UUID(int=1).hex, html.escape("<"), difflib.get_close_matches("appel", ["apple"]), unicodedata.normalize("NFC", "e\\u0301"),
        pprint.pformat({"a": 1}), struct.unpack("<i", struct.pack("<i", 5)), zlib.decompress(zlib.compress(b"z")).decode(), str(ipaddress.ip_network("10.0.0.0/30").num_addresses), tomllib.loads("a=1"), x, binascii.hexlify(b"a").decode(), array.array("i", [1]).tolist(),
        urlparse("http://a/b?q=1").netloc, parse_qs("a=1"), urlencode({"a": "b c"}), quote("a b"), urllib.parse.urljoin("http://a/", "b"), escape("<"), h.tags, [i.get("n") for i in root.iter("i")], root.find("i").text, ET.tostring(root).decode()[:6], len(secrets.token_hex(4)), buf.getvalue().decode(), list(difflib.unified_diff(["a"], ["b"]))[2:]]
# printing, warnings and tracebacks
import sys, traceback, pprint, contextlib, io, logging, warnings
print("a", 1, sep="-", end="!\\n"); print(); print(*[1, 2]); print("err", file=sys.stderr); sys.stdout.write("w\\n")
buf = io.StringIO()
with contextlib.redirect_stdout(buf): print("captured")
print("in buffer", file=buf)
pprint.pprint({"b": 1, "a": 2})
warnings.warn("shown")
try: {}["k"]
except KeyError: text = traceback.format_exc(); traceback.print_exc()
with warnings.catch_warnings(record=True) as got:
    warnings.simplefilter("always"); warnings.warn("careful")
return [buf.getvalue(), text, [str(one.message) for one in got], sys.maxsize > 0, sys.version_info >= (3, 11)]
# imports of every form
import json as j, math
import collections.abc
from collections.abc import Mapping
import urllib.parse as up
from datetime import datetime as dt, date
from string import *
from statistics import mean
def local():
    import itertools
    from functools import reduce
    return itertools.chain, reduce
class Holder:
    import operator as op
    from re import sub
local()
return [j.dumps(1), math.floor(1.5), isinstance({}, Mapping), isinstance([], collections.abc.Sequence), up.quote(" "), dt(2024, 1, 1).year, digits, mean([1, 3]), Holder.op.add(1, 2), Holder.sub("a", "b", "a")]
# scopes
x = 1
def read(): return x
def write():
    global x
    x = 5
class Scope:
    x = 10
    y = [x for _ in range(1)] if False else x + 1
    def get(self): return x
write()
_under, __dunder, _ = 1, 2, 3
def shadow(list): return list + 1
if __name__ == "__main__": main = True
return [x, read(), Scope.x, Scope.y, Scope().get(), _under, __dunder, main, shadow(1), [i for i in range(3)], (lambda _: _)(4)]
# control flow
out = []
for i in range(5):
    if i == 1: continue
    if i == 3: break
    out.append(i)
else: out.append("no")
for i in []: pass
else: out.append("else")
while True:
    break
else: out.append("no")
n = 3
while n: n -= 1
else: out.append("w")
r = "a" if n else "b"
return [out, r, 1 < 2 < 3, not 0, 1 and 2, 0 or "d", 5 in [5], "x" not in "abc", None is None, 2 ** 10, -7 // 2, -7 % 3, 7 @ 2 if 0 else 1, ~5, 1 << 3, 6 & 3, 6 | 1, 6 ^ 2, 3.5 // 1, [1] * 2, (1,) + (2,), {1} | {2} == {1, 2}]
# copying
import copy
class N:
    def __init__(self): self.kids = []; self._p = 1
class S:
    __slots__ = ("a",)
    def __init__(self): self.a = [1]
class C:
    def __copy__(self): return "copied"
    def __deepcopy__(self, memo): return "deep"
n = N(); n.kids.append(n); m = copy.deepcopy(n); s = copy.deepcopy(S()); e = copy.copy(ValueError(1, 2))
from collections import defaultdict, deque, OrderedDict, Counter
import datetime, decimal, enum, fractions, re, types
class K(enum.Enum): A = 1
items = [defaultdict(list, a=[1]), deque([1], 3), OrderedDict(a=1), Counter("aab"), datetime.datetime(2024, 1, 1), decimal.Decimal("1.5"), K.A, fractions.Fraction(1, 2), re.compile("a"), types.SimpleNamespace(a=[1]), {1, 2}, (1, [2]), range(3)]
return [m.kids[0] is m, m is not n, m._p, s.a, copy.copy(C()), copy.deepcopy(C()), e.args, [copy.deepcopy(i) == i for i in items], [copy.copy(i) == i for i in items]]
# more classes
import functools
from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Self
class Count:
    total = 0
    def __init__(self):
        self.__class__.total += 1
        type(self).total += 1
        self._a = self
        self._v = {"k": [1]}
    def go(self):
        self._a._a._v["k"][0] += 5
        self._a._v["n"] = 1
        return self._a._a._v
class Deco:
    def __init__(self, fn): functools.update_wrapper(self, fn); self._fn = fn; self.n = 0
    def __call__(self, *a): self.n += 1; return self._fn(*a)
@Deco
def hello(x):
    "doc"
    return x
def timed(fn):
    @functools.wraps(fn)
    async def inner(*a): return await fn(*a), inner.__name__, inner.__doc__
    return inner
@timed
async def work(x):
    "work doc"
    return x
class Prop:
    def __init__(self): self._x = 0
    @property
    def x(self): return self._x
    @x.setter
    def x(self, v): self._x = v
    @x.deleter
    def x(self): self._x = None
    y = property(lambda self: self._x, doc="d")
@dataclass
class Node:
    kids: ClassVar[list] = []
    v: int
    left: "Node | None" = None
    def add(self, v) -> Self:
        if self.left is None: self.left = Node(v)
        else: self.left.add(v)
        return self
@dataclass(order=True)
class Item:
    p: float
    name: str = field(compare=False, default="x")
class Lazy:
    def __init__(self, **kw): self.__dict__.update(kw)
    def __getattr__(self, n):
        if n.startswith("get_"): return lambda: self.__dict__[n[4:]]
        raise AttributeError(f"no {n}")
class Stack(list):
    def peek(self): return self[-1]
class Vec:
    __slots__ = ("x", "y")
    def __init__(self, x, y): self.x, self.y = x, y
    def __iter__(self): yield self.x; yield self.y
    def __abs__(self): return (self.x ** 2 + self.y ** 2) ** 0.5
    def __mul__(self, k): return Vec(self.x * k, self.y * k)
    __rmul__ = __mul__
    def __matmul__(self, o): return sum(a * b for a, b in zip(self, o))
    def __neg__(self): return Vec(-self.x, -self.y)
    def __repr__(self): return f"Vec({', '.join(map(repr, self))})"
    def __eq__(self, o): return tuple(self) == tuple(o)
class P(metaclass=ABCMeta):
    @abstractmethod
    def run(self): ...
class Q(P):
    run = functools.partialmethod(lambda self, x: x, 5)
p = Prop(); p.x = 4; del p.x
c = Count(); hello(1)
import heapq
h = []
heapq.heappush(h, Item(2)); heapq.heappush(h, Item(1, "a"))
class Bag:
    async def __aenter__(self): return self
    async def __aexit__(self, *e): return False
    async def get(self): return 3
async with Bag() as b: got = await b.get()
l = Lazy(a=1)
try: l.zzz
except AttributeError as e: err = str(e)
return [Count.total, c.go(), hello(2), hello.n, hello.__name__, hello.__doc__, await work(3), p.x, p.y, Prop.y.__doc__, repr(Node(1).add(2).add(3)), Node.kids, heapq.heappop(h).name, l.get_a(), err, Stack([1, 2]).peek(),
    list(Vec(1, 2)), abs(Vec(3, 4)), repr(3 * Vec(1, 2)), Vec(1, 2) @ Vec(3, 4), repr(-Vec(1, 1)), Vec(1, 2) == Vec(1, 2), Q().run(), got, f"{'x'!r:>{5}}", hasattr(l, "b"), getattr(l, "a"), c.__class__.__name__, [a for a in dir(p) if not a.startswith("_")], callable(p)]
# text parsing like models do
import re, json, math
from collections import defaultdict, Counter
from itertools import groupby
log = """2024-01-01 INFO start id=1
2024-01-01 ERROR bad id=2
2024-01-02 INFO done id=1"""
pat = re.compile(r"^(?P<d>\\S+) (?P<lvl>\\w+) (?P<msg>\\w+) id=(?P<id>\\d+)$", re.M)
rows = [m.groupdict() for m in pat.finditer(log)]
by = defaultdict(lambda: {"n": 0, "ids": set()})
for r in rows:
    by[r["d"]]["n"] += 1
    by[r["d"]]["ids"].add(int(r["id"]))
out = {k: {**v, "ids": sorted(v["ids"])} for k, v in by.items()}
table = "\\n".join(f"{r['lvl']:<6}|{r['msg']:>6}" for r in rows)
def flatten(d, prefix=""):
    for k, v in d.items():
        if isinstance(v, dict): yield from flatten(v, f"{prefix}{k}.")
        else: yield f"{prefix}{k}", v
mat = [[1, 2], [3, 4]]
return [out, table, dict(flatten({"a": {"b": 1, "c": {"d": 2}}})), list(map(list, zip(*mat))), Counter(r["lvl"] for r in rows).most_common(1), {k: len(list(g)) for k, g in groupby(rows, key=lambda r: r["d"])}, max(rows, key=lambda r: int(r["id"]))["msg"], json.loads(json.dumps(out, sort_keys=True)), math.isclose(sum([0.1] * 10), 1)]
# everything about exceptions
class AppError(Exception):
    code = 500
    def __init__(self, msg, **details):
        super().__init__(msg)
        self.details = details
    def to_dict(self): return {"type": self.__class__.__name__, "msg": str(self), **self.details}
class NotFound(AppError): code = 404
def retry(times, *errors):
    def deco(fn):
        async def inner(*a, **k):
            last = None
            for i in range(times):
                try: return await fn(*a, attempt=i, **k)
                except errors as e: last = e
            raise AppError("gave up", tries=times) from last
        return inner
    return deco
@retry(3, NotFound)
async def flaky(n, attempt):
    if attempt < n: raise NotFound("nope", n=n)
    return attempt
out = [await flaky(2)]
try: await flaky(9)
except AppError as e: out += [e.to_dict(), e.__cause__.code, repr(e.__cause__), e.args]
try:
    try: await tools.boom(message="x")
    except ToolCallError as e: out += [str(e), e.toolName, type(e).__name__, e.__class__.__name__]; raise
except Exception as e: out.append(isinstance(e, ToolCallError))
return out
# uncaught error
def inner(v):
    return v["missing"]
def outer():
    return inner({})
outer()
# uncaught group
import asyncio
async def bad(): raise ValueError("in task")
async with asyncio.TaskGroup() as tg: tg.create_task(bad())
# attribute error of own class
class Point:
    def __init__(self): self.x = 1
return Point().y
# wrong call
def f(a, b): return a
f(1)
# syntax error
x = (1
return x
'''


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


PROGRAMS = _split(_TEXT)
