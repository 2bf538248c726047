"""Rules and lists of a configuration that cannot do what they seem to: no tool fits them, or no call reaches them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ...registry import RUN_CODE, Ask
from ..discovery import Discovery
from ..policies.read_spilled import READ_SPILLED

if TYPE_CHECKING:
    from ..policies.gate import PermissionRule
    from .config import Config
    from .errors import Finding
    from .source import KeyPath

__all__ = ["check_policy"]

_WILD = "*?["


def check_policy(config: Config, names: Sequence[str] | None) -> Iterator[Finding]:
    """Yields warnings about rules and lists.

    Args:
        config: the configuration.
        names: the tools of its modules; `None` when not all of them are known.
    """
    places: list[tuple[KeyPath, tuple[PermissionRule, ...]]] = [((), config.rules)]
    places += [(path, section.rules) for path, section in config.sections()]
    known = _Known(config, names) if names is not None else None
    for path, rules in places:
        for place, rule in enumerate(rules):
            where = (*path, "rules", place)
            if known is not None and not known.may_fit(rule.tool):
                yield config.source.finding((*where, "tools"), known.problem(rule.tool), "warning")
            before = next((other for other in range(place) if _covers(rules[other], rule)), None)
            if before is not None:
                line = config.source.line((*path, "rules", before))
                problem = f'is never reached: rule "{rules[before].tool}" (line {line}) fits all its calls before it'
                yield config.source.finding(where, problem, "warning")
            if isinstance(rule.decision, Ask) and config.approvals.channel == "none":
                problem = 'asks, and approvals.channel is "none", so these calls are denied'
                yield config.source.finding((*where, "decision"), problem, "warning")
    if known is not None:
        yield from _lists(config, known)


def _lists(config: Config, known: _Known) -> Iterator[Finding]:
    for path, section in config.sections():
        for key, patterns in (("allow", section.allow or ()), ("deny", section.deny)):
            for place, pattern in enumerate(patterns):
                if not known.may_fit(pattern):
                    yield config.source.finding((*path, key, place), known.problem(pattern), "warning")


def _covers(first: PermissionRule, second: PermissionRule) -> bool:
    """Tells whether every call that fits the second rule fits the first, as far as patterns show it at once."""
    if first.annotations is not None and first.annotations != second.annotations:
        return False
    if second.tool == RUN_CODE:
        return first.tool == RUN_CODE  # patterns do not fit the tool that runs programs
    literal = not any(sign in second.tool for sign in _WILD)
    return first.tool in ("*", second.tool) or (literal and fnmatchcase(second.tool, first.tool))


class _Known:
    """What is known of the names of tools: those of modules in full, those of servers by their prefix."""

    def __init__(self, config: Config, names: Sequence[str]) -> None:
        discovery = Discovery()
        self._names = [*names, RUN_CODE, READ_SPILLED, discovery.search, discovery.describe]
        self._prefixes = [
            f"{name}_" if server.prefix is None else server.prefix for name, server in config.servers.items()
        ]

    def may_fit(self, pattern: str) -> bool:
        """Tells whether a tool can have a name that fits."""
        if any(fnmatchcase(name, pattern) for name in self._names):
            return True
        head = pattern[: min((pattern.find(sign) for sign in _WILD if sign in pattern), default=len(pattern))]
        literal = head == pattern
        return any(head.startswith(prefix) or (not literal and prefix.startswith(head)) for prefix in self._prefixes)

    def problem(self, pattern: str) -> str:
        begins = ", ".join(f'"{prefix}"' for prefix in self._prefixes)
        hint = f"; names of servers' tools begin with {begins}" if begins else ""
        return f'no tool has a name that fits "{pattern}"{hint}'
