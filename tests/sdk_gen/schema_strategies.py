"""Random schemas as the raw-schema door takes them, many of which contain themselves, for tests that collect a batch.

A checker takes seconds to start, so a test draws all its examples first and has them checked in one run. Hypothesis
gives the seed of each schema and not each choice in it: its own choices lean to the small, and shrinking is of no use
when the examples are checked together.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from ptc.registry.errors import JsonSchemaError
from ptc.registry.schema import RawSchema

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Schema = dict[str, Any]
Item = TypeVar("Item")

NAMES = ("A", "B", "C", "D")
"""The definitions that every schema has."""

SCALARS = ("string", "number", "integer", "boolean", "null")
MAX_DEPTH = 5

_KEYS = ("a", "b", "a-b", "class", "items", "$ref")
_LISTED = ("a", "b|c", "d&e", 1, 2.5, None, True, "*/", [], {"a": 1})
_INSIDE = ("items", "properties/a", "additionalProperties", "anyOf/0", "oneOf/1", "allOf/0", "prefixItems/0", "$ref")


def collected(strategy: SearchStrategy[Item], count: int) -> list[Item]:
    """Draws `count` examples, the same ones in each run."""
    found: list[Item] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(item: Item) -> None:
        found.append(item)

    collect()
    return found


def randoms() -> SearchStrategy[Random]:
    """A source of chance for each example."""
    return st.integers(0, 2**64 - 1).map(Random)


def recursive_schema(chance: Random) -> Schema:
    """Draws a schema with the definitions `NAMES`, in which references lead to each other in every way."""
    while True:
        schema = _Recursive(chance).whole()
        try:
            RawSchema(schema)
        except JsonSchemaError:  # a reference leads nowhere
            continue
        return schema


def recursive_schemas() -> SearchStrategy[Schema]:
    """The strategy of `recursive_schema`."""
    return randoms().map(recursive_schema)


class _Recursive:
    """Draws one schema; every method takes the depth of the node that it draws."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._references = chance.choice([1, 3, 8])
        """How often a node is a reference; where most are, definitions lead only to each other."""

    def whole(self) -> Schema:
        # `$defs` stands at the root alone, so that every reference leads where it says.
        return {**self._node(0), "$defs": {name: self._node(self._chance.randint(0, 3)) for name in NAMES}}

    def _node(self, depth: int) -> Schema:
        kinds = [self._scalar, self._listed, lambda _: {}] + [self._reference] * self._references
        if depth < MAX_DEPTH:
            kinds += [self._any_of, self._one_of, self._all_of, self._array, self._tuple]
            kinds += [self._record, self._patterned, self._object, self._object, self._beside]
        node = self._chance.choice(kinds)(depth + 1)
        return {**node, "minimum": 3} if self._chance.random() < 0.1 else node

    def _nodes(self, depth: int) -> list[Schema]:
        return [self._node(depth) for _ in range(self._chance.randint(1, 3))]

    def _scalar(self, _: int) -> Schema:
        return {"type": self._chance.choice(SCALARS)}

    def _listed(self, _: int) -> Schema:
        return {"enum": self._chance.sample(_LISTED, self._chance.randint(1, 4))}

    def _reference(self, _: int) -> Schema:
        """The root, a definition (in two spellings that lead to the same one), or what stands inside of one."""
        name = self._chance.choice(NAMES)
        inside = self._chance.choice(_INSIDE)
        spelt = [f"#/$defs/{name}"] * 8 + [f"#/%24defs/{name}", "#", f"#/$defs/{name}/{inside}"]
        return {"$ref": self._chance.choice(spelt)}

    def _any_of(self, depth: int) -> Schema:
        return {"anyOf": self._nodes(depth)}

    def _one_of(self, depth: int) -> Schema:
        return {"oneOf": self._nodes(depth)}

    def _all_of(self, depth: int) -> Schema:
        return {"allOf": self._nodes(depth)}

    def _array(self, depth: int) -> Schema:
        return {"type": self._chance.choice(["array", ["array", "string"]]), "items": self._node(depth)}

    def _tuple(self, depth: int) -> Schema:
        rest = self._chance.choice([False, True, self._node(depth)])
        least = self._chance.randint(0, 3)
        return {"type": "array", "prefixItems": self._nodes(depth), "items": rest, "minItems": least}

    def _record(self, depth: int) -> Schema:
        return {"type": "object", "additionalProperties": self._node(depth)}

    def _patterned(self, depth: int) -> Schema:
        others = self._chance.choice([False, self._node(depth)])
        kinds = ["object", "null"]
        return {"type": kinds, "patternProperties": {"^x": self._node(depth)}, "additionalProperties": others}

    def _object(self, depth: int) -> Schema:
        keys = self._chance.sample(_KEYS, self._chance.randint(1, 3))
        node: Schema = {"type": "object", "properties": {key: self._node(depth) for key in keys}}
        node["required"] = keys[: self._chance.randint(0, len(keys))]
        others = self._chance.choice([None, True, False, self._node(depth)])
        return node if others is None else {**node, "additionalProperties": others}

    def _beside(self, depth: int) -> Schema:
        """Keywords of several kinds in one node, all of which must hold."""
        return {**self._node(depth), **self._node(depth)}
