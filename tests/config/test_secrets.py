"""Secrets in plain text are warned of, with their line, and never shown."""

from __future__ import annotations

import pytest
from ptc.runtime.config.plain_secrets import names_a_secret

GITHUB = "ghp_" + "a1B2" * 9
ADVICE = "a secret in plain text; put it into an environment variable, and write"


def warned(desk, text, **environment):
    return [str(one).removeprefix(f"{desk.folder}/") for one in desk.load(text, **environment).warnings]


@pytest.mark.parametrize(
    ("text", "place", "variable"),
    [
        ("[servers.a]\ncommand = 'x'\nenv.GITHUB_TOKEN = 'anything'", "3: servers.a.env.GITHUB_TOKEN", "GITHUB_TOKEN"),
        ("[servers.a]\ncommand = 'x'\n\nenv.PLAIN = 'GITHUB'", "4: servers.a.env.PLAIN", "PLAIN"),
        ("[servers.a]\ncommand = 'x'\nargs = [\n'--api-key',\n'q']", "5: servers.a.args[1]", "API_KEY"),
        ("[servers.a]\ncommand = 'x'\nargs = ['--password=q']", "3: servers.a.args[0]", "PASSWORD"),
        ("[servers.a]\ncommand = 'x'\nargs = ['GITHUB']", "3: servers.a.args[0]", "SECRET"),
        (
            "[servers.a]\nurl = 'https://x'\nheaders.Authorization = 'Basic q'",
            "3: servers.a.headers.Authorization",
            "AUTHORIZATION",
        ),
        (
            "[servers.a]\nurl = 'https://x'\nheaders = {\"X-Api-Key\" = 'q'}",
            "3: servers.a.headers.X-Api-Key",
            "X_API_KEY",
        ),
        ("[servers.a]\nurl = 'https://user:hunter22@host/x'", "2: servers.a.url", "URL"),
        ("[serve]\ntoken = 'q'", "2: serve.token", "TOKEN"),
        (
            "[tools]\nmodules = ['m']\n[tools.settings.m]\ndb_password = 'q'",
            "4: tools.settings.m.db_password",
            "DB_PASSWORD",
        ),
    ],
)
def test_a_secret_in_plain_text_is_warned_of(desk, text, place, variable):
    lines = warned(desk, text.replace("'GITHUB'", f"'{GITHUB}'"))
    assert lines == [f'ptc.toml:{place}: {ADVICE} "${{{variable}}}" here']
    assert GITHUB not in str(lines)


@pytest.mark.parametrize(
    "text",
    [
        "[servers.a]\ncommand = 'x'\nenv = {TOKEN = '${V}', OTHER_TOKEN = '', PATH = '/bin', TOKEN_FILE = '/run/t'}",
        "[servers.a]\nurl = 'https://x'\nheaders.Authorization = 'Bearer ${V}'",
        "[servers.a]\nurl = 'https://user:${V}@host/x'",
        "[servers.a]\ncommand = 'x'\nargs = ['--token', '${V}', '--token=${V}', '-v', 'token', '--token', '--x']",
        "[serve]\ntoken = '${V}'",
        "[servers.token]\ncommand = 'x'",
    ],
)
def test_what_is_no_secret_or_stands_elsewhere_is_not_warned_of(desk, text):
    assert warned(desk, text, V="v" * 20) == []


def test_a_secret_beside_a_reference_is_warned_of(desk):
    (line,) = warned(desk, f"[servers.a]\ncommand = 'x'\nenv.HEADER = '${{V}} {GITHUB}'", V="v")
    assert line.startswith("ptc.toml:3: servers.a.env.HEADER: ")


def test_a_secret_in_a_comment_is_warned_of(desk):
    lines = warned(desk, f"[serve]\n# {GITHUB}\nname = 'x'\n")
    assert lines == ["ptc.toml:2: a secret in plain text; remove it from the file"]


def test_a_secret_in_a_file_of_servers_is_warned_of_in_that_file(desk):
    (desk.folder / "m.json").write_text(
        '{"mcpServers": {"a": {"command": "x",\n"args": ["--token", "qwe"],\n'
        '"env": {\n"API_KEY": "q\\u0041",\n"B": "${V}"}}}}'
    )
    assert warned(desk, 'mcp_json = ["m.json"]', V="v") == [
        f'm.json:2: mcpServers.a.args[1]: {ADVICE} "${{TOKEN}}" here',
        f'm.json:4: mcpServers.a.env.API_KEY: {ADVICE} "${{API_KEY}}" here',
    ]


@pytest.mark.parametrize(
    "name", ["token", "GITHUB_TOKEN", "apiKey", "X-Api-Key", "clientSecret", "DB_PASSWORD", "Cookie"]
)
def test_a_name_of_a_secret(name):
    assert names_a_secret(name)


@pytest.mark.parametrize("name", ["tokens", "TOKEN_FILE", "key", "name", "max_tokens", "tokenizer", ""])
def test_a_name_of_something_else(name):
    assert not names_a_secret(name)
