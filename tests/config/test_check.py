"""What `check_config` finds without starting anything: programs, modules, names, folders, and rules without effect."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace

import pytest
from ptc.runtime.config import Config, ToolsModule, check_config
from ptc.runtime.mcp import StdioServer, read_mcp_servers

TOOLS = """
import ptc

@ptc.tool
async def {name}() -> int:
    "Return one."
    return 1
"""


@pytest.fixture
def shop(desk):
    """A module of tools in the folder, with one tool of the file's name."""

    def make(name: str = "shop", text: str | None = None) -> str:
        (desk.folder / f"{name}.py").write_text(TOOLS.format(name=name) if text is None else text)
        return f"[tools]\nmodules = ['{name}.py']\n"

    return make


def test_a_good_file_has_nothing_to_tell(desk, program, shop):
    program("server")
    text = shop() + (
        "[servers.a]\ncommand = './server'\n[servers.b]\nurl = 'https://x.y'\n"
        "[[rules]]\ntools = 'shop'\ndecision = 'allow'\n[[rules]]\ntools = 'a_*'\ndecision = 'ask'\n"
        "[[rules]]\ntools = 'b_list_*'\nread_only = true\ndecision = 'allow'\n"
        "[[rules]]\ntools = 'run_code'\ndecision = 'allow'\n[[rules]]\ntools = '*'\ndecision = 'deny'\n"
        "[clients.x]\nallow = ['a_one', 's?op', '*', 'search']\nsandbox = {backend = 'native'}\n"
        "[serve]\ntransport = 'http'\nhost = 'localhost'\ntoken = '${T}'\n"
    )
    assert desk.check(text, T="0123456789abcdef") == []


# Servers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "command = 'no-such-program'",
            (
                'error ptc.toml:2: servers.a.command: there is no program "no-such-program" on '
                "PATH; install it, or write its path"
            ),
        ),
        ("command = './none'", "error ptc.toml:2: servers.a.command: there is no program none"),
        ("command = './plain.txt'", "error ptc.toml:2: servers.a.command: plain.txt is not executable"),
        ("command = 'sh'\ncwd = 'none'", "error ptc.toml:3: servers.a.cwd: there is no folder none"),
        (
            "command = 'server'\nenv.PATH = '/nowhere'",
            (
                'error ptc.toml:2: servers.a.command: there is no program "server" '
                "on PATH; install it, or write its path"
            ),
        ),
        (
            "url = 'http://x.y'\nheaders.Authorization = '${T}'",
            (
                "warning ptc.toml:2: servers.a.url: its headers have a "
                "secret, and go over the network unencrypted; use https"
            ),
        ),
    ],
)
def test_a_server_that_cannot_work_is_told(desk, program, monkeypatch, text, line):
    program("server")
    monkeypatch.setenv("PATH", str(desk.folder), prepend=":")
    (desk.folder / "plain.txt").write_text("")
    assert desk.check(f"[servers.a]\n{text}\n", T="t") == [line]


@pytest.mark.parametrize(
    "text",
    [
        "command = 'server'",
        "command = 'server'\nenv.PATH = '${HERE}'",
        "url = 'http://127.0.0.1:1'\nheaders.k = 'x'",
        "url = 'http://localhost:1'\nheaders.Authorization = '${T}'",
        "url = 'http://x.y'",
    ],
)
def test_a_server_that_may_work_is_not_told(desk, program, monkeypatch, text):
    program("server")
    monkeypatch.setenv("PATH", str(desk.folder), prepend=":")
    assert desk.check(f"[servers.a]\n{text}\n", HERE=str(desk.folder), T="t") == []


def test_servers_with_the_same_prefix_are_told(desk):
    text = "[servers.a]\nurl = 'https://a'\nprefix = ''\n[servers.b]\nurl = 'https://b'\nprefix = ''\n"
    problem = '"" is the prefix of server "a" as well, so tools of the same name are there once'
    assert desk.check(text) == [f"warning ptc.toml:6: servers.b.prefix: {problem}"]


def test_a_server_of_another_file_is_told_with_that_file(desk):
    (desk.folder / "m.json").write_text('{"mcpServers": {\n\n"x y": {"command": "no-such-program"}}}')
    (line,) = desk.check("mcp_json = ['m.json']")
    assert line.startswith('error m.json:3: "x y".command: there is no program "no-such-program" on PATH')


def test_what_came_by_options_is_told_without_a_file(desk):
    (desk.folder / "m.json").write_text('{"mcpServers": {"x": {"command": "no-such-program"}}}')
    config = desk.load("[serve]\nname = 'x'")
    servers = read_mcp_servers(desk.folder / "m.json")
    config = replace(config, servers=servers, modules=(ToolsModule(source="no.such.module"),))
    no_program = 'there is no program "no-such-program" on PATH; install it, or write its path'
    no_module = "there is no tools module no.such.module; --tools takes a Python file or the name of a module"
    assert desk.found(config) == [
        f"error options: servers.x.command: {no_program}",
        f"error options: tools.modules[0]: {no_module}",
    ]
    config = Config(servers={"x": StdioServer(command="no-such-program")}, mcp_json={desk.folder / "m.json": ("x",)})
    (finding,) = check_config(config)
    assert (finding.file, finding.line) == (str(desk.folder / "m.json"), 1)


def test_a_file_that_offers_nothing_is_told(desk):
    assert desk.check("") == ["warning ptc.toml: no tools: add a section [servers.NAME], or tools.modules"]


def test_missing_extras_are_told(desk, monkeypatch, shop):
    find_spec = importlib.util.find_spec
    gone = {"mcp", "uvicorn", "RestrictedPython"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in gone else find_spec(name))
    monkeypatch.setattr("ptc.runtime.preflight_checker.find_checker", lambda: None)
    text = "[servers.a]\nurl = 'https://x'\n[serve]\ntransport = 'http'\n[agents.x]\nsandbox.backend = 'restricted'\n"
    lines = desk.check(text + "sandbox.preflight = true\n")
    assert [line.split(": ")[0] for line in lines] == [
        "error ptc.toml:1",
        "error ptc.toml:4",
        "error ptc.toml:6",
        "error ptc.toml:7",
    ]
    for line, extra in zip(lines, ("mcp", "serve", "restricted", "preflight"), strict=True):
        assert f"pip install 'ptc-runtime[{extra}]'" in line


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted sandbox is for Linux")
def test_the_sandboxes_of_this_machine_are_not_told(desk, shop):
    assert desk.check(shop() + "[sandbox]\nbackend = 'restricted'\n[agents.a]\nsandbox.backend = 'wasm'") == []


def test_a_sandbox_of_another_system_is_told(desk, shop, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert desk.check(shop() + "[sandbox]\nbackend = 'restricted'\n") == [
        'error ptc.toml:4: sandbox.backend: the restricted sandbox needs Linux; use "wasm"'
    ]


def test_what_means_nothing_for_native_calls_is_told(desk, shop):
    text = "[sandbox]\nsdk_budget = 5\n[clients.c.sandbox]\nbackend = 'native'\npreflight = true\n"
    nothing = "means nothing for the backend native, which has no programs"
    assert desk.check(shop() + text) == [
        f"warning ptc.toml:5: clients.c.sandbox.sdk_budget: {nothing}",
        f"warning ptc.toml:7: clients.c.sandbox.preflight: {nothing}",
    ]


# Modules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        (None, "there is no tools file none.py"),
        ("x = 1", "bad.py defines no tools"),
        ("x = 1\nraise OSError('disk')", "the tools cannot be loaded (bad.py, line 2): OSError: disk"),
        ("def tools(a): return []", "tools() of bad.py does not fit what was set"),
        (TOOLS.format(name="run_code"), '"run_code" is the name of the program tool; rename the tool'),
    ],
)
def test_a_module_that_cannot_be_used_is_told(desk, module, problem):
    name = "none.py" if module is None else "bad.py"
    if module is not None:
        (desk.folder / name).write_text(module)
    (line,) = desk.check(f"[tools]\n\nmodules = [\n  '{name}',\n]\n")
    assert line.startswith("error ptc.toml:4: tools.modules[0]: ")
    assert problem in line


def test_settings_reach_the_module(desk, shop):
    text = (
        "import ptc\ndef tools(name):\n    async def f() -> int:\n        return 1\n"
        "    return [ptc.tool(name=name)(f)]\n"
    )
    lines = desk.check(
        shop("made", text) + "settings.'made.py'.name = 'one'\n[[rules]]\ntools = 'one'\ndecision = 'deny'\n"
        "[[rules]]\ntools = 'two'\ndecision = 'deny'\n"
    )
    assert lines == ['warning ptc.toml:8: rules[1].tools: no tool has a name that fits "two"']


def test_two_tools_of_one_name_are_told(desk, shop):
    shop("one")
    shop("two", TOOLS.format(name="one"))
    (line,) = desk.check("[tools]\nmodules = ['one.py', 'two.py']")
    assert line == 'error ptc.toml:2: tools.modules[1]: tool "one" is in one.py already; rename one'


# Rules --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("shop", True),
        ("s*", True),
        ("[st]hop", True),
        ("a_anything", True),
        ("a_*", True),
        ("?_list", True),
        ("*_delete", True),
        ("fs", False),
        ("fs*", True),
        ("fs-read", True),
        ("run_code", True),
        ("search", True),
        ("read_spilled", True),
        ("Shop", False),
        ("shopping", False),
        ("b_*", False),
        ("f_*", False),
        ("a", False),
    ],
)
def test_a_pattern_that_no_tool_can_fit_is_told(desk, shop, pattern, fits):
    text = shop() + (
        "[servers.a]\nurl = 'https://x'\n[servers.f]\nurl = 'https://x'\nprefix = 'fs-'\n"
        f"[[rules]]\ntools = '{pattern}'\ndecision = 'ask'\n[clients.c]\nallow = ['*']\ndeny = ['{pattern}']\n"
    )
    problem = f'no tool has a name that fits "{pattern}"; names of servers\' tools begin with "a_", "fs-"'
    expected = [f"warning ptc.toml:9: rules[0].tools: {problem}", f"warning ptc.toml:13: clients.c.deny[0]: {problem}"]
    assert desk.check(text) == ([] if fits else expected)


def test_nothing_is_said_of_patterns_when_a_module_is_unknown_or_a_server_has_no_prefix(desk):
    rule = "[[rules]]\ntools = 'x'\ndecision = 'ask'\n"
    (line,) = desk.check("[tools]\nmodules = ['none.py']\n" + rule)
    assert "rules" not in line
    assert desk.check("[servers.a]\nurl = 'https://x'\nprefix = ''\n" + rule) == []


@pytest.mark.parametrize(
    ("first", "second", "reached"),
    [
        ("tools = '*'", "tools = 'a_x'", False),
        ("tools = 'a_*'", "tools = 'a_x'", False),
        ("tools = 'a_*'", "tools = 'a_*'", False),
        ("tools = 'a_*'", "tools = 'a_*'\nread_only = true", False),
        ("tools = '*'\nread_only = true", "tools = 'a_x'\nread_only = true", False),
        ("tools = '*'\nread_only = true", "tools = 'a_x'", True),
        ("tools = '*'\nread_only = true", "tools = 'a_x'\ndestructive = true", True),
        ("tools = 'a_x'", "tools = 'a_*'", True),
        ("tools = 'a_*'", "tools = '*_x'", True),
        ("tools = '*'", "tools = 'run_code'", True),
        ("tools = 'run_code'", "tools = 'run_code'", False),
    ],
)
def test_a_rule_that_no_call_reaches_is_told(desk, first, second, reached):
    text = (
        f"rules = []\n[servers.a]\nurl = 'https://x'\n[agents.g]\n[[agents.g.rules]]\n{first}\ndecision = 'ask'\n"
        f"[[agents.g.rules]]\n{second}\ndecision = 'deny'\n"
    )
    lines = desk.check(text)
    if reached:
        assert lines == []
    else:
        (line,) = lines
        assert "agents.g.rules[1]: is never reached: rule " in line
        assert "(line 5)" in line


def test_a_question_that_nobody_is_asked_is_told(desk):
    text = "[servers.a]\nurl = 'https://x'\n[approvals]\nchannel = 'none'\n[[rules]]\ntools = '*'\ndecision = 'ask'\n"
    assert desk.check(text) == [
        'warning ptc.toml:7: rules[0].decision: asks, and approvals.channel is "none", so these calls are denied'
    ]


# Log and server -----------------------------------------------------------------------------------------------------


def test_a_log_that_cannot_be_written_is_told(desk, shop):
    text = shop() + "[log]\npath = 'none/ptc.db'\nspill = '/no/such/folder'\n"
    assert desk.check(text) == [
        "error ptc.toml:4: log.path: there is no folder none; make it",
        "error ptc.toml:5: log.spill: there is no folder /no/such; make it",
    ]
    (desk.folder / "sub").mkdir()
    assert desk.check(shop() + "[log]\npath = 'sub'\n") == ["error ptc.toml:4: log.path: sub is a folder; name a file"]


def test_a_server_that_is_open_to_others_or_has_a_short_token_is_told(desk, shop):
    text = shop() + "[serve]\ntransport = 'http'\nhost = '0.0.0.0'\ntoken = '${T}'\n"
    assert desk.check(text, T="short") == [
        "warning ptc.toml:5: serve.host: other machines can reach this address, and only the token keeps them out",
        "warning ptc.toml:6: serve.token: is easily guessed; take at least 16 random characters",
    ]


def test_warnings_of_the_file_are_among_the_findings(desk, shop):
    (line,) = desk.check(shop() + "[serve]\ntoken = '0123456789abcdef'\n")
    assert line.startswith("warning ptc.toml:4: serve.token: a secret in plain text")
