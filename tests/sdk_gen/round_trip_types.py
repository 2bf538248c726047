"""What a type can say of the values of a schema, written down as a schema: the measure of the round trip.

`sayable` is what the type says at most: a value that it refuses, the type must refuse. It is weaker than the schema
itself in these points, and in no others:

- In both languages: what is inside a scalar (`minimum`, `pattern`, `format`), how many items a list has, `oneOf`
  against `anyOf`, undeclared keys beside declared ones where some are accepted, what a mapping holds that has both
  patterns for its keys and other keys, and any node that several of `type`, `$ref`, `allOf`, `anyOf` and `oneOf` speak
  of at once (save an `allOf` of one member, or of open objects with different keys).
- Python: a tuple is a list of all its items' types; a bool is an int and a float; a float is no `Literal`; a definition
  that contains itself with no object of declared keys in between is `Any`.
- TypeScript: an integer is a number; undeclared keys are not found in a union that may have several objects, nor
  deeper in it, because the compiler does not look for them there; items that a tuple may leave out, and those after the
  declared ones, are any JSON where they contain a reference.

`declared_only` is what the Python stub accepts at least: it refuses every undeclared key, on purpose, because those are
mostly slips. So it is the schema with every object closed to keys that no part of it declares.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

Schema: TypeAlias = Any
Language: TypeAlias = Literal["python", "typescript"]

_SAYS = ("$ref", "allOf", "anyOf", "oneOf", "type")
"""The keywords that each speak of the whole value."""
_SCALARS = ("string", "number", "integer", "boolean", "null")


def sayable(root: Schema, language: Language) -> Schema:
    """Returns a schema that says what the type says at most; what it refuses, the type must refuse."""
    return _Sayable(root, language).whole()


class _Sayable:
    def __init__(self, root: Schema, language: Language) -> None:
        self._root = root
        self._python = language == "python"
        self._unnamed = {name for name, node in root["$defs"].items() if name in self._directly(node, set())}

    def whole(self) -> Schema:
        definitions = self._root["$defs"]
        tight = {name: self._node(node, around=False) for name, node in definitions.items()}
        loose = {f"{name}-around": self._node(node, around=True) for name, node in definitions.items()}
        return {**self._node(self._root, around=False), "$defs": tight | loose}

    def _directly(self, node: Schema, seen: set[str]) -> set[str]:
        """The definitions that a node contains without an object of declared keys in between."""
        if not isinstance(node, dict) or node.get("properties"):
            return seen
        if "$ref" in node and (name := node["$ref"].rsplit("/", 1)[-1]) not in seen:
            seen.add(name)
            self._directly(self._root["$defs"][name], seen)
        inner = [node.get("items"), node.get("additionalProperties"), *node.get("patternProperties", {}).values()]
        for key in ("prefixItems", "anyOf", "oneOf", "allOf"):
            inner += node.get(key, [])
        for part in inner:
            self._directly(part, seen)
        return seen

    def _node(self, node: Schema, *, around: bool) -> Schema:
        """Weakens one node; `around` says that a union of several objects is around it."""
        values = "const" in node or "enum" in node
        says = [key for key in _SAYS if key in node]
        if values:
            return self._listed([node["const"]] if "const" in node else node["enum"])
        if len(says) != 1:
            return {}
        (key,) = says
        if key == "$ref":
            name = node[key].rsplit("/", 1)[-1]
            if self._python and name in self._unnamed:
                return {}
            return {"$ref": f"#/$defs/{name}{'-around' if around else ''}"}
        if key == "allOf":
            return self._all_of(node, around=around)
        if key == "type":
            kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
            return {"anyOf": [self._typed(kind, node, around=around) for kind in kinds]}
        around = around or sum(map(_may_be_object, node[key])) > 1
        return {"anyOf": [self._node(branch, around=around) for branch in node[key]]}

    def _listed(self, values: list[Any]) -> Schema:
        floats = self._python and any(isinstance(value, float) for value in values)
        return {"anyOf": [{"enum": values}, *([{"type": ["number", "boolean"]}] if floats else [])]}

    def _all_of(self, node: Schema, *, around: bool) -> Schema:
        members = node["allOf"]
        if len(members) == 1:
            return self._node(members[0], around=around)
        if not all(member.keys() == {"type", "properties", "required"} for member in members):
            return {}
        keys = [key for member in members for key in member["properties"]]
        if any(member["type"] != "object" for member in members) or len(set(keys)) < len(keys):
            return {}
        joined = {
            "properties": {key: schema for member in members for key, schema in member["properties"].items()},
            "required": [key for member in members for key in member["required"]],
            "additionalProperties": node.get("unevaluatedProperties", True),
        }
        return self._typed("object", joined, around=around)

    def _typed(self, kind: str, node: Schema, *, around: bool) -> Schema:
        if kind in ("integer", "number"):
            return {"type": [kind, "boolean"] if self._python else "number"}
        if kind == "array":
            return self._array(node, around=around)
        return self._object(node, around=around) if kind == "object" else {"type": kind}

    def _array(self, node: Schema, *, around: bool) -> Schema:
        rest = node.get("items", {})
        if "prefixItems" not in node:
            return {"type": "array", "items": self._node(rest, around=around)}
        prefix = node["prefixItems"]
        closed = rest is False or node.get("maxItems") == len(prefix)
        if self._python:
            every = prefix if closed else [*prefix, rest]
            return {"type": "array", "items": {"anyOf": [self._node(item, around=True) for item in every]}}
        least = min(node["minItems"], len(prefix))
        items = [
            {} if number >= least and "$ref" in repr(item) else self._node(item, around=around)
            for number, item in enumerate(prefix)
        ]
        others = {} if "$ref" in repr(rest) else False if closed else self._node(rest, around=around)
        return {"type": "array", "prefixItems": items, "items": others, "minItems": least}

    def _object(self, node: Schema, *, around: bool) -> Schema:
        properties, patterns = node.get("properties", {}), list(node.get("patternProperties", {}).values())
        others = node.get("additionalProperties", True)
        closed = others is False and not patterns
        around = around and not self._python
        made: Schema = {"type": "object", "required": node.get("required", [])}
        made["properties"] = {key: self._node(schema, around=around) for key, schema in properties.items()}
        if closed:
            return made if around else {**made, "additionalProperties": False}
        if properties:
            return made
        values = patterns if others is False else [others] if isinstance(others, dict) and not patterns else []
        if values:
            around = around or len(values) > 1
            made["additionalProperties"] = {"anyOf": [self._node(schema, around=around) for schema in values]}
        return made


def _may_be_object(node: Schema) -> bool:
    """Whether some value of a branch is, or contains, an object."""
    return not ("const" in node or "enum" in node or node.get("type") in _SCALARS)


def declared_only(root: Schema) -> Schema:
    """Returns the schema with its objects closed to undeclared keys, where they have declared ones."""
    definitions = root["$defs"]
    plain = {name: _declared(node, closes=False) for name, node in definitions.items()}
    closed = {f"{name}-closed": _declared(node, closes=True) for name, node in definitions.items()}
    return {**_declared(root, closes=True), "$defs": plain | closed}


def _declared(node: Schema, *, closes: bool) -> Schema:
    """Closes one node; when others in place speak of the same value, it is for the node around them to close it."""
    if not isinstance(node, dict):
        return node
    made = {key: value for key, value in node.items() if key != "$defs"}
    says = [key for key in _SAYS if key in node]
    alone = len(says) == 1 and len(node.get("allOf", ())) < 2
    inside = closes and alone
    if "$ref" in node and inside:
        made["$ref"] += "-closed"
    for key in ("allOf", "anyOf", "oneOf"):
        if key in node:
            made[key] = [_declared(branch, closes=inside) for branch in node[key]]
    for key in ("items", "additionalProperties", "prefixItems", "properties", "patternProperties"):
        inner = node.get(key)
        if isinstance(inner, list):
            made[key] = [_declared(item, closes=True) for item in inner]
        elif inner is not None:
            is_map = key in ("properties", "patternProperties")
            made[key] = _declared_map(inner) if is_map else _declared(inner, closes=True)
    if node.get("properties") or not closes:  # else it is a mapping, of whatever keys
        made.pop("patternProperties", None)
        if made.get("additionalProperties") is not False:
            made.pop("additionalProperties", None)
    if closes and (node.get("properties") or not alone):
        made["unevaluatedProperties"] = False
    return made


def _declared_map(nodes: dict[str, Schema]) -> dict[str, Schema]:
    return {name: _declared(node, closes=True) for name, node in nodes.items()}
