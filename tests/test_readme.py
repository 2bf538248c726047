"""The README is true: its Python files run, its console lines print what it shows, its commands are there."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from mcp import Client, StdioServerParameters
from ptc.runtime.config import check_config, load_config

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the README's Python files, under the names that their first lines give."""
    for block in blocks("python"):
        name = block.partition("\n")[0].removeprefix("# ")
        (tmp_path / name).write_text(block, encoding="utf-8")
    return tmp_path


def test_every_python_block_is_a_named_file(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "approve.py",
        "book.py",
        "build.py",
        "check.py",
        "desk.py",
        "many.py",
        "rename.py",
        "shop.py",
        "steps.py",
        "test_my_sandbox.py",
        "tools.py",
    ]


def test_the_console_lines_print_what_the_readme_shows(folder: Path) -> None:
    shell = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    lines = 0
    for block in blocks("console"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=shell, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (command, done.stderr)
            assert done.stdout
            if shown:
                assert done.stdout == shown, command
            lines += 1
    assert lines == 14


@pytest.fixture
def desk() -> dict[str, Any]:
    """A server as a client's `mcpServers` has it."""
    return {"command": sys.executable, "args": [str(ROOT / "tests/mcp/servers/desk.py")]}


@pytest.mark.anyio
async def test_the_quick_start_leads_from_mcp_servers_to_run_code_in_the_same_client(
    tmp_path: Path, desk: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.search(r"<!-- quick start: serve -->\n```sh\n(.*?)\n```", README, re.DOTALL)
    assert found is not None
    install, *commands = found[1].splitlines()
    assert install == 'pip install "ptc-runtime[serve]"'
    assert 1 + len(commands) <= 10
    kept = tmp_path / ".mcp.json"
    kept.write_text(json.dumps({"mcpServers": {"desk": desk}}), encoding="utf-8")
    await anyio.run_process(["bash", "-ec", "\n".join(commands)], cwd=tmp_path)
    read = json.loads(kept.read_text(encoding="utf-8"))["mcpServers"]
    assert list(read) == ["ptc"]
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    environment = {**os.environ, "PTC_LOG": str(tmp_path / "ptc.db")}
    with anyio.fail_after(120):
        async with Client(StdioServerParameters(**read["ptc"], env=environment, cwd=tmp_path)) as client:
            offered = await client.list_tools()
            assert [tool.name for tool in offered.tools] == ["run_code"]
            code = "return await tools.desk_add(a=2, b=3)"
            result = await client.call_tool("run_code", {"code": code, "description": "Add"})
    assert not result.is_error
    assert "5" in result.content[0].text  # type: ignore[union-attr]


def test_the_configuration_is_one(folder: Path, desk: dict[str, Any]) -> None:
    (block,) = blocks("toml")
    (folder / "ptc.toml").write_text(block, encoding="utf-8")
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"desk": desk}}), encoding="utf-8")
    config = load_config(folder / "ptc.toml")
    assert [str(finding) for finding in (*config.warnings, *check_config(config))] == []
    assert [type(rule.decision) for rule in config.rules] == [ptc.Allow, ptc.Ask]


def test_a_host_has_the_tools_of_servers(folder: Path, desk: dict[str, Any]) -> None:
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"desk": desk}}), encoding="utf-8")
    done = subprocess.run([sys.executable, "desk.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "desk connected 2 tools\n5\n"


def test_the_conformance_tests_run_as_the_readme_says(folder: Path) -> None:
    """In a suite that knows none of this one's marks and options."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "--strict-markers", "-W", "error", "-p", "no:cacheprovider",
         "test_my_sandbox.py", "-k", "hot_loop or digits or is_none or what_is_returned"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    passed, skipped = map(int, re.findall(r"([0-9]+) passed, ([0-9]+) skipped", done.stdout)[0])
    assert passed > 30
    assert skipped == 4
    assert "the backend lacks: interpreter" in done.stdout


def test_the_two_commands_are_there_and_install_what_they_need() -> None:
    run, test = (re.search(rf"<!-- command: {name} -->\n```sh\n(.*)\n```", README) for name in ("run", "test"))
    assert run is not None
    assert run[1].startswith("python3 -m venv .venv && .venv/bin/pip install")
    assert test is not None
    assert test[1].endswith(" && .venv/bin/python -m pytest -n auto --dist worksteal")


def test_the_readme_names_only_files_that_exist() -> None:
    for path in re.findall(r"`((?:tests|sandbox|examples)/[\w./-]+)`", README):
        assert (ROOT / path).exists(), path


def guarantees() -> str:
    """Returns the README's table of what each backend enforces, from the backends' own data."""
    backends = {"wasm": ptc.WasmSandbox(), "restricted": ptc.RestrictedSandbox()}
    lines = ["| | `ptc.WasmSandbox` | `ptc.RestrictedSandbox` |", "|---|---|---|"]
    for field in dataclasses.fields(ptc.Guarantees):
        told = [getattr(backend.guarantees, field.name) or "not enforced" for backend in backends.values()]
        lines.append(f"| {field.name} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted backend needs Linux")
def test_the_table_of_guarantees_is_the_backends_own_data() -> None:
    table = guarantees()
    if "not enforced" in table or "landlock" not in table:
        pytest.skip("this kernel does not have all that the table tells of")
    assert f"<!-- guarantees -->\n\n{table}" in README


def test_the_picture_of_an_audited_run_is_that_of_the_tour() -> None:
    picture = (ROOT / "examples/audit_tour/picture.txt").read_text(encoding="utf-8")
    assert f"<!-- audit tour -->\n\n```text\n{picture}```" in README
