"""Random schemas of all the kinds that have a type, values that are meant for them, and changes that may break those.

Whether a value is valid, and whether a change broke it, is for a validator to say and not for this module.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

Schema: TypeAlias = Any

NAMES = ("A", "B", "C")
KEYS = ("a", "b", "a-b", "class", "名")
SCALARS = ("string", "number", "integer", "boolean", "null")
MAX_SCHEMA_DEPTH = 3
MAX_VALUE_DEPTH = 14
UNDECLARED = "undeclared"
"""A key that no schema here declares."""

_POOLS: Mapping[str, tuple[Any, ...]] = {
    "string": ("a", "abc", "", "2026-01-02", "quote\" ' \\ \n", "名"),
    "integer": (0, 3, 40, -7),
    "number": (0, 0.5, 3, -1e-7, 12.25),
    "boolean": (True, False),
    "null": (None,),
}
_LIMITS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "string": ({"minLength": 1}, {"maxLength": 3}, {"pattern": "^a"}, {"format": "date"}),
    "integer": ({"minimum": 3}, {"multipleOf": 10}),
    "number": ({"maximum": 3}, {"exclusiveMinimum": 0}),
    "boolean": ({},),
    "null": ({},),
}
_ENUMS: tuple[tuple[Any, ...], ...] = (
    ("a", "b|c"),
    ("x",),
    (1, 2),
    ("a", None, True),
    (0.5, "half"),
    (7, "7"),
)
_OTHER_KINDS: tuple[Any, ...] = ("other", 987, 0.25, None, [[]], [], {}, {UNDECLARED: []})


class Supported:
    """Draws schemas of all the kinds that have a type, with the definitions `NAMES`."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def whole(self) -> Schema:
        return {**self._node(0), "$defs": {name: self._node(self._chance.randint(0, 1)) for name in NAMES}}

    def _node(self, depth: int) -> Schema:
        simple = [self._scalar, self._scalar, self._limited, self._listed, self._reference, lambda _: {}]
        nested = [self._array, self._tuple, self._record, self._object, self._object, self._patterned, self._nullable]
        joined = [self._union, self._union, self._tagged, self._all_of, self._beside, self._alternatives]
        few = self._chance.random() < 0.3 and depth > 0
        kinds = simple if depth >= MAX_SCHEMA_DEPTH or few else [self._reference, *nested, *joined]
        return self._chance.choice(kinds)(depth + 1)

    def _nodes(self, depth: int, most: int = 3) -> list[Schema]:
        return [self._node(depth) for _ in range(self._chance.randint(1, most))]

    def _scalar(self, _: int) -> Schema:
        return {"type": self._chance.choice(SCALARS)}

    def _limited(self, _: int) -> Schema:
        kind = self._chance.choice(SCALARS)
        return {"type": kind, **self._chance.choice(_LIMITS[kind])}

    def _listed(self, _: int) -> Schema:
        values = self._chance.choice(_ENUMS)
        return {"enum": list(values)} if len(values) > 1 else {"const": values[0]}

    def _reference(self, _: int) -> Schema:
        return {"$ref": f"#/$defs/{self._chance.choice(NAMES)}"}

    def _array(self, depth: int) -> Schema:
        return {"type": "array", "items": self._node(depth), **self._chance.choice([{}, {"minItems": 1}])}

    def _tuple(self, depth: int) -> Schema:
        prefix = self._nodes(depth)
        ways = [{"items": False}, {"maxItems": len(prefix)}, {"items": self._node(depth)}, {}]
        least = self._chance.choice([0, 1, len(prefix), len(prefix)])
        return {"type": "array", "prefixItems": prefix, "minItems": least, **self._chance.choice(ways)}

    def _record(self, depth: int) -> Schema:
        return {"type": "object", "additionalProperties": self._node(depth)}

    def _object(self, depth: int) -> Schema:
        keys = self._chance.sample(KEYS, self._chance.randint(0, 3))
        node: Schema = {"type": "object", "properties": {key: self._node(depth) for key in keys}}
        node["required"] = keys[: self._chance.randint(0, len(keys))]
        ways = [{}, {"additionalProperties": False}, {"additionalProperties": False}]
        return {**node, **self._chance.choice([*ways, {"additionalProperties": self._node(depth)}])}

    def _patterned(self, depth: int) -> Schema:
        node = self._object(depth) if self._chance.random() < 0.5 else {"type": "object"}
        return {**node, "patternProperties": {"^x": self._node(depth)}, "additionalProperties": False}

    def _nullable(self, depth: int) -> Schema:
        node = self._chance.choice([self._object, self._array, self._scalar])(depth)
        return {**node, "type": list(dict.fromkeys([node["type"], "null"]))}

    def _union(self, depth: int) -> Schema:
        return {self._chance.choice(["anyOf", "oneOf"]): self._nodes(depth)}

    def _tagged(self, depth: int) -> Schema:
        """Objects told apart by a key."""
        branches: list[Schema] = []
        for number in range(2):
            branch = self._object(depth)
            branch["properties"] = {"kind": {"const": f"kind {number}"}, **branch["properties"]}
            branches.append({**branch, "required": ["kind", *branch["required"]]})
        return {"oneOf": branches}

    def _all_of(self, depth: int) -> Schema:
        """Open objects with different keys, or a reference with words of its own, or anything."""
        if self._chance.random() < 0.3:
            return {"allOf": [self._reference(depth)], "description": "Words of its own."}
        if self._chance.random() < 0.3:
            return {"allOf": self._nodes(depth)}
        keys = self._chance.sample(KEYS, 2)
        members = [{"type": "object", "properties": {key: self._node(depth)}, "required": [key]} for key in keys]
        return {"allOf": members, **self._chance.choice([{}, {"unevaluatedProperties": False}])}

    def _alternatives(self, depth: int) -> Schema:
        """An open object, some keys of which stand only in alternatives."""
        keys = self._chance.sample(KEYS, 3)
        members = [{"properties": {key: self._node(depth)}, "type": "object"} for key in keys]
        either = [
            {**member, **self._chance.choice([{}, {"required": [key]}])}
            for key, member in zip(keys, members, strict=True)
        ]
        joined = {**either[0], self._chance.choice(["anyOf", "oneOf"]): either[1:]}
        return joined if self._chance.random() < 0.5 else {"allOf": [either[0], {"anyOf": either[1:]}]}

    def _beside(self, depth: int) -> Schema:
        """Keywords of several kinds in one node, all of which must hold."""
        node = self._chance.choice([self._object, self._array, self._scalar])(depth)
        other = self._chance.choice([self._reference, self._union, self._all_of, self._object])(depth)
        return {**other, **node, **self._chance.choice([{}, {}, {"unevaluatedProperties": False}])}


class _EndlessError(Exception):
    """The schema has no value that is near enough."""


class Values:
    """Draws values that are meant for a schema; whether they are valid is for its validator to say.

    Args:
        root: the schema.
        chance: the source of chance.
        undeclared: whether objects with declared keys get others too, which a TypedDict refuses in any case.
    """

    def __init__(self, root: Schema, chance: Random, *, undeclared: bool) -> None:
        self._root = root
        self._chance = chance
        self._undeclared = undeclared

    def some(self, count: int) -> Iterator[Any]:
        """Yields up to `count` values."""
        for _ in range(count):
            try:
                yield self._value(self._root, 0)
            except _EndlessError:
                continue

    def _value(self, node: Schema, depth: int, *, joined: bool = False) -> Any:
        """Draws a value of one node; `joined` says that other nodes speak of the same value."""
        if depth > MAX_VALUE_DEPTH or node is False:
            raise _EndlessError
        if node is True:
            node = {}
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return self._chance.choice(node["enum"])
        says = [key for key in ("$ref", "allOf", "anyOf", "oneOf", "type") if key in node]
        joined = joined or len(says) > 1 or len(node.get("allOf", ())) > 1
        parts: list[Any] = []
        for key in says:
            if key == "type":
                parts.append(self._typed(node, depth, joined=joined))
            elif key == "$ref":
                parts.append(self._value(_target(self._root, node[key]), depth + 1, joined=joined))
            elif key == "allOf":
                parts += [self._value(member, depth + 1, joined=joined) for member in node[key] if member]
            else:
                parts.append(self._one_of(node[key], depth, joined=joined))
        if parts and all(isinstance(part, dict) for part in parts):
            return {key: value for part in parts for key, value in part.items()}
        return self._chance.choice(parts) if parts else copy.deepcopy(self._chance.choice(_OTHER_KINDS))

    def _one_of(self, branches: list[Schema], depth: int, *, joined: bool) -> Any:
        for branch in self._chance.sample(branches, len(branches)):
            try:
                return self._value(branch, depth + 1, joined=joined)
            except _EndlessError:
                continue
        raise _EndlessError

    def _typed(self, node: Schema, depth: int, *, joined: bool) -> Any:
        kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
        kind = kinds[-1] if depth > MAX_VALUE_DEPTH // 2 else self._chance.choice(kinds)
        if kind == "object":
            return self._object(node, depth, joined=joined)
        if kind == "array":
            return self._array(node, depth)
        return self._chance.choice(_POOLS[kind])

    def _object(self, node: Schema, depth: int, *, joined: bool) -> Any:
        declared = node.get("properties", {})
        made: dict[str, Any] = {}
        for key, schema in declared.items():
            must = key in node.get("required", ())
            if must or self._chance.random() < (0.6 if depth < MAX_VALUE_DEPTH // 2 else 0):
                try:
                    made[key] = self._value(schema, depth + 1)
                except _EndlessError:
                    if must:
                        raise
        others = {f"x{key}": schema for key, schema in node.get("patternProperties", {}).items()}
        additional = node.get("additionalProperties", True)
        if additional is not False:
            others[UNDECLARED] = {} if additional is True else additional
        if self._undeclared or not (declared or joined):
            for key, schema in others.items():
                if self._chance.random() < 0.5 and depth < MAX_VALUE_DEPTH // 2:
                    made[key.replace("^", "")] = self._value(schema, depth + 1)
        return made

    def _array(self, node: Schema, depth: int) -> Any:
        prefix = node.get("prefixItems", [])
        least, rest = node.get("minItems", 0), node.get("items", {})
        room = 0 if depth > MAX_VALUE_DEPTH // 2 else 2
        length = self._chance.randint(least, max(least, len(prefix) + room))
        if prefix and (rest is False or node.get("maxItems") == len(prefix)):
            length = min(length, len(prefix))
        return [self._value(prefix[at] if at < len(prefix) else rest, depth + 1) for at in range(length)]


def _target(root: Schema, pointer: str) -> Schema:
    found = root
    for step in unquote(pointer).split("/")[1:]:
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


class Broken(NamedTuple):
    """A value that was changed in one place.

    Attributes:
        how: `kind` (a value of another kind, or not one of the listed), `missing`, `undeclared`, or `length`.
        value: the whole value.
    """

    how: str
    value: Any


def breakages(value: Any, chance: Random) -> Iterator[Broken]:
    """Yields copies of a value, each changed in one random place; whether that breaks it is for a validator to say."""
    for _ in range(24):
        whole = {"": copy.deepcopy(value)}
        places = list(_places(whole))
        holder, key = chance.choice(places)
        part = holder[key]
        ways = ["kind"]
        if isinstance(part, dict):
            ways += ["undeclared", *(["missing"] * 2 if part else [])]
        if isinstance(part, list):
            ways += ["length"]
        how = chance.choice(ways)
        if how == "kind":
            holder[key] = copy.deepcopy(chance.choice(_OTHER_KINDS))
        elif how == "missing":
            del part[chance.choice(list(part))]
        elif how == "undeclared":
            part[UNDECLARED + " too"] = copy.deepcopy(chance.choice(_OTHER_KINDS))
        elif part and chance.random() < 0.5:
            part.pop()
        else:
            part.append(copy.deepcopy(part[-1]) if part else 1)
        yield Broken(how, whole[""])


def _places(whole: Any) -> Iterator[tuple[Any, Any]]:
    for key in range(len(whole)) if isinstance(whole, list) else list(whole):
        yield whole, key
        if isinstance(whole[key], (dict, list)):
            yield from _places(whole[key])
