# ruff: noqa: E501, SIM105 - what is sought fails in most ways, and each way is a line of its own
"""Walks everything that a program can reach by reading attributes, items and results, and tells what must not be there.

Started as `python -I restricted_walk.py <root of the package> [plant ...]`; writes one JSON object: `seen` (how many objects) and
`found` (a path to each object that no program may have). For tests alone.
"""

import asyncio
import builtins
import collections
import contextvars
import enum
import importlib
import json
import os
import signal
import string
import sys
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from restricted_child import MEMBERS, Channel, Tools, load

SAMPLES = """
import abc, array, asyncio, calendar, collections, contextlib, copy, csv, dataclasses, datetime, decimal, difflib, enum
import fractions, functools, graphlib, hashlib, heapq, hmac, html.parser, inspect, io, ipaddress, itertools, json
import logging, operator, pprint, random, re, statistics, string, struct, sys, textwrap, time, tomllib, traceback, types
import typing, urllib.parse, uuid, warnings, xml.etree.ElementTree as ET, zlib, zoneinfo
samples = []
keep = samples.append
class Own:
    shared = 1
    def __init__(self):
        self.public = 1
        self._private = 2
    def method(self): return super()
    @classmethod
    def made(cls): return cls()
    @staticmethod
    def still(): return 1
    @property
    def size(self): return 1
    def __getattr__(self, name): raise AttributeError(name)
class Colour(enum.Enum):
    RED = 1
class Bits(enum.IntFlag):
    A = 1
@dataclasses.dataclass
class Data:
    x: int
    format: str = ""
@dataclasses.dataclass(slots=True, frozen=True, order=True)
class Slots:
    x: int
class Row(typing.NamedTuple):
    a: int
    obj: int = 0
class Typed(typing.TypedDict):
    a: int
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
@typing.runtime_checkable
class Proto(typing.Protocol):
    format: str
class Boxed(typing.Generic[typing.TypeVar("T")]): pass
class Text(str): pass
class Encoder(json.JSONEncoder): pass
class Parser(html.parser.HTMLParser): pass
class Manager:
    def __enter__(self): return self
    def __exit__(self, *args):
        samples.extend(args)
        return True
for one in (Own, Own(), Own().method, Own().method(), Own.made, Own.still, Own.size, Colour, Colour.RED, Bits, Bits.A,
            Data, Data(1), Slots(1), Row, Row(1), Typed, Typed(a=1), Shape, Proto, Boxed, Text("a"), Encoder, Encoder(),
            Parser(), collections.namedtuple("N", "a format")(1, 2), enum.Enum("F", "A B"),
            dataclasses.make_dataclass("M", ["format", "y"])(1, 2)):
    keep(one)
with Manager():
    1 / 0
for act in (lambda: Own().missing, lambda: "".missing, lambda: json.missing, lambda: tools.missing, lambda: {}["k"],
            lambda: [][1], lambda: int("x"), lambda: undefined_name, lambda: "a".encode(1), lambda: json.loads("{"),
            lambda: b"\\xff".decode(), lambda: next(iter(())), lambda: sys.exit(3), lambda: re.compile("("),
            lambda: Colour("x"), lambda: Data(), lambda: "{0.__class__}".format(1), lambda: getattr(1, "__class__"),
            lambda: decimal.Decimal("x"), lambda: datetime.datetime(1, 1, 99), lambda: zoneinfo.ZoneInfo("No/Where")):
    try:
        keep(act())
    except BaseException as error:
        keep(error)
keep(ExceptionGroup("g", [ValueError(1)]))
async def co(): await asyncio.sleep(0)
async def ag(): yield 1
def gen(): yield 1
@contextlib.contextmanager
def managed(): yield 1
@functools.lru_cache
def cached(x): return x
@functools.singledispatch
def single(x): return x
@single.register(int)
def _(x): return x
@functools.wraps(cached)
def wrapped(x): return x
coro = co()
keep(coro); keep(coro.__await__()); coro.close()
loop = asyncio.get_event_loop()
task = asyncio.create_task(co())
keep(task); keep(asyncio.gather(co(), co())); keep(loop); keep(loop.create_future()); keep(asyncio.current_task())
await task
pending = tools.echo(value=1)
keep(pending); keep(await pending); keep(tools); keep(tools.echo)
again = tools.echo(value=2)
iterator = again.__await__()
keep(iterator)
future = next(iterator)
keep(future)
await asyncio.sleep(0.01)
for make in (asyncio.Queue, asyncio.Lock, asyncio.Event, asyncio.Semaphore, asyncio.Condition, asyncio.TaskGroup,
             lambda: asyncio.timeout(1), lambda: asyncio.Barrier(2)):
    keep(make())
for one in (ag(), gen(), (x for x in "a"), managed, managed(), contextlib.ExitStack(), contextlib.nullcontext(1),
            contextlib.suppress(KeyError), contextlib.redirect_stdout(io.StringIO()), cached, single, wrapped,
            functools.partial(cached, 1), functools.cached_property(cached), functools.cmp_to_key(lambda a, b: 0),
            functools.partialmethod(cached), re.compile("a"), re.match("a", "a"), re.finditer("a", "a"), re.I,
            datetime.datetime.now(datetime.UTC), datetime.date.today(), datetime.timedelta(1), datetime.UTC,
            zoneinfo.ZoneInfo("UTC"), time.gmtime(), decimal.getcontext(), decimal.Decimal(1), decimal.localcontext(),
            fractions.Fraction(1), io.StringIO(), io.BytesIO(), csv.reader([]), csv.writer(io.StringIO()),
            csv.DictReader([]), csv.DictWriter(io.StringIO(), ["a"]), csv.Sniffer(), json.JSONDecoder(),
            json.JSONEncoder(), string.Template("a"), string.Formatter(), "{}".format, "{0.__class__}".format, "{0.obj}".format_map, Text("{}").format, str.format, "{}".format_map,
            operator.itemgetter(1), operator.attrgetter("a"), operator.methodcaller("a"), random.Random(1),
            random.SystemRandom(), random.random, hashlib.sha256(), hmac.new(b"a", digestmod="md5"), uuid.uuid4(),
            ipaddress.ip_network("10.0.0.0/8"), struct.Struct("i"), zlib.compressobj(), difflib.SequenceMatcher(),
            calendar.TextCalendar(), calendar.month, pprint.PrettyPrinter(), textwrap.TextWrapper(),
            statistics.NormalDist(), graphlib.TopologicalSorter(), collections.Counter(), collections.deque(),
            collections.OrderedDict(), collections.ChainMap(), collections.UserDict(), collections.defaultdict(list),
            array.array("i"), memoryview(b"a"), range(3), slice(1), super, property, object(), types.SimpleNamespace(),
            types.MappingProxyType({}), typing.List[int], typing.Optional["Own"], typing.get_args(typing.List["Own"]),
            typing.Type[int], type[int], list[int], int | str, typing.TypeVar("U"), typing.NewType("W", int),
            typing.Annotated[str, 1], typing.Callable[[int], str], typing.Literal[1], type, type(1), type(json),
            type(type), type(gen), type(tools), type(Own), type(Colour), type(task), type(pending), type(co), type(gen()),
            type(Own.size), type("".join), type(str.join), type(Own().method), type(sys.stdout), type(loop),
            sys.stdout, logging.getLogger("a"), ET.fromstring("<a b='1'><c/></a>"), ET.QName("a"),
            urllib.parse.urlparse("http://a/b"), urllib.parse.urlsplit("//a"), warnings.catch_warnings(),
            itertools.count(), itertools.groupby(""), itertools.chain([]), itertools.tee([]), iter([]), iter({}),
            {}.keys(), {}.items(), map(abs, []), zip(), enumerate([]), reversed([]), dataclasses.fields(Data),
            dataclasses.field(), Ellipsis, NotImplemented, vars(Own), vars(Own()), single.registry, Colour.__members__):
    keep(one)
"""

RAW = [getattr, setattr, delattr, vars, dir, eval, exec, compile, open, input, breakpoint, globals, locals, help]
RAW += [builtins.__import__, builtins.__build_class__, importlib.import_module, string.Formatter]
RAW += [types.FunctionType, types.CodeType, types.CellType, types.FrameType, types.ModuleType]
RAW += [object.__getattribute__, type.__getattribute__, object.__reduce__, object.__reduce_ex__, type.mro]
RAW += [object.__setattr__, object.__delattr__, type.__setattr__, type.__subclasses__, str.format, str.format_map]
RAW += [sys._getframe, sys.exc_info, sys.settrace, os.system, os.open]
RAW_IDS = {id(one) for one in RAW}
STRANGERS = (types.ModuleType, types.FrameType, types.CodeType, types.CellType, asyncio.AbstractEventLoop)
STRANGERS += (contextvars.Context, contextvars.ContextVar)
SPECIAL = [
    "__class__",
    "__dict__",
    "__globals__",
    "__code__",
    "__closure__",
    "__self__",
    "__func__",
    "__builtins__",
    "__subclasses__",
    "__bases__",
    "__base__",
    "__mro__",
    "__getattribute__",
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__loader__",
    "__spec__",
    "__file__",
    "__traceback__",
    "__context__",
    "__cause__",
    "__init__",
    "__new__",
    "__call__",
    "__get__",
    "__set__",
    "__set_name__",
    "__setattr__",
    "__delattr__",
    "__getattr__",
    "__wrapped__",
    "__origin__",
    "__args__",
    "__objclass__",
    "__text_signature__",
    "__weakref__",
    "__module__",
    "__annotations__",
    "__defaults__",
    "__kwdefaults__",
    "__thisclass__",
    "__self_class__",
    "__dataclass_fields__",
    "__match_args__",
    "__slots__",
    "__members__",
    "__init_subclass__",
    "__subclasshook__",
    "__prepare__",
    "__instancecheck__",
    "__format__",
    "__dir__",
    "__sizeof__",
    "__iter__",
    "__next__",
    "__await__",
    "__enter__",
    "__exit__",
    "__doc__",
    "gi_frame",
    "gi_code",
    "gi_yieldfrom",
    "cr_frame",
    "cr_code",
    "cr_await",
    "ag_frame",
    "ag_code",
    "tb_frame",
    "tb_next",
    "f_back",
    "f_globals",
    "f_locals",
    "f_builtins",
    "f_code",
    "co_consts",
    "obj",
    "mro",
    "get_loop",
    "get_coro",
    "get_stack",
    "get_context",
    "format",
    "format_map",
    "evaluate",
    "_loop",
    "_get_loop",
    "_queue",
    "_stream",
    "_emit",
    "_coro",
    "_context",
    "_inner",
    "_ledger",
    "_convert_",
    "_abc_impl",
    "_real",
    "_guards",
    "_classes",
    "_evaluate",
]
NOT_CALLED = {
    "exit",
    "quit",
    "print",
    "sleep",
    "run",
    "close",
    "set_event_loop",
    "reset_tzpath",
    "clear_cache",
    "copyright",
}
DEPTH = 5
MOST_ALIKE = 12
PLAIN = (int, float, bool, bytes, str, complex, type(None))
METHODS = (types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType)


def dangerous(value):
    if id(value) in RAW_IDS:
        return "a builtin that no guard stands before"
    kind = type(value)
    if issubclass(kind, STRANGERS):
        return kind.__name__
    if kind.__module__.startswith(("importlib", "_frozen_importlib", "ptc_sandbox")) and kind.__name__ not in SHOWN:
        return f"an object of the sandbox or the import system: {kind.__name__}"
    if issubclass(kind, type):
        if issubclass(value, type):
            return "a metaclass"
        if issubclass(kind, enum.EnumMeta) and not len(value) and type(value).__call__ is enum.EnumMeta.__call__:
            return "an enumeration that makes any class"
        names = vars(value).get("__match_args__", ())
        if any(name.startswith("_") or KIND_OF(name) != "public" for name in names):
            return "__match_args__ with a name that needs a guard"
    if kind is dict and ("__builtins__" in value or value is sys.modules):
        return "the names of a module"
    own = getattr(value, "__self__", None) if kind is types.BuiltinFunctionType else None
    if isinstance(own, str) and value.__name__ in ("format", "format_map") and not IS_PLAIN(own):
        return "str.format without a guard"
    return None


def steps(value, guards, with_calls):
    names = dict.fromkeys(SPECIAL)
    try:
        names.update(dict.fromkeys(dir(value)))
    except Exception:
        pass
    for name in names:
        if KIND_OF(name) == "public" or name in SPECIAL or name.startswith("__"):
            try:
                yield f".{name}", guards.getattr(value, name)
            except BaseException:
                pass
    yield ".type()", CLASS_OF(value)
    try:
        yield ".vars()", guards.vars(value)
    except Exception:
        pass
    if type(value) in (list, tuple, set, frozenset):
        yield from ((f"[{index}]", one) for index, one in enumerate(list(value)[:50]))
    elif type(value) in (dict, types.MappingProxyType):
        yield from ((f"[{key!r}]", one) for key, one in list(value.items())[:200])
    if with_calls and callable(value) and getattr(value, "__name__", "") not in NOT_CALLED:
        try:
            yield "()", value()
        except BaseException:
            pass


def likeness(value):
    """What objects share that need not all be walked: methods are made anew at each reading."""
    kind = type(value)
    owner = getattr(value, "__self__", None) if kind in METHODS else None
    if kind in METHODS:
        return kind, value.__name__, type(owner), owner if isinstance(owner, type) else None
    if kind is types.FunctionType:
        return id(value.__code__)
    if issubclass(kind, type):
        return id(value)
    return kind


def walk(starts, guards):
    seen = {}
    found = []
    alike = collections.Counter()
    pending = collections.deque((path, value, 0) for path, value in starts)
    while pending:
        path, value, depth = pending.popleft()
        if id(value) in seen:
            continue
        what = dangerous(value)
        if what:
            found.append(f"{path}: {what}")
            continue
        like = likeness(value)
        alike[like] += 1
        if depth and (alike[like] > MOST_ALIKE or (type(value) in PLAIN and alike[like] > 1)):
            continue
        seen[id(value)] = value  # kept, so that no other object gets its address
        if depth < DEPTH:
            calls = depth < 3
            pending.extend((path + step, one, depth + 1) for step, one in steps(value, guards, calls))
    return len(seen), found


def frame_holder():
    holder = types.SimpleNamespace()
    holder.inner = sys._getframe()
    return holder


PLANTS = {
    "module": lambda: types.SimpleNamespace(inner=[os]),
    "frame": frame_holder,
    "getattr": lambda: {"inner": getattr},
    "loop": lambda: lambda: asyncio.get_event_loop(),
    "metaclass": lambda: type,
    "names of a module": lambda: vars(os),
    "formatter": lambda: type("F", (string.Formatter,), {}).mro(),
}
"""What a test plants, to see that the walk finds it."""


def main():
    global KIND_OF, CLASS_OF, IS_PLAIN, SHOWN
    run, make_dialect, _ = load(Path(sys.argv[1]))
    from ptc_sandbox.restricted.inside.language import formatting, names, typeguard

    KIND_OF, CLASS_OF, IS_PLAIN = names.kind_of, typeguard.class_of, formatting.reads_public_names_only
    # Objects of the sandbox that programs hold: what they show is walked like everything else.
    SHOWN = {"module", "TypeGuard", "PendingCall", "EventLoop", "TextIOWrapper", "Logger"}
    dialect = make_dialect(())
    space = {}

    class Watched:
        def compile(self, source):
            code, needs = dialect.compile(source)
            return code, needs

        def builtins(self):
            space["__builtins__"] = dialect.builtins()
            return space["__builtins__"]

        def modules(self):
            return dialect.modules()

    signal.alarm(100)
    report = sys.stdout
    request = {
        "program": SAMPLES,
        "seed": 1,
        "limits": {"queuedBytes": 16 << 20, "outputBytes": 64 << 20},
        "namespaces": [
            {
                "global": "tools",
                "members": MEMBERS,
                "errorClass": {"name": "ToolCallError", "property": "toolName"},
            }
        ],
    }
    completion = run(Channel(Tools({}), lambda kind, value: None), json.dumps(request), Watched())
    if not completion.startswith('["nothing"'):
        report.write(json.dumps({"seen": 0, "found": [completion]}))
        return
    program = vars(sys.modules["__main__"])
    quick = sys.argv[2:]  # only what was planted
    for planted in quick:
        vars(dialect._importer.modules["json"])["planted"] = PLANTS[planted]()
    starts = [(f"builtin {name}", value) for name, value in space["__builtins__"].items() if not name.startswith("__")]
    starts += [(f"module {name}", proxy) for name, proxy in dialect._importer.modules.items()]
    starts += [(f"sample {index}", one) for index, one in enumerate(program["samples"])]
    starts += [("ToolCallError", program["ToolCallError"])]
    if quick:
        starts = [("module json", dialect._importer.modules["json"])]
    count, found = walk(starts, dialect._guards)
    report.write(json.dumps({"seen": count, "found": found}))
    report.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
