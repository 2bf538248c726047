"""Reads `ptc.toml`: TOML, then references to the environment, then the models, then what the parts mean together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .build import Builder
from .errors import ConfigError, Finding, in_order
from .plain_secrets import named_secrets, plain_secrets, secret_lines
from .references import ReferenceProblem, expand
from .source import Source, read_toml
from .validate import validate

if TYPE_CHECKING:
    from .config import Config
    from .source import KeyPath

__all__ = ["load_config"]


def load_config(path: str | os.PathLike[str], *, environment: Mapping[str, str] | None = None) -> Config:
    """Reads a configuration file; nothing is started, imported or looked up, for which there is `check_config`.

    Args:
        path: the file.
        environment: the variables that references are replaced with; those of the process when `None`.

    Returns:
        the configuration. What is doubtful in it is in its `warnings`.

    Raises:
        ConfigError: the file cannot be read, is no TOML, refers to a variable that is not set, or says what makes no
            sense. The message has one line for each fault: `ptc.toml:12: servers.files.comand: unknown key; ...`.
        ConfigSupportError: the extra `serve` is not installed.
    """
    path = Path(path)
    variables = os.environ if environment is None else environment
    data = _read(path, str(path))
    values, source = read_toml(data, str(path))
    unset: dict[KeyPath, str] = {}
    settings, problems = validate(_expanded(values, (), variables, unset))
    builder = Builder(source, path.absolute().parent, variables)
    config = None if settings is None else builder.build(path, settings)
    findings = [
        *(source.finding(where, problem) for where, problem in unset.items()),
        # What a reference should have given is not there, so nothing else can be said of that key.
        *(source.finding(where, problem) for where, problem in problems if where not in unset),
        *(builder.findings if not unset else ()),
    ]
    if config is None or findings:
        raise ConfigError(in_order(findings))
    return replace(config, warnings=tuple(in_order(_warnings(values, data, source, config, path))))


def _read(path: Path, file: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        problem = f"cannot be read ({error.strerror or type(error).__name__})"
        raise ConfigError([Finding("error", file, None, "", problem)]) from None


def _expanded(values: Any, path: KeyPath, environment: Mapping[str, str], unset: dict[KeyPath, str]) -> Any:
    """Returns values with their references replaced, and notes those that cannot be."""
    if isinstance(values, dict):
        return {name: _expanded(value, (*path, name), environment, unset) for name, value in values.items()}
    if isinstance(values, list):
        return [_expanded(value, (*path, place), environment, unset) for place, value in enumerate(values)]
    if isinstance(values, str):
        try:
            return expand(values, environment)
        except ReferenceProblem as problem:
            unset[path] = str(problem)
    return values


def _warnings(values: dict[str, Any], data: bytes, source: Source, config: Config, path: Path) -> Iterator[Finding]:
    """Yields the secrets in plain text: those of the file's keys, of its comments, and of the files of servers."""
    told: set[int | None] = set()
    for where, variable in plain_secrets(values):
        found = source.finding(where, _advice(variable), "warning")
        told.add(found.line)
        yield found
    for line in secret_lines(data.decode("utf-8-sig")):
        if line not in told:
            yield Finding("warning", source.file, line, "", "a secret in plain text; remove it from the file")
    for file in config.mcp_json:
        text = file.read_text(encoding="utf-8-sig")
        shown = os.path.relpath(file, path.absolute().parent)
        for line, where, variable in named_secrets(text):
            yield Finding("warning", shown, line, where, _advice(variable))


def _advice(variable: str) -> str:
    return f'a secret in plain text; put it into an environment variable, and write "${{{variable}}}" here'
