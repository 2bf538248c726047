"""The published schema of the file: it is the one of the models, and it says the same of documents as they do."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema_rs
import ptc.runtime.config.schema as schema_module
import pytest
from ptc.runtime.config import ConfigError, config_schema
from ptc.runtime.config.schema import SCHEMA_FILE

PUBLISHED = Path(schema_module.__file__).with_name(SCHEMA_FILE)


def test_the_published_copy_is_the_schema_of_the_models():
    assert PUBLISHED.read_text(encoding="utf-8") == json.dumps(config_schema(), indent=2) + "\n", (
        f"write json.dumps(config_schema(), indent=2) and a line break into {SCHEMA_FILE}"
    )


def test_it_is_a_valid_schema_that_describes_every_key():
    schema = config_schema()
    jsonschema_rs.meta.validate(schema)
    tables = [schema, *schema["$defs"].values()]
    assert [table for table in tables if table["additionalProperties"] is not False] == []
    for table in tables:
        for name, key in table["properties"].items():
            described = key if "$ref" not in key else schema["$defs"][key["$ref"].removeprefix("#/$defs/")] | key
            assert described["description"].strip(), name
    assert "null" not in json.dumps(schema)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("", True),
        ("[servers.a]\ncommand = 'x'\nargs = ['y']\nenv.Z = '1'", True),
        ("[servers.a]\nurl = 'https://x.y'", True),
        ("[servers.a]\nargs = []", False),
        ("[servers.a]\ncommand = 'x'\nurl = 'https://x.y'", False),
        ("[servers.a]\ncommand = ''", False),
        ("[serve]\nport = 80", True),
        ("[serve]\nport = '${PORT:-80}'", True),
        ("[serve]\nport = '80'", False),
        ("[serve]\nport = 65536", False),
        ("[serve]\nprt = 80", False),
        ("[sandbox]\ncompute_ms = 0.5\npreflight = true", True),
        ("[sandbox]\ncompute_ms = 0", False),
        ("[sandbox]\nmemory_mib = 31", False),
        ("[sandbox]\nbackend = 'native'", True),
        ("[sandbox]\nbackend = 'docker'", False),
        ("[[rules]]\ntools = 'x'\ndecision = 'ask'\nread_only = true", True),
        ("[[rules]]\ntools = 'x'", False),
        ("[[rules]]\ntools = 'x'\ndecision = 'maybe'", False),
        ("[clients.'claude*']\nallow = ['a']\nagent = 'x'\n[clients.'claude*'.sandbox]\nwall_ms = 5\n[agents.x]", True),
        ("[agents.x]\nagent = 'y'", False),
        ("[tools]\nmodules = ['m']\nsettings.m = {a = 'b'}", True),
        ("[tools]\nmodules = 'm'", False),
    ],
)
def test_it_accepts_what_is_read_and_refuses_what_is_not(desk, text, valid):
    assert jsonschema_rs.is_valid(config_schema(), tomllib.loads(text)) == valid
    try:
        desk.load(text)
    except ConfigError:
        assert not valid
    else:
        assert valid
