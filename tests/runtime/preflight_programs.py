"""Tools and programs for the preflight's tests and benchmark: wrong ones, with what is said of them, and right ones.

A wrong program has the line of its mistake, and words that the message must have.
"""

from __future__ import annotations

from typing import Any

import ptc

__all__ = ["RIGHT", "TOOLS", "WRONG"]

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "friends": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
        "home-page": {"type": ["string", "null"]},
    },
    "required": ["name", "friends", "home-page"],
}


async def _nothing(_arguments: Any, _run: Any) -> Any:
    return None


def _tool(name: str, parameters: Any, output: Any) -> ptc.ToolDefinition:
    return ptc.define_raw_tool(name=name, description="", parameters=parameters, output=output, execute=_nothing)


TOOLS = [
    _tool(
        "find",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "integer"},
                "sort": {"enum": ["asc", "desc"]},
                "near": {
                    "type": "object",
                    "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
                    "required": ["lat", "lon"],
                },
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["query"],
        },
        {"type": "array", "items": {"$ref": "#/$defs/Person"}, "$defs": {"Person": PERSON}},
    ),
    _tool(
        "odd-name",
        {"type": "object", "properties": {"max-items": {"type": "integer"}}, "required": ["max-items"]},
        {"type": "object", "additionalProperties": {"type": "integer"}},
    ),
    _tool("count", {"type": "object", "additionalProperties": False}, {"type": "integer"}),
    _tool(
        "save",
        {
            "type": "object",
            "properties": {
                "record": {"type": "object"},
                "to": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "labels": {"type": "array", "items": {"type": ["string", "null"]}},
            },
            "required": ["record"],
        },
        {"type": "null"},
    ),
    _tool(
        "open",
        {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": True},
    ),
]

WRONG: list[tuple[str, int, tuple[str, ...]]] = [
    # The name of an argument
    ("await tools.find(qurey='x')", 1, ("tools.find(...)", 'no argument "qurey"', 'did you mean "query"')),
    ("await tools.find({'query': 'x', 'limt': 3})", 1, ("tools.find(...)", '"limt"', '"limit"')),
    ("x = 1\nawait tools.find(**{'qurey': 'x'})", 2, ("tools.find(...)", '"qurey"', '"query"')),
    ("await tools.count(x=3)", 1, ("tools.count(...)", '"x"')),
    ("await tools.find('x', near={'lat': 1, 'lon': 2, 'alt': 3})", 1, ('in argument "near"', 'no key "alt"')),
    # Its type
    ("await tools.find(query=3)", 1, ('tools.find(...): argument "query" must be str, not int',)),
    ("import json\n\nawait tools.find(\n    query='x',\n    limit='3',\n)", 5, ('"limit" must be int, not str',)),
    ("await tools.find(query='x', sort='up')", 1, ('argument "sort" must be one of "asc", "desc", not "up"',)),
    ("await tools.find(query='x', tags='a')", 1, ('argument "tags" must be list[str], not str',)),
    ("await tools.find(query='x', tags=['a', 1])", 1, ('argument "tags[1]" must be str, not int',)),
    ("await tools.find(query='x', near={'lat': 'a', 'lon': 1})", 1, ('"near.lat" must be float, not str',)),
    ("await tools.find(query=None)", 1, ('"query" must be str, not None',)),
    ("await tools.find(query=True)", 1, ('"query" must be str, not bool',)),
    ("await tools.find(query={1, 2})", 1, ('"query" must be str, not set',)),
    ("await tools.find(query='x', limit=f'{2}')", 1, ('"limit" must be int, not str',)),
    ("n = await tools.count()\nawait tools.find(query=n)", 2, ('"query" must be str, not int',)),
    ("await tools.find(query=tools.count())", 1, ('"query" must be str, not a call that is not awaited',)),
    ("await tools.save(record=[1])", 1, ("tools.save(...)", '"record" must be dict, not list')),
    ("await tools.save(record={}, to=3)", 1, ('"to" must be str | None, not int',)),
    ("await tools['odd-name']({'max-items': '1'})", 1, ('tools["odd-name"](...)', '"max-items" must be int')),
    ("await tools.open(id=1, more=2)", 1, ("tools.open(...)", '"more" must be str, not int')),
    # What is missing
    ("await tools.find()", 1, ("tools.find(...)", 'required argument "query" is missing')),
    ("await tools.find({'sort': 'asc'})", 1, ("tools.find(...)", 'required argument "query" is missing')),
    ("await tools.find('x', near={'lat': 1})", 1, ('in argument "near" required key "lon" is missing',)),
    # The form of a call, and its tool
    ("await tools.find({'query': 'x'}, limit=3)", 1, ("tools.find(...)", "one mapping or keywords, not both")),
    ("await tools.count(3)", 1, ("tools.count(...)", "takes 0 arguments, not 1")),
    ("s = tools.find\nawait s(qurey='x')", 2, ("tools.find(...)", '"qurey"')),
    ("async def f(q):\n    return await tools.find(query=q, limt=3)\nawait f('x')", 2, ("tools.find(...)", '"limt"')),
    ("await tools.fnid(query='x')", 1, ('no tool "fnid"', 'did you mean "find"')),
    ("await tools['odd_name']({'max-items': 1})", 1, ('no tool "odd_name"', '"odd-name"')),
    ("await tools.odd-name(3)", 1, ('no tool "odd"', 'tools["odd-name"]')),
    # A result
    ("p = await tools.find(query='x')\nprint(p[0]['nmae'])", 2, ("tools.find(...)", '"nmae"', '"name"')),
    ("p = await tools.find(query='x')\nprint(f\"{p[0]['nmae']}\")", 2, ("tools.find(...)", '"nmae"')),
    ("p = await tools.find(query='x')\nprint(p[0].name)", 2, ("tools.find(...)", '["name"] in place of .name')),
    ("p = await tools.find(query='x')\np['name']", 2, ("tools.find(...)", "list[dict]", '"name"')),
    ("p = tools.find(query='x')\np[0]", 2, ("tools.find(...) is not awaited",)),
    ("for p in tools.find(query='x'):\n    pass", 1, ("tools.find(...) is not awaited",)),
    ("len(tools.find(query='x'))", 1, ("tools.find(...) is not awaited",)),
    ("n = await tools.count()\nn['x']", 2, ("tools.count(...)", "int", "no items")),
    ("n = await tools.count()\nfor i in n:\n    pass", 2, ("tools.count(...)", "int", "iterated")),
    ("(await tools.count()).foo", 1, ("tools.count(...)", "int", ".foo")),
    ("await (await tools.count())", 1, ("tools.count(...)", "int", "awaited")),
    ("x = (await tools.find(query='x')) + 1", 1, ("tools.find(...)", "`+`", "list[dict]")),
    (
        "import asyncio\nr = await asyncio.gather(*[tools.find(query=q) for q in 'ab'])\n[p['nam'] for p in r[0]]",
        3,
        ('no key "nam"', 'did you mean "name"'),
    ),
    # Places count characters
    ("x = await tools.find(query='ü😀', limit='é'); y = await tools.find(qery='ü')", 1, ('"qery"',)),
]

RIGHT = [
    "await tools.find(query='x')",
    "await tools.find('x')",
    "await tools.find('x', 3, tags=['a'])",
    "await tools.find({'query': 'x', 'near': {'lat': 1, 'lon': 2}})",
    "await tools.find(query='x', limit=3.0)",
    "await tools.find(query='x', tags=('a', 'b'))",
    "a = {'query': 'x'}\na['limit'] = 3\nawait tools.find(a)",
    "a = {'query': 'x', 'limit': 3}\nawait tools.find(**a)",
    "a = None if len('x') else {'query': 'x'}\nawait tools.find(a or {'query': 'y'})",
    "class Given(dict): pass\nawait tools.find(Given(query='x'))",
    "for s in ['asc', 'desc']:\n    await tools.find(query='x', sort=s)",
    "q = input_value if 'input_value' in globals() else 'd'\nawait tools.find(query=q)",
    "def pick(x):\n    return x or 'y'\nawait tools.find(pick('x'))",
    "await tools.find(query=str(await tools.count()), tags=[str(i) for i in range(3)])",
    "p = await tools.find(query='x')\np[0]['score'] = 3\nprint(p[0]['score'])",
    "for q in await tools.find(query='x'):\n    q.update(extra=1)\n    print(q['extra'])",
    "p = await tools.find(query='x')\nprint(p[0].get('nope'), 'nope' in p[0])",
    "p = await tools.find(query='x')\nrows = [{**q, 'rank': 1} for q in p]\nprint(rows[0]['rank'])",
    "p = await tools.find(query='x')\nprint(p[0]['home-page'].upper())",
    "p = await tools.find(query='x')\np[0]['age'] = str(p[0]['age'])\nprint(p[0]['age'].upper())",
    "p = await tools.find(query='x')\nfor q in p:\n    try:\n        q['zip']\n    except KeyError:\n        pass",
    "import asyncio\na, b = await asyncio.gather(tools.find(query='x'), tools.count())\nprint(a[0]['name'], b + 1)",
    "import asyncio\nasync with asyncio.TaskGroup() as g:\n    t = g.create_task(tools.count())\nprint(t.result() + 1)",
    "import asyncio\nt = asyncio.create_task(tools.count())\nprint(await t)",
    "import json\nawait tools.save(record=json.loads('{}'))",
    "p = await tools.find(query='x')\nawait tools.save(record=p[0], to=p[0]['home-page'])",
    "p = await tools.find(query='x')\nawait tools.save({'record': {'all': p, 'n': len(p)}, 'to': None})",
    "await tools['odd-name']({'max-items': 3})\nawait tools['odd-name'](**{'max-items': 3})",
    "r = await tools['odd-name']({'max-items': 1})\nfor k, v in r.items():\n    print(k, v + 1)\nprint(r['anything'])",
    "n = 'odd-name'\nawait tools[n]({'max-items': 3})\nawait tools['odd\\x2dname']({'max-items': 3})",
    "r = await tools.open(id=1, more='x')\nprint(r['whatever'])",
    "await getattr(tools, 'find')(query=1)",
    "x = [str(1)]\nawait tools.save(record={}, labels=x, to=x[0] if len(x) else 3)",
    "if 'other' in tools:\n    await tools['other']()\nif hasattr(tools, 'third'):\n    await tools.third()",
    "try:\n    await tools.maybe()\nexcept AttributeError:\n    pass",
    "try:\n    await tools.find(query='x')\nexcept ToolCallError as error:\n    print(error.toolName)",
    "async def main():\n    return sorted(await tools.find(query='x'), key=lambda p: p['age'])\nreturn await main()",
    "counts = {}\nfor q in await tools.find(query='x'):\n    counts[q['name']] = counts.get(q['name'], 0) + 1",
    "if not (found := await tools.find(query='x')):\n    return 'none'\nreturn found[0]['friends'][0]['name']",
    # The program's own business
    "x: int = 'nope'\nundefined_thing.foo()\nimport numpy\n'a' + 1\n{}['x'].foo",
    "def f(tools):\n    return tools.zzz\nclass A: zzz = 1\nf(A())",
    "from __future__ import annotations\nglobal y\ny = await tools.count()\ndef f():\n    global y\n    y += 1\nf()",
    "tools = {'a': 1}\nprint(tools['a'], tools.foo)",
]
