"""What holds for one client or agent: the sandbox it has, what it sees, and which of its calls may run."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ...registry import Disposer
from .policy import make_gate
from .settings import SandboxSettings

if TYPE_CHECKING:
    from ...registry import ScopedTools
    from ..policies.gate import PermissionGate, PermissionRule

__all__ = ["Profile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What holds for one client or agent.

    Attributes:
        agent: the name of the agent, if there is one.
        sandbox: where its programs run, and within which limits.
        rules: the rules, the first one that fits counts.
        allow: lists of patterns; a tool is there only when it fits a pattern of each.
        deny: patterns; a tool that fits one is not there.
    """

    agent: str | None = None
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    rules: tuple[PermissionRule, ...] = ()
    allow: tuple[tuple[str, ...], ...] = ()
    deny: tuple[str, ...] = ()

    def sees(self, name: str) -> bool:
        """Tells whether a tool of that name is there."""
        return all(_any_fits(patterns, name) for patterns in self.allow) and not _any_fits(self.deny, name)

    def gate(self) -> PermissionGate:
        """Returns the gate that goes by the rules; see `make_gate`."""
        return make_gate(self.rules)

    def install(self, tools: ScopedTools) -> Disposer:
        """Puts the rules in force for a scope, and hides from it what is not there, also of tools that come later.

        Args:
            tools: the tools of the agent, for example `agent.tools`.

        Returns:
            what takes both away.

        Raises:
            ToolRegistrationError: there is a list of tools, and the scope is everybody's.
        """
        ends = [self.gate().install(tools)] if self.rules else []
        if self.allow or self.deny:
            try:
                ends.append(tools.restrict_names(self.sees))
            except BaseException:
                for end in ends:
                    end()
                raise

        def dispose() -> None:
            for end in reversed(ends):
                end()

        return Disposer(dispose)


def _any_fits(patterns: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
