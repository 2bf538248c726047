"""A type checker reads the block as a stub, and finds a program's mistakes with it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest
from ptc.registry.definition import ToolSchema
from ptc.sdk_gen import render_python

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Full name"},
        "friends": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
        "mood": {"enum": ["good", "bad", None]},
        "tags": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
    },
    "required": ["name", "friends"],
}
CATALOGUE = [
    ToolSchema(
        name="find",
        description='Finds "people".',
        parameters={
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "sort": {"type": "string", "enum": ["asc", "desc"]},
                "near": {
                    "oneOf": [
                        {"type": "object", "properties": {"lat": {"type": "number"}}, "additionalProperties": False},
                        {"type": "null"},
                    ]
                },
            },
            "required": ["query"],
        },
        output={"type": "array", "items": {"$ref": "#/$defs/Person"}, "$defs": {"Person": PERSON}},
    ),
    ToolSchema(
        name="odd-name", description="", parameters={}, output={"$ref": "#/$defs/Person", "$defs": {"Person": PERSON}}
    ),
    ToolSchema(name="plain", description="", parameters={"type": "object", "properties": {}}, output={"type": "null"}),
]
PROGRAM = """\
from sdk import ToolCallError, tools

async def main() -> str | None:
    try:
        people = await tools.find({"query": "x", "near": {"lat": 1.0}})
    except ToolCallError as error:
        return error.toolName
    await tools.plain({})
    return people[0]["friends"][0]["name"]

async def mistakes() -> None:
    await tools.find({"sort": "asc"})
    await tools.find({"query": "x", "sort": "up"})
    (await tools.find({"query": "x"}))[0]["nme"]
"""


@pytest.mark.contract("G23")
@pytest.mark.skipif(importlib.util.find_spec("basedpyright") is None, reason="basedpyright is a development extra")
def test_a_catalogue_type_checks_as_a_stub(tmp_path):
    (tmp_path / "sdk.pyi").write_text(render_python(CATALOGUE).block, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    config = {"typeCheckingMode": "standard", "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(ran.stdout)["generalDiagnostics"]
    errors = [
        (item["file"].rsplit("/", 1)[-1], item["range"]["start"]["line"] + 1)
        for item in found
        if item["severity"] == "error"
    ]
    assert errors == [("program.py", 12), ("program.py", 13), ("program.py", 14)], found
