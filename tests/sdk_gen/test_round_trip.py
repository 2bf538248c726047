"""Round trip: a value that is valid has the type that its schema became, and one that is broken in shape has not.

For random schemas, each under the key `v` of a tool's arguments and of its output. What counts as broken in shape is
what `round_trip_types.sayable` refuses: there it stands in which points a type is allowed to be wider than its schema.
One run of a checker reads hundreds of values. That a fault of the generator would be found is shown by the mutants:
the same values against types that were changed on purpose.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, TypeAlias

import pytest
from ptc.registry.definition import ToolSchema
from ptc.registry.schema import RawSchema
from ptc.sdk_gen import build_maps, json_schema_to_ts, render_typescript
from ptc.sdk_gen.model import (
    AnyType,
    ArrayType,
    LiteralType,
    ObjectType,
    Property,
    ScalarType,
    ToolArgsMap,
    ToolOutputMap,
    TupleType,
    TypeDocument,
    TypeExpression,
    UnionType,
)
from ptc.sdk_gen.stub import stub_module
from ptc.sdk_gen.typescript import render_typescript_maps

HERE = Path(__file__).parent
ALIAS = "type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


strategies = load("schema_strategies")
types = load("round_trip_types")
values = load("round_trip_values")

Maps: TypeAlias = tuple[ToolArgsMap, ToolOutputMap]
Change: TypeAlias = Callable[[TypeExpression], TypeExpression]


# Cases ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """One value for the type of one tool: `how` is `valid`, or how the value is broken."""

    tool: int
    how: str
    value: Any


@dataclass(frozen=True)
class Batch:
    """The schemas of tools `t0`, `t1` ..., and values for them."""

    schemas: list[Any]
    examples: list[Example]

    def first(self, tools: int) -> Batch:
        return Batch(self.schemas[:tools], [example for example in self.examples if example.tool < tools])

    def maps(self) -> Maps:
        tools = [
            ToolSchema(name=f"t{number}", description="", parameters=under_v(schema), output=under_v(schema))
            for number, schema in enumerate(self.schemas)
        ]
        return build_maps(tools)


def under_v(schema: Any) -> Any:
    """The object schema whose key `v` has the schema; its definitions stay where references look for them."""
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    whole = {"type": "object", "properties": {"v": inner}, "required": ["v"], "additionalProperties": False}
    return {**whole, "$defs": schema["$defs"]}


def found_for(schema: Any, chance: Random, language: str) -> list[tuple[str, Any]]:
    """Draws two values of a schema, and some that are broken in shape; none when it seems to have no value."""
    check, shape = RawSchema(schema), RawSchema(types.sayable(schema, language))
    accepted = RawSchema(types.declared_only(schema)) if language == "python" else check
    valid: list[Any] = []
    for value in values.Values(schema, chance, undeclared=language != "python").some(12):
        if len(valid) < 2 and not check(value) and not accepted(value) and value not in valid:
            valid.append(value)
    broken: dict[str, tuple[str, Any]] = {}
    for value in valid:
        assert shape(value) == []
        for change in values.breakages(value, chance):
            if shape(change.value):
                assert check(change.value), "what the type can say must follow from what the schema says"
                broken.setdefault(repr(change.value), tuple(change))
    limits = Counter({"kind": 2, "missing": 2, "undeclared": 2, "length": 2})
    some: list[tuple[str, Any]] = []
    for how, value in broken.values():
        limits[how] -= 1
        if limits[how] >= 0:
            some.append((how, value))
    return [*(("valid", value) for value in valid), *some]


def batch(language: str, count: int) -> Batch:
    made = Batch([], [])
    for chance in strategies.collected(strategies.randoms(), count):
        schema = values.Supported(chance).whole()
        found = found_for(schema, chance, language)
        if found:
            made.examples.extend(Example(len(made.schemas), how, value) for how, value in found)
            made.schemas.append(schema)
    hows = Counter(example.how for example in made.examples)
    assert len(made.schemas) > 0.8 * count
    assert hows["valid"] > count
    assert hows["kind"] > count
    assert min(hows["undeclared"], hows["missing"]) > 0.3 * count
    assert hows["length"] > 0.03 * count
    return made


def told(batch: Batch, number: int) -> str:
    example = batch.examples[number]
    return f"{example.how}: {example.value!r} for {json.dumps(batch.schemas[example.tool])}"


# Mutants -------------------------------------------------------------------------------------------------------------


def rebuilt(type_: TypeExpression, change: Change) -> TypeExpression:
    """Changes a type and all types inside of it."""
    match type_:
        case ArrayType():
            type_ = replace(type_, items=rebuilt(type_.items, change))
        case TupleType():
            rest = None if type_.rest is None else rebuilt(type_.rest, change)
            type_ = replace(type_, items=tuple(rebuilt(item, change) for item in type_.items), rest=rest)
        case ObjectType():
            properties = tuple(changed(item, change) for item in type_.properties)
            additional = None if type_.additional is None else rebuilt(type_.additional, change)
            type_ = replace(type_, properties=properties, additional=additional)
        case UnionType():
            type_ = replace(type_, branches=tuple(rebuilt(branch, change) for branch in type_.branches))
        case _:
            pass
    return change(type_)


def changed(item: Property, change: Change) -> Property:
    """Changes a property's type. The property is a new one, because the generator shares those that are alike."""
    return Property(name=item.name, type=rebuilt(item.type, change), required=item.required)


def mutated(maps: Maps, change: Change) -> Maps:
    def entries(tools: Mapping[str, Any]) -> list[Any]:
        made: list[Any] = []
        for tool in tools.values():
            definitions = {name: rebuilt(each, change) for name, each in tool.document.definitions.items()}
            root = tool.document.root
            inner = tuple(
                replace(item, type=rebuilt(item.type, change)) for item in root.properties
            )  # `v` itself stays
            made.append(replace(tool, document=TypeDocument(replace(root, properties=inner), definitions)))
        return made

    return ToolArgsMap(entries(maps[0])), ToolOutputMap(entries(maps[1]))


def with_requiredness(*, required: bool) -> Change:
    def change(type_: TypeExpression) -> TypeExpression:
        if not isinstance(type_, ObjectType):
            return type_
        properties = (Property(name=item.name, type=item.type, required=required) for item in type_.properties)
        return replace(type_, properties=tuple(properties))

    return change


def scalars_lost(type_: TypeExpression) -> TypeExpression:
    return AnyType() if isinstance(type_, ScalarType) else type_


def literals_lost(type_: TypeExpression) -> TypeExpression:
    return AnyType() if isinstance(type_, LiteralType) else type_


def all_open(type_: TypeExpression) -> TypeExpression:
    is_closed = isinstance(type_, ObjectType) and type_.additional is None
    return replace(type_, additional=AnyType()) if is_closed else type_


def lengths_lost(type_: TypeExpression) -> TypeExpression:
    if not isinstance(type_, TupleType):
        return type_
    every = type_.items if type_.rest is None else (*type_.items, type_.rest)
    return ArrayType(items=UnionType(branches=(*every, every[0])))


def last_branch_lost(type_: TypeExpression) -> TypeExpression:
    return type_.branches[0] if isinstance(type_, UnionType) else type_


def literals_cut(type_: TypeExpression) -> TypeExpression:
    return replace(type_, values=type_.values[:1]) if isinstance(type_, LiteralType) else type_


MUTANTS: dict[str, tuple[Change, str]] = {
    "required keys may be left out": (with_requiredness(required=False), "missing"),
    "scalars are anything": (scalars_lost, "kind"),
    "literals are anything": (literals_lost, "kind"),
    "every key is required": (with_requiredness(required=True), "valid"),
    "unions lose branches": (last_branch_lost, "valid"),
    "literals lose values": (literals_cut, "valid"),
}
"""Changes of all types of a tool set, and which examples then get the wrong answer."""

TYPESCRIPT_MUTANTS = {
    **MUTANTS,
    "closed objects are open": (all_open, "undeclared"),
    "tuples have no length": (lengths_lost, "length"),
}
"""In the Python stub no object takes undeclared keys, and tuples are lists in any case."""


def wrong(batch: Batch, refused: set[int]) -> list[int]:
    """The examples that got the wrong answer: valid ones that were refused, and broken ones that were not."""
    return [number for number, example in enumerate(batch.examples) if (example.how == "valid") == (number in refused)]


def check_round_trip(
    batch: Batch,
    mutants: Mapping[str, tuple[Change, str]],
    refused: Callable[[Mapping[str, tuple[Batch, Maps]]], Mapping[str, set[int]]],
) -> None:
    """Checks a batch as it is, and that each mutant gives wrong answers of the kind that it is there for."""
    few = batch.first(50)
    jobs = {name: (few, mutated(few.maps(), change)) for name, (change, _how) in mutants.items()}
    answers = refused({"as it is": (batch, batch.maps()), **jobs})
    assert [told(batch, number) for number in wrong(batch, answers["as it is"])] == []
    for name, (_change, how) in mutants.items():
        hows = Counter(few.examples[number].how for number in wrong(few, answers[name]))
        assert hows[how] >= 3, (name, hows)


# TypeScript ----------------------------------------------------------------------------------------------------------


def typescript_lines(batch: Batch) -> list[str]:
    """One line for each example: a value of one of the two interfaces, or an argument of a call."""
    lines: list[str] = []
    for number, example in enumerate(batch.examples):
        value = json.dumps({"v": example.value})
        name = f"t{example.tool}"
        forms = (
            f'export const x{number}: ToolArgsMap["{name}"] = {value};',
            f'export const x{number}: ToolOutputMap["{name}"] = {value};',
            f"export const x{number} = tools.{name}({value});",
        )
        lines.append(forms[number % len(forms)])
    return lines


@pytest.mark.contract("G6", "G7", "G8", "G9")
def test_values_have_the_typescript_type_of_their_schema_unless_broken(
    tsc: Callable[[Mapping[str, str]], list[str]],
) -> None:
    def refused(jobs: Mapping[str, tuple[Batch, Maps]]) -> dict[str, set[int]]:
        files: dict[str, str] = {}
        starts: dict[str, tuple[str, int]] = {}
        for number, (name, (examples, maps)) in enumerate(jobs.items()):
            block = render_typescript_maps(*maps).block
            starts[f"job{number}"] = (name, block.count("\n") + 2)
            files[f"job{number}"] = "\n".join([block, *typescript_lines(examples)])
        answers: dict[str, set[int]] = {name: set() for name in jobs}
        for error in tsc(files):
            file, line = error.partition(" ")[0].split(":")
            name, start = starts[file]
            assert int(line) >= start, error  # in the block itself
            answers[name].add(int(line) - start)
        return answers

    check_round_trip(batch("typescript", 300), TYPESCRIPT_MUTANTS, refused)


@pytest.mark.contract("G7", "G8")
def test_valid_values_have_the_type_of_schemas_that_contain_themselves(
    tsc: Callable[[Mapping[str, str]], list[str]],
) -> None:
    tools: list[ToolSchema] = []
    plain, named = [ALIAS], [""]
    for chance in strategies.collected(strategies.randoms(), 400):
        schema = strategies.recursive_schema(chance)
        check = RawSchema(schema)
        name = f"t{len(tools)}"
        tools.append(ToolSchema(name=name, description="", parameters=schema, output=schema))
        plain.append(f"type {name} = {json_schema_to_ts(schema)};")
        for number, value in enumerate(values.Values(schema, chance, undeclared=True).some(4)):
            if not check(value):
                plain.append(f"export const {name}_{number}: {name} = {json.dumps(value)};")
                named.append(f'export const {name}_{number}: ToolArgsMap["{name}"] = {json.dumps(value)};')
    assert len(named) > len(tools)
    block = render_typescript(tools).block
    assert block.count("\ntype T") > 100  # many of them contain themselves
    assert tsc({"named": block + "\n".join(named), "plain": "\n".join(plain)}) == []


# Python --------------------------------------------------------------------------------------------------------------


def python_lines(batch: Batch) -> list[str]:
    """One line for each example: a value of one of the two types, or the argument of a call in both its forms."""
    lines: list[str] = []
    for number, example in enumerate(batch.examples):
        value, tool = repr(example.value), example.tool
        forms = (
            f'_{number}: sdk.T{tool}Args = {{"v": {value}}}',
            f'_{number}: sdk.T{tool}Output = {{"v": {value}}}',
            f'_{number} = sdk.tools.t{tool}({{"v": {value}}})',
            f"_{number} = sdk.tools.t{tool}(v={value})",
        )
        lines.append(forms[number % len(forms)])
    return lines


def basedpyright(folder: Path) -> Iterator[tuple[str, int]]:
    """Yields the file and the line, from 0, of each error that basedpyright finds."""
    config = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "reportUnusedCoroutine": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    told = _json_of(folder, "basedpyright", "--outputjson")
    assert told["summary"]["filesAnalyzed"] == len([*folder.glob("*.py*")])
    for item in told["generalDiagnostics"]:
        if item["severity"] == "error":
            yield Path(item["file"]).name, item["range"]["start"]["line"]


def ty(folder: Path) -> Iterator[tuple[str, int]]:
    """Yields the file and the line, from 0, of each error that ty finds."""
    for item in _json_of(folder, "ty", "check", "--output-format", "gitlab", "--no-progress"):
        yield item["location"]["path"], item["location"]["positions"]["begin"]["line"] - 1


def _json_of(folder: Path, *command: str) -> Any:
    ran = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False, timeout=100
    )
    return json.loads(ran.stdout)


@pytest.mark.contract("G12", "G13", "G15", "G17")
@pytest.mark.parametrize(
    ("checker", "found_in", "count", "extra_items"),
    [("basedpyright", basedpyright, 150, False), ("ty", ty, 300, True)],
    ids=["basedpyright", "ty"],
)
def test_values_have_the_python_type_of_their_schema_unless_broken(
    checker: str,
    found_in: Callable[[Path], Iterator[tuple[str, int]]],
    count: int,
    extra_items: bool,
    tmp_path: Path,
) -> None:
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is a development extra")

    def refused(jobs: Mapping[str, tuple[Batch, Maps]]) -> dict[str, set[int]]:
        starts: dict[str, tuple[str, int]] = {}
        for number, (name, (examples, maps)) in enumerate(jobs.items()):
            stub = stub_module(*maps, extra_items=extra_items).text  # with them it is what programs are checked against
            (tmp_path / f"sdk{number}.pyi").write_text(stub, encoding="utf-8")
            lines = python_lines(examples)
            for start in range(0, len(lines), 400):  # a longer module is too complex for basedpyright
                starts[f"job{number}_{start}.py"] = (name, start)
                text = "\n".join([f"import sdk{number} as sdk", *lines[start : start + 400]])
                (tmp_path / f"job{number}_{start}.py").write_text(text, encoding="utf-8")
        answers: dict[str, set[int]] = {name: set() for name in jobs}
        for file, line in found_in(tmp_path):
            name, start = starts[file]  # no stub is among them
            answers[name].add(start + line - 1)
        return answers

    check_round_trip(batch("python", count), MUTANTS, refused)
