"""What the tests of configurations share: a file in a folder of its own, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ptc.runtime.config import Config, ConfigError, check_config, load_config


class Desk:
    """A folder with a configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "ptc.toml"

    def write(self, text: str | bytes) -> None:
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def load(self, text: str | bytes, **environment: str) -> Config:
        self.write(text)
        return load_config(self.path, environment=environment)

    def fails(self, text: str | bytes, **environment: str) -> list[str]:
        """Returns the lines of the error, the folder left out."""
        with pytest.raises(ConfigError) as caught:
            self.load(text, **environment)
        lines = str(caught.value).split("\n")
        assert lines == [str(finding) for finding in caught.value.findings]
        return [line.removeprefix(f"{self.folder}/") for line in lines]

    def check(self, text: str, **environment: str) -> list[str]:
        """Returns what a check finds, each with its severity, the folder left out."""
        return self.found(self.load(text, **environment))

    def found(self, config: Config) -> list[str]:
        return [f"{one.severity} {one}".replace(f"{self.folder}/", "") for one in check_config(config)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Makes a program in the folder, and returns its path."""

    def make(name: str) -> str:
        path = tmp_path / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return str(path)

    return make
