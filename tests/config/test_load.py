"""What a configuration says: defaults, paths, servers, rules, references to the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ptc.runtime.config as ptc_config
import pytest
from ptc.registry import Allow, Ask, Deny, ToolAnnotations
from ptc.runtime.config import Config, ConfigError, ConfigSupportError, load_config
from ptc.runtime.mcp import HttpServer, StdioServer


def test_an_empty_file_is_the_default_beside_the_file(desk):
    config = desk.load("")
    assert config.log.path == desk.folder / "ptc.db"
    assert config.path == desk.path
    plain = Config()
    for name in ("servers", "modules", "rules", "sandbox", "clients", "agents", "approvals", "serve", "warnings"):
        assert getattr(config, name) == getattr(plain, name), name
    assert plain.log.path is None


def test_everything_that_can_be_said_is_read(desk):
    (desk.folder / "more.json").write_text('{"mcpServers": {"git": {"command": "git-server"}}}')
    config = desk.load(
        """
        mcp_json = ["more.json"]

        [log]
        path = "audit/log.db"
        durability = "power"
        spill = "/var/spill"
        spill_bytes = 1000

        [servers.files]
        command = "npx"
        args = ["-y", "server-filesystem", "."]
        env = { MODE = "ro" }
        cwd = "data"
        prefix = "fs_"
        timeout_ms = 1500.5
        connect_ms = 5000

        [servers.web]
        url = "https://mcp.example.org/mcp"
        headers.Authorization = "Bearer ${WEB_TOKEN}"

        [tools]
        modules = ["shop.py", "acme.tools"]
        settings."shop.py" = { currency = "EUR" }

        [[rules]]
        tools = "fs_*"
        read_only = true
        decision = "allow"

        [[rules]]
        tools = "*"
        destructive = true
        idempotent = false
        open_world = true
        decision = "ask"
        reason = "it changes things"

        [[rules]]
        tools = "drop_*"
        decision = "deny"
        reason = "nobody drops tables"

        [sandbox]
        backend = "restricted"
        compute_ms = 1000
        wall_ms = 2000
        memory_mib = 64
        output_bytes = 1000
        max_parallel_sub_calls = 3
        sdk_budget = 4000
        preflight = true

        [approvals]
        timeout_ms = 1000
        channel = "none"

        [serve]
        transport = "http"
        host = "127.0.0.2"
        port = 0
        token = "${SERVE_TOKEN}"
        name = "acme"
        instructions = "Be careful."
        """,
        WEB_TOKEN="w",
        SERVE_TOKEN="s",
    )
    assert (config.log.path, config.log.durability) == (desk.folder / "audit/log.db", "power")
    assert (config.log.spill, config.log.spill_bytes) == (Path("/var/spill"), 1000)
    assert config.servers == {
        "files": StdioServer(
            command="npx",
            args=("-y", "server-filesystem", "."),
            env={"MODE": "ro"},
            cwd=desk.folder / "data",
            prefix="fs_",
            timeout_ms=1500.5,
            connect_ms=5000,
        ),
        "web": HttpServer(url="https://mcp.example.org/mcp", headers={"Authorization": "Bearer w"}),
        "git": StdioServer(command="git-server", env={}),
    }
    assert dict(config.mcp_json) == {desk.folder / "more.json": ("git",)}
    assert [(one.source, dict(one.settings)) for one in config.modules] == [
        (str(desk.folder / "shop.py"), {"currency": "EUR"}),
        ("acme.tools", {}),
    ]
    first, second, third = config.rules
    assert (first.tool, first.decision, first.annotations) == ("fs_*", Allow(), ToolAnnotations(read_only=True))
    assert second.decision == Ask("it changes things")
    assert second.annotations == ToolAnnotations(destructive=True, idempotent=False, open_world=True)
    assert isinstance(third.decision, Deny)
    assert third.decision.reason == "nobody drops tables"
    assert third.annotations is None
    assert config.sandbox.model_dump() == {
        "backend": "restricted", "compute_ms": 1000, "wall_ms": 2000, "memory_mib": 64, "output_bytes": 1000,
        "max_parallel_sub_calls": 3, "sdk_budget": 4000, "preflight": True,
    }  # fmt: skip
    assert config.approvals.model_dump() == {"timeout_ms": 1000, "channel": "none"}
    serve = config.serve
    assert serve.token is not None
    assert (serve.transport, serve.host, serve.port, serve.token.get_secret_value()) == ("http", "127.0.0.2", 0, "s")
    assert (serve.name, serve.instructions) == ("acme", "Be careful.")
    assert config.warnings == ()


def test_the_documented_example_means_what_it_says(desk):
    assert ptc_config.__doc__ is not None
    example = ptc_config.__doc__.partition("\n\n")[2]
    config = desk.load(example, ISSUES_TOKEN="t")
    assert config.servers["issues"].headers == {"Authorization": "Bearer t"}
    assert [type(rule.decision) for rule in config.rules] == [Allow, Ask, Deny]
    stranger = config.profile(client="untrusted-editor")
    assert (stranger.sees("files_read"), stranger.sees("issues_list")) == (False, True)
    assert stranger.sandbox.compute_ms == 5_000
    assert config.warnings == ()


def test_a_secret_is_not_in_what_is_printed_of_a_configuration(desk):
    config = desk.load(
        '[servers.a]\ncommand = "x"\nenv.KEY = "${A}"\n[servers.b]\nurl = "https://x.y"\nheaders.k = "${A}"\n'
        '[serve]\ntoken = "${A}"\n',
        A="hush-hush",
    )
    assert "hush" not in repr(config)
    assert config.servers["a"].env == {"KEY": "hush-hush"}


# Paths --------------------------------------------------------------------------------------------------------------


def test_relative_paths_are_relative_to_the_file_wherever_it_is_read_from(desk, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(desk.folder)
    desk.write('[servers.a]\ncommand = "./bin/a"\n[servers.b]\ncommand = "b"\n[tools]\nmodules = ["t.py"]')
    config = load_config("ptc.toml", environment={})
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert config.path == Path("ptc.toml")
    assert config.log.path == desk.folder / "ptc.db"
    assert config.servers["a"].command == str(desk.folder / "bin/a")
    assert config.servers["b"].command == "b"
    assert {server.cwd for server in config.servers.values()} == {desk.folder}
    assert config.modules[0].source == str(desk.folder / "t.py")


def test_a_tilde_is_the_home_directory(desk, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    config = desk.load('[log]\npath = "~/ptc.db"\n[servers.a]\ncommand = "~/bin/a"\n')
    assert config.log.path == Path("/home/somebody/ptc.db")
    assert config.servers["a"].command == "/home/somebody/bin/a"


def test_a_byte_order_mark_and_the_line_ends_of_other_systems_are_no_fault(desk):
    text = b'\xef\xbb\xbf[serve]\r\nname = "x"\r\nport = 99999\r\n'
    assert desk.fails(text) == ["ptc.toml:3: serve.port: must be at most 65535, not 99999"]


# References ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A}", "one"), ("x ${A} y ${env:B}", "x one y two"), ("$A", "$A"), ("$${A}", "${A}"), ("a$$b", "a$$b"),
        ("${MISSING:-other}", "other"), ("${A:-other}", "one"), ("${EMPTY:-other}", "other"), ("${EMPTY}x", "x"),
        ("${env:MISSING:-}x", "x"), ("${MISSING:-a:-b}", "a:-b"), ("${NESTED}", "${A}"), ("$${A} ${A}", "${A} one"),
    ],
)  # fmt: skip
def test_a_reference_takes_its_text_from_the_environment(desk, text, value):
    config = desk.load(f"[serve]\ninstructions = '{text}'", A="one", B="two", EMPTY="", NESTED="${A}")
    assert config.serve.instructions == value


def test_references_stand_for_numbers_flags_and_choices_as_well(desk):
    config = desk.load(
        '[serve]\nport = "${PORT}"\n[sandbox]\ncompute_ms = "${MS}"\npreflight = "${YES}"\nbackend = "${WHERE}"',
        PORT="8080", MS="1.5", YES="true", WHERE="restricted",
    )  # fmt: skip
    assert (config.serve.port, config.sandbox.compute_ms) == (8080, 1.5)
    assert (config.sandbox.preflight, config.sandbox.backend) == (True, "restricted")


def test_a_text_of_digits_from_the_environment_stays_text_where_text_is_meant(desk):
    config = desk.load('[serve]\ntoken = "${A}"\nname = "${A}"', A="12345678901234567890")
    assert config.serve.name == "12345678901234567890"
    assert type(config.serve.name) is str
    assert config.serve.token.get_secret_value() == "12345678901234567890"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("${GONE}", 'the environment variable GONE is not set; set it, or write "${GONE:-default}"'),
        ("a ${env:GONE}", 'the environment variable GONE is not set; set it, or write "${GONE:-default}"'),
        ("${GO", 'a "${" is not closed; close it with "}", or write "$${" when it is no reference'),
        ("${}", '"${}" is no reference to the environment'),
        ("${input:key}", '"${input:key}" is no reference to the environment'),
        ("${1X}", '"${1X}" is no reference to the environment'),
    ],
)
def test_a_reference_that_leads_nowhere_is_an_error_and_the_only_one_of_its_key(desk, text, problem):
    (line,) = desk.fails(f"[servers.a]\nurl = '{text}'")
    assert line.startswith(f"ptc.toml:2: servers.a.url: {problem}")


def test_the_environment_is_the_process_own_when_none_is_given(desk, monkeypatch):
    monkeypatch.setenv("PTC_TEST_NAME", "from outside")
    desk.write('[serve]\nname = "${PTC_TEST_NAME}"')
    assert load_config(desk.path).serve.name == "from outside"


# Files of servers ---------------------------------------------------------------------------------------------------


def test_faults_in_a_file_of_servers_are_told_where_it_is_named(desk):
    (desk.folder / "m.json").write_text('{"mcpServers": {"x": {"command": 5}, "y": {}}}')
    lines = desk.fails('mcp_json = [\n  "m.json",\n  "none.json",\n]\n')
    assert [line.split(": ")[:2] for line in lines] == [["ptc.toml:2", "mcp_json[0]"]] * 2 + [
        ["ptc.toml:3", "mcp_json[1]"]
    ]
    assert "mcpServers.x.command" in lines[0]
    assert "cannot be read" in lines[2]


def test_a_server_of_two_files_is_an_error(desk):
    (desk.folder / "m.json").write_text('{"mcpServers": {"x": {"command": "a"}}}')
    lines = desk.fails('mcp_json = ["m.json"]\n[servers.x]\ncommand = "b"\n')
    assert lines == [
        'ptc.toml:1: mcp_json[0]: server "x" of m.json is there already; remove one of the two, or rename it'
    ]


def test_references_in_a_file_of_servers_have_the_same_environment(desk):
    (desk.folder / "m.json").write_text('{"mcpServers": {"x": {"command": "${CMD}"}}}')
    assert desk.load('mcp_json = ["m.json"]', CMD="run").servers["x"].command == "run"


# Without the extra --------------------------------------------------------------------------------------------------


def test_without_the_grammar_the_message_names_the_extra(desk):
    desk.write("[serve]\n")
    code = (
        "import sys\nsys.modules['tree_sitter_toml'] = None\n"
        "from ptc.runtime.config import ConfigError, load_config\n"
        f"try:\n    load_config({str(desk.path)!r})\nexcept ConfigError as error:\n    print(error.code, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=desk.folder)
    assert done.stdout.startswith("CONFIG_SUPPORT configuration files need the grammar of TOML")
    assert "ptc-runtime[serve]" in done.stdout
    assert issubclass(ConfigSupportError, ConfigError)


def test_ptc_itself_does_not_load_what_reads_configurations():
    code = (
        "import sys, ptc, ptc.runtime.cli, ptc.runtime.cli.run\n"
        "print([name for name in sys.modules if name.startswith(('ptc.runtime.config', 'tree_sitter'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
