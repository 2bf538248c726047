"""What is wrong with a configuration is told in one line for each fault, with the line of the file."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptc.runtime.config import ConfigError, config_schema, load_config

SEVERAL = """\
[servers.files]
comand = "npx"

[sandbox]
backend = "wsm"
compute_ms = 0

[[rules]]
tools = "x"
decision = "deny"

[[rules]]
toolz = "y"
decision = "ask"
reason = ""
"""


def test_every_fault_has_its_own_line_in_the_order_of_the_file(desk):
    assert desk.fails(SEVERAL) == [
        'ptc.toml:2: servers.files.comand: unknown key; did you mean "command"?',
        'ptc.toml:5: sandbox.backend: must be "wasm", "restricted" or "native", not "wsm"; did you mean "wasm"?',
        "ptc.toml:6: sandbox.compute_ms: must be more than 0, not 0",
        'ptc.toml:13: rules[1].toolz: unknown key; did you mean "tools"?',
        "ptc.toml:15: rules[1].reason: must not be empty",
    ]


def test_the_error_has_its_faults_as_data(desk):
    desk.write("[serve]\nport = -1\n")
    with pytest.raises(ConfigError) as caught:
        load_config(desk.path)
    (finding,) = caught.value.findings
    assert (finding.severity, finding.file, finding.line) == ("error", str(desk.path), 2)
    assert (finding.where, finding.problem) == ("serve.port", "must be at least 0, not -1")
    assert caught.value.code == "CONFIG"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        # Keys
        (
            "foo = 1",
            (
                "ptc.toml:1: foo: unknown key; the keys here are agents, approvals, clients, log, mcp_json, rules, "
                "sandbox, serve, servers and tools"
            ),
        ),
        ("[sandboxx]", 'ptc.toml:1: sandboxx: unknown key; did you mean "sandbox"?'),
        ("\n\n[Serve]", 'ptc.toml:3: Serve: unknown key; did you mean "serve"?'),
        (
            '[servers."my files"]\ncommand = "x"\n"a b" = 1',
            (
                'ptc.toml:3: servers."my files"."a b": unknown key; the keys '
                "here are args, command, connect_ms, cwd, env, headers, prefix, timeout_ms and url"
            ),
        ),
        (
            '[servers.a]\ncommand = "x"\nTimeout_MS = 1',
            ('ptc.toml:3: servers.a.Timeout_MS: unknown key; did you mean "timeout_ms"?'),
        ),
        (
            "[clients.x.sandbox]\npreflite = true",
            ('ptc.toml:2: clients.x.sandbox.preflite: unknown key; did you mean "preflight"?'),
        ),
        (
            "[agents.x]\nagent = 'y'",
            ("ptc.toml:2: agents.x.agent: unknown key; the keys here are allow, deny, rules and sandbox"),
        ),
        ("sandbox.bakend = 'wasm'", 'ptc.toml:1: sandbox.bakend: unknown key; did you mean "backend"?'),
        (
            'serve = {"p\\tq" = 1}',
            (
                'ptc.toml:1: serve."p\\tq": unknown key; the keys here are host, instructions, name, '
                "port, token and transport"
            ),
        ),
        # Types
        ("[serve]\nport = '80'", 'ptc.toml:2: serve.port: must be a whole number, not "80"'),
        ("[serve]\nport = true", "ptc.toml:2: serve.port: must be a whole number, not true"),
        ("[serve]\nport = 80.5", "ptc.toml:2: serve.port: must be a whole number, not 80.5"),
        ("[serve]\nname = 5", "ptc.toml:2: serve.name: must be text, in quotes, not 5"),
        ("[serve]\nname = 1979-05-27", "ptc.toml:2: serve.name: must be text, in quotes"),
        ("[serve]\ntoken = ''", "ptc.toml:2: serve.token: must not be empty"),
        ("[sandbox]\npreflight = 1", "ptc.toml:2: sandbox.preflight: must be true or false, not 1"),
        ("[sandbox]\nwall_ms = inf", "ptc.toml:2: sandbox.wall_ms: must be a number that is finite, not inf"),
        ("[sandbox]\nwall_ms = 1e10", "ptc.toml:2: sandbox.wall_ms: must be at most 2.14748e+09, not 10000000000.0"),
        ("[sandbox]\nmemory_mib = 31", "ptc.toml:2: sandbox.memory_mib: must be at least 32, not 31"),
        ("[sandbox]\noutput_bytes = 3", "ptc.toml:2: sandbox.output_bytes: must be at least 4, not 3"),
        ("sandbox = 5", "ptc.toml:1: sandbox: must be a table, not 5"),
        ("servers = ['a']", "ptc.toml:1: servers: must be a table"),
        ("[servers]\nfiles = 'x'", 'ptc.toml:2: servers.files: must be a table, not "x"'),
        ("[servers.a]\ncommand = 'x'\nargs = 'y'", 'ptc.toml:3: servers.a.args: must be a list, in [ ], not "y"'),
        (
            "[servers.a]\ncommand = 'x'\nargs = [\n 'y',\n 5,\n]",
            ("ptc.toml:5: servers.a.args[1]: must be text, in quotes, not 5"),
        ),
        ("[servers.a]\ncommand = 'x'\nenv.A = 5", "ptc.toml:3: servers.a.env.A: must be text, in quotes, not 5"),
        ("[rules]\ntools = 'x'", "ptc.toml:1: rules: must be a list, in [ ]"),
        ("rules = ['x']", 'ptc.toml:1: rules[0]: must be a table, not "x"'),
        ("mcp_json = 'x'", 'ptc.toml:1: mcp_json: must be a list, in [ ], not "x"'),
        ("[clients.x]\nallow = 'y'", 'ptc.toml:2: clients.x.allow: must be a list, in [ ], not "y"'),
        ("[tools.settings]\na = 'b'", 'ptc.toml:2: tools.settings.a: must be a table, not "b"'),
        # Choices
        ("[log]\ndurability = 'disk'", 'ptc.toml:2: log.durability: must be "process" or "power", not "disk"'),
        (
            "[serve]\ntransport = 'htttp'",
            ('ptc.toml:2: serve.transport: must be "stdio" or "http", not "htttp"; did you mean "http"?'),
        ),
        ("[sandbox]\nbackend = 5", 'ptc.toml:2: sandbox.backend: must be "wasm", "restricted" or "native", not 5'),
        # Rules
        ("\n[[rules]]\ndecision = 'ask'", "ptc.toml:2: rules[0].tools: is missing"),
        ("[[clients.x.rules]]\ntools = 'y'", "ptc.toml:1: clients.x.rules[0].decision: is missing"),
        (
            "rules = [\n  {tools = 'x', decision = 'deny'},\n  {tools = 'y'},\n]",
            "ptc.toml:3: rules[1].decision: is missing",
        ),
        # What the parts mean together
        ("[servers.a]\nargs = []", "ptc.toml:1: servers.a: needs a command that starts it, or the url where it runs"),
        (
            "[servers.a]\ncommand = 'x'\nurl = 'https://x'",
            ("ptc.toml:1: servers.a: has both command and url; keep the one that it is reached by"),
        ),
        (
            "[servers.a]\ncommand = 'x'\nheaders.a = 'b'",
            ("ptc.toml:3: servers.a.headers: belongs to a server that has a url"),
        ),
        (
            "[servers.a]\nurl = 'https://x'\ncwd = 'b'",
            ("ptc.toml:3: servers.a.cwd: belongs to a server that is started by a command"),
        ),
        (
            "[servers.a]\nurl = 'x.y'",
            "ptc.toml:2: servers.a.url: must be an address that begins with http:// or https://",
        ),
        ('mcp_json = ["a\\u0000b"]', "ptc.toml:1: mcp_json[0]: a path must not have NUL characters"),
        ('[log]\npath = "a\\u0000b"', "ptc.toml:2: log.path: a path must not have NUL characters"),
        ("[servers.'']\ncommand = 'x'", 'ptc.toml:1: servers."": the name of a server must not be empty'),
        ("[servers.a]\nurl = 'https://x'\nheaders = {\"a\\nb\" = 'c'}", "ptc.toml:3: servers.a.headers: "),
        (
            "[tools]\nmodules = ['shop.py']\n[tools.settings.'shp.py']\na = 'b'",
            ('ptc.toml:3: tools.settings."shp.py": tools.modules has no such module; did you mean "shop.py"?'),
        ),
        (
            "[tools]\nmodules = ['shop.py', './shop.py']",
            ("ptc.toml:2: tools.modules[1]: this module is in the list already"),
        ),
        (
            "[clients.x]\nagent = 'reviewr'\n[agents.reviewer]",
            ('ptc.toml:2: clients.x.agent: there is no section of that agent; did you mean "reviewer"?'),
        ),
        (
            "[clients.x]\nagent = 'y'",
            (
                "ptc.toml:2: clients.x.agent: there is no section of that agent; add a section "
                '[agents."y"], or remove the key'
            ),
        ),
        ("[clients.'']", 'ptc.toml:1: clients."": the name of a section must not be empty'),
    ],
)
def test_a_fault_is_told_with_its_place_and_what_would_be_right(desk, text, line):
    (told,) = desk.fails(text)
    assert told == line or (line.endswith(": ") and told.startswith(line))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb =\n", "ptc.toml:2: this is not TOML: invalid value (column 4)"),
        ("[a\n", "ptc.toml:1: this is not TOML: "),
        ("x = 1\ny = 2\nx = 3\n", "ptc.toml:3: this is not TOML: cannot overwrite a value"),
        ("[a]\n[b]\n[a]\n", "ptc.toml:3: this is not TOML: cannot declare"),
        ("a = 1\n\nb = [1,\n2\n\n", "ptc.toml:4: this is not TOML: "),
        ("a = 'x", "ptc.toml:1: this is not TOML: "),
        ("a = 1\nb = \xff".encode("latin-1"), "ptc.toml:2: this is not UTF-8 text; save the file as UTF-8"),
        ("{}", "ptc.toml:1: this is not TOML: "),
        ("a = " + "[" * 100_000, "ptc.toml: its lists or tables lie too deep in each other"),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(desk, text, line):
    (told,) = desk.fails(text)
    assert told.startswith(line)


def test_a_file_that_is_not_there_is_told(desk):
    with pytest.raises(ConfigError, match=r"ptc\.toml: cannot be read \(No such file or directory\)"):
        load_config(desk.path)
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\)"):
        load_config(desk.folder)


def test_what_the_environment_says_is_in_no_message(desk):
    lines = desk.fails(
        '[serve]\nport = "${P}"\ntransport = "${P}"\n[servers.a]\nurl = "${P}"\n[sandbox]\npreflight = "${P}"\n',
        P="hush",
    )
    assert len(lines) == 3
    assert "hush" not in str(lines)
    lines = desk.fails('[servers.a]\nurl = "${P}"\n', P="hush")
    assert "hush" not in str(lines)


def test_a_secret_is_in_no_message(desk):
    token = "ghp_" + "a1B2" * 9
    (line,) = desk.fails(f"[serve]\ntransport = '{token}'")
    assert token not in line


# Any document -------------------------------------------------------------------------------------------------------

SCHEMA = config_schema()
KEYS = sorted({key for table in (SCHEMA, *SCHEMA["$defs"].values()) for key in table["properties"]})
LEAVES = (
    st.integers(-2, 70_000)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.booleans()
    | st.sampled_from(
        ["", "x", "*", "allow", "wasm", "http", "https://x.y", "${A}", "${B}", "${", "$${", "a\nb", "~", "\0"]
    )
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "a", "", "b c"]), inner, max_size=4)
    ),
    max_leaves=10,
)


def inline(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {inline(inner)}" for key, inner in value.items()) + "}"
    return "[" + ", ".join(map(inline, value)) + "]" if isinstance(value, list) else json.dumps(value)


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), VALUES, max_size=4))
def test_any_document_is_read_or_refused_with_a_line_for_each_fault(document):
    lines = [f"{json.dumps(key)} = {inline(value)}" for key, value in document.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ptc.toml")
        path.write_text("\n".join(lines))
        told = None
        try:
            load_config(path, environment={"A": "hush"})
        except ConfigError as error:
            told = error
    if told is None:
        return
    assert told.findings
    for finding in told.findings:
        assert finding.line is not None, finding
        assert lines[finding.line - 1].startswith(f'"{finding.where.partition(".")[0].partition("[")[0]}"')
        assert "hush" not in str(finding)
    assert len(str(told).split("\n")) == len(told.findings)
