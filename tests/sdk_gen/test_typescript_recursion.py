"""Definitions that lead back to each other in random ways: the TypeScript compiler goes round in none of them."""

from __future__ import annotations

import random

from ptc.registry.definition import ToolSchema
from ptc.sdk_gen import json_schema_to_ts, render_typescript

NAMES = ("A", "B", "C", "D")
ALIAS = "type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };"


class Schemas:
    """Draws schemas that refer to the definitions `NAMES`, and to their own root."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def whole(self):
        return {**self.part(), "$defs": {name: self.part() for name in NAMES}}

    def part(self, depth=0):
        kinds = [self.scalar, self.listed, self.reference, self.reference, lambda _: {}]
        if depth < 5:
            kinds += [self.union, self.union, self.joined, self.array, self.tuple, self.record, self.patterned]
            kinds += [self.object, self.object]
        schema = self.draw.choice(kinds)(depth + 1)
        if self.draw.random() < 0.2:
            schema["minimum"] = 3
        return schema

    def some(self, depth):
        return [self.part(depth) for _ in range(self.draw.randint(1, 3))]

    def scalar(self, _):
        return {"type": self.draw.choice(["string", "number", "integer", "boolean", "null"])}

    def listed(self, _):
        return {"enum": self.draw.sample(["a", "b|c", 1, 2.5, None, True, "*/"], self.draw.randint(1, 4))}

    def reference(self, _):
        return {"$ref": "#" if self.draw.random() < 0.1 else f"#/$defs/{self.draw.choice(NAMES)}"}

    def union(self, depth):
        return {self.draw.choice(["anyOf", "oneOf"]): self.some(depth)}

    def joined(self, depth):
        return {"allOf": self.some(depth)}

    def array(self, depth):
        return {"type": "array", "items": self.part(depth)}

    def tuple(self, depth):
        rest = self.draw.choice([False, True, self.part(depth)])
        return {"type": "array", "prefixItems": self.some(depth), "items": rest, "minItems": self.draw.randint(0, 3)}

    def record(self, depth):
        return {"type": "object", "additionalProperties": self.part(depth)}

    def patterned(self, depth):
        others = self.draw.choice([False, self.part(depth)])
        return {
            "type": ["object", "null"],
            "patternProperties": {"^x": self.part(depth)},
            "additionalProperties": others,
        }

    def object(self, depth):
        keys = self.draw.sample(["a", "b", "a-b", "class"], self.draw.randint(1, 3))
        properties = {key: self.part(depth) for key in keys}
        others = self.draw.choice([True, False, self.part(depth)])
        return {"type": "object", "properties": properties, "required": keys[:1], "additionalProperties": others}


def test_random_definitions_pass_the_compiler(tsc):
    files = {}
    for seed in range(3):
        schemas = Schemas(seed)
        tools = [
            ToolSchema(name=f"t{number}", description="", parameters=schemas.whole(), output=schemas.whole())
            for number in range(300)
        ]
        block = render_typescript(tools).block
        assert block.count("\ntype T") > 100  # most of them contain themselves
        files[f"block{seed}"] = block
        plain = [f"type X{number} = {json_schema_to_ts(tool.parameters)};" for number, tool in enumerate(tools)]
        files[f"plain{seed}"] = "\n".join([ALIAS, *plain])
    assert tsc(files) == []
