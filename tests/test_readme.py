"""The README is true: its Python files run, its console lines print what it shows, its commands are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
        "rename.py",
        "shop.py",
        "steps.py",
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
    assert lines == 9


def test_the_two_commands_are_there_and_install_what_they_need() -> None:
    run, test = (re.search(rf"<!-- command: {name} -->\n```sh\n(.*)\n```", README) for name in ("run", "test"))
    assert run is not None
    assert run[1].startswith("python3 -m venv .venv && .venv/bin/pip install")
    assert test is not None
    assert test[1].endswith(".venv/bin/python -m pytest")


def test_the_readme_names_only_files_that_exist() -> None:
    for path in re.findall(r"`((?:tests|sandbox|examples)/[\w./-]+)`", README):
        assert (ROOT / path).exists(), path
