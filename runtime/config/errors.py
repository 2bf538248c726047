"""What is wrong with a configuration, as messages that lead to the line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...registry import HarnessError

__all__ = ["ConfigError", "ConfigSupportError", "Finding", "Severity", "in_order"]

Severity: TypeAlias = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or doubtful, in a configuration.

    Attributes:
        severity: `error` when nothing can work that way, `warning` when it can and is doubtful.
        file: the file, as it was named.
        line: the line of it, from 1; `None` when it is about the file as a whole.
        where: the key, written as TOML has it, for example `servers.files.command`; empty when it is about no key.
        problem: what is wrong, and what to do.
    """

    severity: Severity
    file: str
    line: int | None
    where: str
    problem: str

    def __str__(self) -> str:
        """Returns it on one line: `file:line: key: problem`."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        text = ": ".join(part for part in (place, self.where, self.problem) if part)
        return " ".join(text.split("\n"))


class ConfigError(HarnessError):
    """A configuration cannot be used. The message has one line for each fault.

    Args:
        findings: the faults, at least one.

    Attributes:
        findings: the same.
    """

    default_code = "CONFIG"

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(findings)
        super().__init__("\n".join(map(str, self.findings)))


class ConfigSupportError(ConfigError):
    """What reads configurations is not installed; the message names the extra, and there are no findings."""

    default_code = "CONFIG_SUPPORT"

    def __init__(self) -> None:
        super().__init__([])
        extra = "pip install 'ptc-runtime[serve]'"
        self.args = (
            f"configuration files need the grammar of TOML, which is not installed; install the extra: {extra}",
        )


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Returns findings in the order of their lines, those of the first file first."""
    files: dict[str, int] = {}
    return sorted(findings, key=lambda each: (files.setdefault(each.file, len(files)), each.line or 0))
