"""Programs in the styles that models write, over tools like those of real services; see `preflight_programs`.

A wrong program has the line of its mistake, and words that the message must have.
"""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

__all__ = ["RIGHT_STYLES", "STYLE_TOOLS", "WRONG_STYLES"]

_spec = spec_from_file_location("preflight_programs", Path(__file__).with_name("preflight_programs.py"))
assert _spec is not None
assert _spec.loader is not None
_programs: Any = module_from_spec(_spec)
_spec.loader.exec_module(_programs)

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
WORDS = {"type": ["string", "null"]}


def _object(required: tuple[str, ...], /, closed: bool = False, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(required)}
    return {**schema, "additionalProperties": False} if closed else schema


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


ITEM = _object(("sku", "qty"), sku=STRING, qty=INTEGER)
ADDRESS = {"anyOf": [_object(("city",), city=STRING, zip=WORDS), {"type": "null"}]}
ORDER = _object(("id", "total", "items"), id=STRING, total=NUMBER, items=_list(ITEM), address=ADDRESS, note=WORDS)
DAY = _object(("day", "high", "low"), day=STRING, high=NUMBER, low=NUMBER)
FLAGS = _object(("read",), read={"type": "boolean"}, star={"type": "boolean"})

STYLE_TOOLS = [
    _programs._tool(
        "list_orders",
        _object(
            ("customer_id",),
            closed=True,
            customer_id=STRING,
            status={"enum": ["open", "closed", "pending"]},
            limit={"type": ["integer", "null"]},
            since={"type": "string", "format": "date"},
            filters={"type": "object", "additionalProperties": STRING},
        ),
        _object(
            ("orders", "next_cursor"),
            closed=True,
            orders=_list(ORDER),
            next_cursor=WORDS,
            stats={"type": "object", "additionalProperties": INTEGER},
        ),
    ),
    _programs._tool(
        "get_weather",
        _object(("city",), city=STRING, units={"enum": ["metric", "imperial"], "default": "metric"}),
        _object(("temp", "conditions", "forecast"), temp=NUMBER, conditions=STRING, forecast=_list(DAY)),
    ),
    _programs._tool(
        "send_email",
        _object(
            ("to", "subject", "body"),
            to=_list(STRING),
            subject=STRING,
            body=STRING,
            cc=_list(STRING),
            priority={"type": "integer", "minimum": 1, "maximum": 5},
            meta=_object(("thread",), thread=STRING, tags=_list(STRING), flags=FLAGS),
        ),
        _object(("id", "ok"), closed=True, id=STRING, ok={"type": "boolean"}),
    ),
    _programs._tool("raw", {"type": "object"}, {}),
    _programs._tool(
        "users",
        _object(()),
        _list(
            _object(
                ("id", "name", "email"),
                id=INTEGER,
                name=STRING,
                email=WORDS,
                manager={"anyOf": [INTEGER, {"type": "null"}]},
            )
        ),
    ),
    _programs._tool("save", _object(("record",), record={"type": "object"}, labels=_list(WORDS)), {"type": "null"}),
    _programs._tool("count", _object((), closed=True), INTEGER),
    _programs._tool(
        "vote",
        _object(
            ("by",),
            by={"enum": [1, -1]},
            of={"enum": [f"v{number}" for number in range(20)]},
            at={"type": "array", "prefixItems": [STRING, INTEGER], "items": False},
            near=_object(("lat", "lon"), lat=NUMBER, lon=NUMBER),
        ),
        {"type": "null"},
    ),
    _programs._tool("odd-name", _object(("max-items",), **{"max-items": INTEGER}), STRING),
    _programs._tool(
        "draw",
        _object(
            ("shape",),
            shape={
                "oneOf": [
                    _object(("kind", "r"), closed=True, kind={"const": "circle"}, r=NUMBER),
                    _object(("kind", "w", "h"), closed=True, kind={"const": "box"}, w=NUMBER, h=NUMBER),
                ]
            },
        ),
        {"type": "null"},
    ),
    _programs._tool("find", _object(("query",), query=STRING, limit=INTEGER), _list({"type": "object"})),
]

RIGHT_STYLES = [
    """
import asyncio
cities = ["Paris", "London"]
results = await asyncio.gather(*[tools.get_weather(city=c) for c in cities])
return {c: r["temp"] for c, r in zip(cities, results)}
""",
    """
import asyncio
cities = ["Paris", "London"]
calls = (tools.get_weather({"city": c, "units": "metric"}) for c in cities)
results = await asyncio.gather(*calls, return_exceptions=True)
out = {}
for c, r in zip(cities, results):
    if isinstance(r, Exception):
        out[c] = str(r)
    else:
        out[c] = r["temp"]
return out
""",
    """
import asyncio
results = {}
async def fetch(city):
    results[city] = await tools.get_weather(city=city)
await asyncio.gather(fetch("a"), fetch("b"))
print(results["a"]["temp"], results["b"]["forecast"][0]["high"])
""",
    """
import json
r = await tools.list_orders(customer_id="c1")
print(json.dumps(r, indent=2))
data = json.loads(json.dumps(r))
print(data["orders"][0]["whatever"], data.foo if False else None)
""",
    """
def total(orders):
    return sum(o["total"] for o in orders)
r = await tools.list_orders(customer_id="c1", status="open")
print(f"Total: {total(r['orders']):.2f} for {len(r['orders'])} orders")
""",
    """
async def all_orders(cid):
    cursor = None
    out = []
    while True:
        page = await tools.list_orders(customer_id=cid)
        out.extend(page["orders"])
        cursor = page["next_cursor"]
        if not cursor:
            break
    return out
orders = await all_orders("x")
top = sorted(orders, key=lambda o: o["total"], reverse=True)[:5]
return [{"id": o["id"], "total": round(o["total"], 2)} for o in top]
""",
    """
try:
    r = await tools.send_email(to=["a@b.c"], subject="x", body="y")
    ok = r["ok"]
except ToolCallError as e:
    print(e.toolName, str(e))
    ok = False
except Exception as e:
    print(type(e).__name__)
    raise
return ok
""",
    """
r = None
for attempt in range(3):
    try:
        r = await tools.get_weather(city="x")
        break
    except ToolCallError:
        continue
if r is None:
    return "failed"
return r["temp"]
""",
    """
result = await tools.users()
result = [u for u in result if u["email"]]
result = {u["id"]: u for u in result}
result = result[3]["name"].upper()
print(result)
""",
    """
users = await tools.users()
by_id = {u["id"]: u for u in users}
for u in users:
    m = u.get("manager")
    if m is not None:
        print(u["name"], "->", by_id[m]["name"])
    boss = by_id.get(u.get("manager"))
    print(boss["name"] if boss else "-")
""",
    """
from dataclasses import dataclass, asdict
@dataclass
class User:
    id: int
    name: str
    email: str | None = None
users = [User(id=u["id"], name=u["name"], email=u["email"]) for u in await tools.users()]
return [asdict(u) for u in users]
""",
    """
from dataclasses import dataclass
@dataclass
class Order:
    id: str
    total: float
    extra: int = 0
r = await tools.list_orders(customer_id="1")
os = [Order(**{k: v for k, v in o.items() if k in ("id", "total")}) for o in r["orders"]]
print(os[0].total)
""",
    """
from collections import defaultdict, Counter
r = await tools.list_orders(customer_id="1")
g = defaultdict(list)
for o in r["orders"]:
    addr = o.get("address") or {}
    g[addr.get("city", "unknown")].append(o["total"])
    city = o["address"]["city"] if o.get("address") else "n/a"
c = Counter(i["sku"] for o in r["orders"] for i in o["items"])
return {"g": {k: sum(v) / len(v) for k, v in g.items()}, "c": c.most_common(3)}
""",
    """
r = await tools.list_orders({"customer_id": "1", "limit": None, "filters": {"a": "b"}})
first = next((o for o in r["orders"] if o["total"] > 10), None)
if first:
    note = first.get("note", "")
    print(note.strip() if note else "none")
    print((first.get("note") or "").strip())
""",
    """
params = {"customer_id": "1"}
if True:
    params["status"] = "open"
params.update({"limit": 10})
r = await tools.list_orders(**params)
r2 = await tools.list_orders(params)
""",
    """
import asyncio
users, weather = await asyncio.gather(tools.users(), tools.get_weather(city="x"))
print(users[0]["name"], weather["conditions"].lower())
""",
    """
import asyncio
tasks = {c: asyncio.create_task(tools.get_weather(city=c)) for c in ["a", "b"]}
done = {c: await t for c, t in tasks.items()}
print(done["a"]["temp"])
""",
    """
import asyncio
tasks = [tools.get_weather(city=c) for c in ["a", "b"]]
for coro in asyncio.as_completed(tasks):
    w = await coro
    print(w["temp"])
""",
    """
import asyncio
sem = asyncio.Semaphore(3)
async def one(c):
    async with sem:
        return c, await tools.get_weather(city=c)
pairs = await asyncio.gather(*[one(c) for c in "abc"])
d = dict(pairs)
print(d["a"]["temp"])
""",
    """
import asyncio
w = await asyncio.wait_for(tools.get_weather(city="x"), timeout=5)
print(w["temp"])
async with asyncio.timeout(3):
    w = await tools.get_weather(city="x")
""",
    """
x = await tools.raw()
print(x["a"]["b"], x[0], x.foo if hasattr(x, "foo") else None)
for i in x:
    print(i)
y = await tools.raw(anything=1, more=[1])
""",
    """
w = await tools.get_weather(city="x")
hot = max(w["forecast"], key=lambda d: d["high"])
avg = sum(d["high"] for d in w["forecast"]) / max(len(w["forecast"]), 1)
print(f"{hot['day']}: {hot['high']:.1f} avg {avg:.1f}")
for i, day in enumerate(w["forecast"], 1):
    print(i, day["day"], day["high"] - day["low"])
""",
    r"""
def fmt(x, *args, **kw):
    return f"{x['name']} <{x['email']}>"
lines = list(map(fmt, await tools.users()))
await tools.send_email(to=[u["email"] for u in await tools.users() if u["email"]], subject="Hi", body="\n".join(lines))
""",
    """
users = await tools.users()
emails = [u["email"] for u in users]
await tools.send_email(to=emails, subject="s", body=str(len(users)))
await tools.send_email(to=list({u["email"] for u in users}), subject="s", body="b")
await tools.send_email(to=sorted(u["name"] for u in users), subject="s", body="b")
""",
    """
users = await tools.users()
u = users[0] if users else None
if u is None:
    return
await tools.send_email(to=[u["email"]], subject=u["name"], body=u["email"] or "-")
""",
    """
import pandas as pd
df = pd.DataFrame(await tools.users())
print(df.groupby("name").size())
await tools.send_email(to=df["email"].tolist(), subject=df.iloc[0]["name"], body="x", priority=int(df["id"].max()))
""",
    """
r = await tools.list_orders(customer_id="x")
orders = r["orders"]
for o in orders:
    o["total_with_tax"] = o["total"] * 1.2
    o["tags"] = []
    o["tags"].append("x")
print(orders[0]["total_with_tax"], orders[0]["tags"][0])
""",
    """
r = await tools.list_orders(customer_id="x")
orders = [dict(o, tax=o["total"] * 0.2) for o in r["orders"]]
print(orders[0]["tax"])
orders = [o | {"x": 1} for o in r["orders"]]
print(orders[0]["x"])
""",
    """
import re, datetime as dt
r = await tools.list_orders(customer_id="x", since=dt.date.today().isoformat())
r = await tools.list_orders(customer_id="x", since=(dt.datetime.now() - dt.timedelta(days=3)).strftime("%Y-%m-%d"))
m = re.match("a", r["orders"][0]["id"])
await tools.list_orders(customer_id=m.group(0) if m else "y")
""",
    """
match await tools.users():
    case []:
        return "none"
    case [first, *rest]:
        return first["name"]
""",
    """
r = await tools.list_orders(customer_id="x")
match r:
    case {"orders": [o, *_]}:
        print(o["id"])
    case _:
        print("nothing")
""",
    """
status = "open" if len("x") > 2 else "closed"
for st in ("open", "closed", "pending"):
    r = await tools.list_orders(customer_id="x", status=st)
STATUSES = ["open", "closed"]
for st in STATUSES:
    await tools.list_orders({"customer_id": "x", "status": st})
await tools.list_orders({"customer_id": "x", "status": status})
""",
    """
cfg = {"units": "metric", "cities": ["a"]}
for c in cfg["cities"]:
    w = await tools.get_weather(city=c, units=cfg["units"])
""",
    """
class Client:
    def __init__(self):
        self.cache = {}
    async def weather(self, city):
        if city not in self.cache:
            self.cache[city] = await tools.get_weather(city=city)
        return self.cache[city]
c = Client()
print((await c.weather("x"))["temp"])
""",
    """
async def call(name, **kw):
    return await tools[name](**kw)
r = await call("get_weather", city="x")
fn = getattr(tools, "users")
for name in ["users", "get_weather"]:
    f = tools[name]
print(r["temp"])
""",
    """
calls = [(tools.get_weather, {"city": "x"}), (tools.list_orders, {"customer_id": "1"})]
for f, kw in calls:
    print(await f(**kw))
fs = {"w": tools.get_weather}
print(await fs["w"](city="x"))
""",
    """
import asyncio
async def safe(coro):
    try:
        return await coro
    except ToolCallError as e:
        return {"error": str(e)}
rs = await asyncio.gather(*[safe(tools.get_weather(city=c)) for c in "ab"])
print([r.get("error") for r in rs], rs[0]["temp"])
""",
    """
import asyncio
from typing import Any
async def safe(name: str, coro: Any) -> dict[str, Any]:
    try:
        return {"ok": True, "value": await coro}
    except ToolCallError as e:
        return {"ok": False, "error": str(e)}
r = await safe("w", tools.get_weather(city="a"))
print(r["value"]["temp"])
""",
    """
from typing import TypedDict, Optional, List
class U(TypedDict):
    id: int
    name: str
users: List[U] = await tools.users()
best: Optional[U] = None
for u in users:
    if best is None or u["id"] > best["id"]:
        best = u
print(best["name"] if best else None)
""",
    """
import itertools, functools, operator
users = await tools.users()
users.sort(key=operator.itemgetter("name"))
for k, g in itertools.groupby(users, key=lambda u: u["name"][0]):
    print(k, [x["name"] for x in g])
t = functools.reduce(lambda a, u: a + u["id"], users, 0)
await tools.send_email(to=["x"], subject=f"{t}", body="b", priority=min(t, 5))
await tools.send_email(to=["x"], subject=f"{t}", body="b", priority=round(t / 2))
""",
    """
import math
w = await tools.get_weather(city="x")
await tools.send_email(to=["x"], subject="s", body="b", priority=math.floor(w["temp"]))
meta = {"thread": "t", "flags": {"read": bool(w["temp"])}}
await tools.send_email(to=["x"], subject="s", body="b", priority=int(w["temp"]), meta=meta)
""",
    """
first, *rest = await tools.users()
name, temp = first["name"], (await tools.get_weather(city=first["name"]))["temp"]
a = b = await tools.users()
print(a[0]["name"], b[0]["name"])
x, y = await tools.users(), await tools.users()
print(x[0]["name"])
""",
    """
results = []
for c in ["a", "b"]:
    w = await tools.get_weather(city=c)
    results.append({"city": c, **w})
results.sort(key=lambda r: -r["temp"])
print(results[0]["city"], results[0]["temp"])
""",
    """
w = await tools.get_weather(city="x")
w = w["forecast"]
w = w[0]
w = w["day"]
print(w.upper())
total = 0
for day in (await tools.get_weather(city="y"))["forecast"]:
    total += day["high"]
""",
    """
r = await tools.list_orders(customer_id="1")
s = r.get("stats") or {}
print(s.get("open", 0) + 1, r["stats"]["open"] if "stats" in r else 0)
print(r.get("stats", {}).get("x", 0))
for k, v in r.get("stats", {}).items():
    print(k, v + 1)
""",
    """
r = await tools.list_orders(customer_id="1")
print(r["orders"][-1]["items"][0]["sku"], r["orders"][:3][0]["id"], len(r), list(r), r.keys(), "x" in r)
del r["orders"][0]
r["orders"].pop()
r.pop("stats", None)
r["extra"] = 1
print(r["extra"])
""",
    """
data = await tools.list_orders(customer_id="1")
orders = data["orders"] if isinstance(data, dict) else data
orders = data.get("orders", data) if isinstance(data, dict) else data
items = data if isinstance(data, list) else data.get("results", [])
for i in items:
    print(i["id"])
""",
    """
data = await tools.users()
if isinstance(data, dict):
    data = data["users"]
if isinstance(data, str):
    import json
    data = json.loads(data)
print(data[0]["name"])
""",
    """
w = await tools.get_weather(city="x")
text = w if isinstance(w, str) else w.get("text", "")
if "error" in w:
    print(w["error"])
if hasattr(w, "temp"):
    print(w.temp)
t = getattr(w, "temp", None)
""",
    """
import statistics
ws = [await tools.get_weather(city=c) for c in ("a", "b")]
print(statistics.mean(w["temp"] for w in ws), {w["conditions"] for w in ws})
""",
    """
async def main():
    users = await tools.users()
    return [u["name"] for u in users]
if __name__ == "__main__":
    import asyncio
    print(asyncio.run(main()))
""",
    """
users = await tools.users()
lookup = {}
for user in users:
    lookup.setdefault(user["name"], []).append(user)
u = lookup.get("x", [{}])[0]
print(u.get("id"), u["id"] if u else None)
await tools.send_email(to=[u.get("email", "")], subject=u.get("name", "n"), body="")
""",
    """
results = {"weather": None, "users": None}
results["weather"] = await tools.get_weather(city="x")
results["users"] = await tools.users()
print(results["weather"]["temp"], results["users"][0]["name"])
""",
    """
results = {}
results["weather"] = await tools.get_weather(city="x")
results["n"] = 3
await tools.get_weather(city=results["weather"]["conditions"])
await tools.send_email(to=["a"], subject="s", body="b", priority=results["n"])
""",
    """
n = 0
best = ""
for u in await tools.users():
    if u["id"] > n:
        n = u["id"]
        best = u["name"]
await tools.get_weather(city=best)
await tools.find(query=best, limit=n)
await tools.find(query=best or "x", limit=n or None or 3)
""",
    """
city = None
for u in await tools.users():
    city = u["name"]
await tools.get_weather(city=city)
""",
    """
def first_name(users):
    for u in users:
        return u["name"]
await tools.get_weather(city=first_name(await tools.users()))
def find(users, i) -> str | None:
    return next((u["name"] for u in users if u["id"] == i), None)
await tools.get_weather(city=find(await tools.users(), 3))
""",
    """
args = [("a", "metric"), ("b", "imperial")]
for city, units in args:
    await tools.get_weather(city=city, units=units)
args2 = [{"city": "a"}, {"city": "b", "units": "metric"}]
for a in args2:
    await tools.get_weather(a)
    await tools.get_weather(**a)
""",
    """
rows = [{"to": ["a"], "subject": "s", "body": "b", "priority": 2}]
for r in rows:
    await tools.send_email(r)
    await tools.send_email(**r)
    await tools.send_email(to=r["to"], subject=r["subject"], body=r["body"], priority=r["priority"])
""",
    """
import json
meta = json.loads('{"thread": "x"}')
await tools.send_email(to=["a"], subject="s", body=json.dumps(meta), meta=meta)
meta2 = dict(thread="x", tags=["a"])
await tools.send_email(to=["a"], subject="s", body="b", meta=meta2)
await tools.save(record=dict(a=1), labels=[None, "x"])
await tools.save(record={u["name"]: u for u in await tools.users()})
""",
    # What only looks wrong, or is the program's own business
    "await tools['odd\\x2dname']({'max-items': 3})",
    "import asyncio\nasync def own():\n    pass\nown()\nasyncio.sleep(1)\nawait asyncio.gather([own(), own()])",
    "import asyncio\nasync def own() -> int:\n    return 1\nt = asyncio.create_task(own())\nt['x']",
    "n = await tools.count()\nx = None if n else 3\nprint(x + n, n + x)",
    "x = tools.count() if len('a') else await tools.count()\nawait x",
    "s = tools.find\nawait s(query='x')\ns = len\ns(3, 4)",
    "x = await tools.count()\nfor x, y in [('a', 1)]:\n    x.foo",
    "def own(s: str):\n    return s.foo\ns = await tools.count()",
    "n = await tools.count()\nimport math as n\nn.foo",
    "p = await tools.users()\np[0].setdefault('score', 1)\nprint(p[0]['score'])",
    "x = 6 / 2\nawait tools.find(query='x', limit=x)",
    "z = (await tools.users())[0] if len('x') else 'text'\nprint(z.upper() if isinstance(z, str) else z['name'])",
    "n = await tools.count()\nz = (await tools.users())[0] if n else 'text'\nprint(z.upper())",
    "await tools.draw(shape={'kind': 'box', 'w': 1, 'h': 2.5})",
    "k = 'circle'\nawait tools.draw(shape={'kind': k, 'r': 2})",
    "s = {'kind': 'circle', 'r': 1}\nawait tools.draw(shape=s)\nawait tools.draw({'shape': {**s, 'r': 3}})",
    "def later(tools=tools):\n    return tools.count(3)",
]

WRONG_STYLES: list[tuple[str, int, tuple[str, ...]]] = [
    (
        "await tools.send_email(to=['a'], subject='s', body='b', meta={'thread': 't', 'flags': {'raed': True}})",
        1,
        ('in argument "meta.flags"', 'no key "raed"', '"read"'),
    ),
    (
        "for c in 'ab':\n    await tools.get_weather(city=c, unit='metric')",
        2,
        ("tools.get_weather(...)", 'no argument "unit"', 'did you mean "units"?'),
    ),
    (
        "await tools.get_weather('x', {'units': 'metric'})",
        1,
        ('"units" must be one of "metric", "imperial", not dict',),
    ),
    (
        "await tools.list_orders(customer_id='1', status='OPEN')",
        1,
        ('"status" must be one of "open", "closed", "pending", not "OPEN"',),
    ),
    (
        "await tools.list_orders(customer_id='1', cursor='x')",
        1,
        ('no argument "cursor"; there are: "customer_id", "status"',),
    ),
    ("for u in await tools.users():\n    await tools.get_weather(city=u['id'])", 2, ('"city" must be str, not int',)),
    (
        "import datetime\nawait tools.list_orders(customer_id='1', since=datetime.date.today())",
        2,
        ('"since" must be str, not date',),
    ),
    ("await tools.get_wheather(city='x')", 1, ('no tool "get_wheather"; did you mean "get_weather"?',)),
    (
        "r = await tools.list_orders(customer_id='1')\nprint(r[0]['id'])",
        2,
        ("what tools.list_orders(...) gives is a dict here", "no item 0", '"orders", "next_cursor", "stats"'),
    ),
    (
        "r = await tools.list_orders(customer_id='1')\nfor o in r:\n    print(o['id'])",
        3,
        ("tools.list_orders(...)", "is str here", 'no key "id"', "iterating over a dict gives its keys"),
    ),
    (
        "x = (await tools.users())[0]['name']['first']",
        1,
        ('what tools.users(...) gives is str here, which has no key "first"',),
    ),
    (
        "w = await tools.get_weather(city='x')\nprint('It is ' + w['temp'])",
        2,
        ("what tools.get_weather(...) gives: `+` cannot take str and float",),
    ),
    (
        "x = await tools.get_weather(city='x')\nif x['temp'] > '3': pass",
        2,
        ("what tools.get_weather(...) gives: `>` cannot take float and str",),
    ),
    (
        "x = [u['nme'] for u in await tools.users()]",
        1,
        ('what tools.users(...) gives has no key "nme" here; did you mean "name"?',),
    ),
    (
        "x = await tools.get_weather(city='a')\nx = x['forcast']",
        2,
        ('what tools.get_weather(...) gives has no key "forcast"', '"forecast"'),
    ),
    ("x = sorted(await tools.users(), key=lambda u: u['nme'])", 1, ('no key "nme" here; did you mean "name"?',)),
    ("w = await tools.get_weather(city='x')\nprint(w['forecast']['high'])", 2, ("list[dict]", 'not the key "high"')),
    (
        "if not (w := await tools.get_weather(city='x')):\n    pass\nw.temp",
        3,
        ('what tools.get_weather(...) gives is a dict here: write ["temp"] in place of .temp',),
    ),
    (
        "tools.send_email(to=['a'], subject='s', body='b')\nprint('sent')",
        1,
        ("tools.send_email(...) is never awaited, so it would not run",),
    ),
    (
        "async def go():\n    s = tools.send_email\n    s(to=['a'], subject='s', body='b')\nawait go()",
        3,
        ("tools.send_email(...) is never awaited",),
    ),
    (
        "import asyncio\nrs = asyncio.gather(*[tools.get_weather(city=c) for c in 'ab'])\nprint(rs[0])",
        3,
        ("this is a future of calls of tools", "await it"),
    ),
    (
        "import asyncio\nt = asyncio.create_task(tools.users())\nprint(t[0]['name'])",
        3,
        ("this is a task of calls of tools", "await it"),
    ),
    (
        "import asyncio\nt = asyncio.create_task(tools.users())\nprint(len(t))",
        3,
        ("this is a task of calls of tools", "await it"),
    ),
    (
        "import asyncio\nrs = await asyncio.gather([tools.get_weather(city=c) for c in 'ab'])",
        2,
        ("gather takes the calls of tools one by one", "gather(*[...])"),
    ),
    (
        "from asyncio import gather\nrs = await gather([tools.users(), tools.get_weather(city='b')])",
        2,
        ("gather(*[...])",),
    ),
    (
        "import asyncio\na, b = await asyncio.gather(tools.users(), tools.get_weather(city='x'))\nprint(a['name'])",
        3,
        ("list[dict]", 'not the key "name"'),
    ),
    ("await tools.vote(by=-2)", 1, ('"by" must be one of 1, -1, not -2',)),
    ("a = ['x']\nawait tools.find(*a, limt=3)", 2, ("tools.find(...)", 'no argument "limt"', '"limit"')),
    ("await tools.find({'query': tools.count()})", 1, ('"query" must be str, not a call that is not awaited',)),
    ("await tools.draw(shape={'kind': 'circle', 'r': 'x'})", 1, ('argument "shape.r" must be float, not str',)),
    ("await tools.draw(shape={'kind': 'box', 'w': 1})", 1, ('in argument "shape" required key "h" is missing',)),
    ("await tools.draw(shape={'kind': 'cube', 'r': 1})", 1, ('argument "shape.kind" must be "circle", not "cube"',)),
    ("await tools.draw(shape='circle')", 1, ('argument "shape" must be dict, not str',)),
    ("import asyncio\nawait asyncio.gather(tools.count(), [tools.count()])", 2, ("gather(*[...])",)),
    (
        "await tools.save(record={'nme': 1})\np = await tools.users()\nprint(p[0]['nme'])",
        3,
        ('no key "nme"', 'did you mean "name"'),
    ),
    ("await tools.vote(by=True)", 1, ('"by" must be one of 1, -1, not True',)),
    ("await tools.vote(by=1, of='x')", 1, ('"of" must be one of "v0", "v1"', '"v11", ..., not "x"')),
    ("await tools.vote(by=1, at=[None, 2])", 1, ('"at[0]" must be str, not None',)),
    (
        "d = dict(lat='a', lon='b')\nawait tools.vote(by=1, near=d)",
        2,
        ('"near" must be dict with "lat": float, "lon": float, not dict[str, str]',),
    ),
    ("x = [1]\nawait tools.send_email(to=x, subject='s', body='b')", 2, ('"to" must be list[str], not list[int]',)),
    (
        "u = await tools.users()\nawait tools.send_email(to=u, subject='s', body='b')",
        2,
        ('"to" must be list[str], not list[dict]',),
    ),
    # Sources that are hard to read
    ("a = 'é'\rawait tools.find(query='é', qury='x')", 2, ('no argument "qury"',)),
    ("a = 'é'\r\nawait tools.find(query='é', qury='x')", 2, ('no argument "qury"',)),
    (f"x = 0x{'f' * 5000}\nawait tools.count(3)", 2, ("takes 0 arguments, not 1",)),
    ("x = 1e999\nawait tools.count(3)", 2, ("takes 0 arguments, not 1",)),
    ("x = b'1', 1j, ...\nawait tools.count(3)", 2, ("takes 0 arguments, not 1",)),
]
