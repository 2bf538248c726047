"""A permission gate: ordered rules that say which calls may run, and about which somebody is asked (contract K18)."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from ...registry import RUN_CODE, Allow, Ask, Deny, ErrorInfo, ToolAnnotations
from ...registry.events import PRE_EXECUTE, describe_answer
from ...registry.pipeline.policy import decision_problem
from .record import log_needed

if TYPE_CHECKING:
    from ...registry import Disposer, Next, PreToolDecision, ScopedTools, ToolExecution
    from .presets import PermissionPresets

__all__ = ["PermissionGate", "PermissionRule", "RuleDecision"]

RuleDecision: TypeAlias = Allow | Deny | Ask
"""What a rule may say."""

_DENIAL: Final = ("PermissionError", "PERMISSION_DENIED")


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """What is said of the calls of some tools. A `PermissionGate` checks it.

    Attributes:
        tool: a pattern for the tool's name, with `*`, `?` and `[...]` as in file names; upper and lower case differ.
            `run_code` is a tool like any other.
        decision: what the gate says: `Allow()`, `Deny(reason)` or `Ask(reason)`.
        sandbox: the sandbox mode in which the rule holds; in every mode when `None`.
        annotations: which claims of a tool the rule is about: those that are not `None` must be what the tool says of
            itself, where what it does not say is taken for the worse (`ToolAnnotations.assumed`). So
            `ToolAnnotations(destructive=True)` fits whatever does not say that it is harmless. A rule with claims never
            fits `run_code`, which does nothing but what its sub-calls do, and each of those is decided by itself.
    """

    tool: str
    decision: RuleDecision
    sandbox: str | None = None
    annotations: ToolAnnotations | None = None

    def __str__(self) -> str:
        """Returns how messages and records name the rule."""
        parts = [f'tool "{self.tool}"']
        if self.sandbox is not None:
            parts.append(f'sandbox mode "{self.sandbox}"')
        if isinstance(self.annotations, ToolAnnotations):
            parts += [f"{name} {str(claim).lower()}" for name, claim in _claims(self.annotations)]
        return ", ".join(parts)

    def fits(self, name: str, annotations: ToolAnnotations | None) -> bool:
        """Tells whether the rule is about the calls of a tool, whatever the sandbox mode.

        Args:
            name: the tool's name.
            annotations: what it says of itself, if anything.
        """
        return fnmatch.fnmatchcase(name, self.tool) and _fit(self.annotations, name, annotations)


class PermissionGate:
    """A `tools/pre-execute` listener that goes by a list of rules: of those that fit a call the first one counts.

        gate = ptc.PermissionGate(
            [
                ptc.PermissionRule("drop_*", ptc.Deny("nobody drops tables")),
                ptc.PermissionRule("delete_*", ptc.Ask("deletes for good"), sandbox="workspace-write"),
            ],
            presets=presets,
        )
        gate.install(host.tools)

    It can tighten what the listeners after it say, and never loosen it: with `Allow`, and for a call that no rule fits,
    they have the say; with `Ask` somebody is asked unless they deny or cancel the call or ask themselves. For hard
    limits, which no listener and no answer can get around, use guards.

    A denial whose rule gives no `info` has the identity `PERMISSION_DENIED`, with the rule as its durable reason.

    Args:
        rules: the rules, in order.
        presets: keeps the sandbox modes; needed when a rule has one.

    Raises:
        ValueError: something is wrong with a rule; the message says with which, counted from 1.
    """

    __slots__ = ("_presets", "_rules", "_sees_modes")

    def __init__(self, rules: Iterable[PermissionRule], *, presets: PermissionPresets | None = None) -> None:
        checked = [_checked(number, rule, presets) for number, rule in enumerate(rules, 1)]
        self._rules: Final = tuple((re.compile(fnmatch.translate(rule.tool)), rule, said) for rule, said in checked)
        self._presets = presets
        self._sees_modes: Final = any(rule.sandbox is not None for rule, _said in checked)

    def install(self, tools: ScopedTools, *, prepend: bool = False) -> Disposer:
        """Sets the gate before the calls of a scope and those below it; of everybody for the tools of a host.

        Args:
            tools: the scope's context, for example `host.tools` or `agent.tools`.
            prepend: whether it stands before the listeners that are there.

        Returns:
            what takes the gate away.
        """
        return tools.on(PRE_EXECUTE, self, prepend=prepend)

    async def __call__(self, call: ToolExecution, next_: Next[PreToolDecision], /) -> PreToolDecision:
        """Decides on one call.

        Raises:
            LogUnavailableError: the agent's sandbox mode cannot be read; the call is refused.
            ValueError: its mode is one that no preset has, so that no rule can be relied on; the call is refused.
        """
        said = self._say(call, await self._mode(call))
        if isinstance(said, Deny):
            return said
        answer = await next_()
        return said if isinstance(said, Ask) and isinstance(answer, Allow) else answer

    def _say(self, call: ToolExecution, mode: str | None) -> RuleDecision | None:
        for pattern, rule, said in self._rules:
            fits = rule.sandbox in (None, mode) and pattern.match(call.name)
            if fits and _fit(rule.annotations, call.name, call.annotations):
                return said
        return None

    async def _mode(self, call: ToolExecution) -> str | None:
        presets = self._presets
        if presets is None or not self._sees_modes:
            return None
        with log_needed(f'tool "{call.name}" is not permitted, because the sandbox mode cannot be read'):
            mode = await presets.sandbox(call.agent)
        if mode not in presets.modes:
            raise ValueError(f'tool "{call.name}" is not permitted, because the sandbox mode {mode!r} is not known')
        return mode


def _claims(annotations: ToolAnnotations) -> list[tuple[str, bool]]:
    """Returns the claims that are made, by name."""
    made = [(name, getattr(annotations, name)) for name in ("read_only", "destructive", "idempotent", "open_world")]
    return [(name, claim) for name, claim in made if claim is not None]


def _fit(wanted: ToolAnnotations | None, name: str, found: ToolAnnotations | None) -> bool:
    """Tells whether a tool's claims are those that a rule is about."""
    if wanted is None:
        return True
    assumed = (found or ToolAnnotations()).assumed
    return name != RUN_CODE and all(getattr(assumed, claim) is value for claim, value in _claims(wanted))


def _checked(number: int, rule: object, presets: PermissionPresets | None) -> tuple[PermissionRule, RuleDecision]:
    """Checks a rule, and returns it with what the gate says when it fits."""
    if not isinstance(rule, PermissionRule):
        raise ValueError(f"permission rule {number} must be a PermissionRule, not {describe_answer(rule)}")  # noqa: TRY004 - one class for all of it
    problem = _problem(rule, presets)
    if problem is not None:
        raise ValueError(f"permission rule {number} ({rule}): {problem}")
    decision = rule.decision
    if isinstance(decision, Deny) and decision.info is None:
        return rule, Deny(decision.reason, ErrorInfo(*_DENIAL, reason=f"permission rule {number} ({rule})"))
    return rule, decision


def _problem(rule: PermissionRule, presets: PermissionPresets | None) -> str | None:
    if not isinstance(rule.tool, str) or not rule.tool:
        return "tool must be a pattern for names, such as `delete_*`"
    if not isinstance(rule.decision, Allow | Deny | Ask):
        return f"decision must be Allow(), Deny(reason) or Ask(reason), not {describe_answer(rule.decision)}"
    if rule.annotations is not None:
        if not isinstance(rule.annotations, ToolAnnotations):
            return f"annotations must be ToolAnnotations(...), not {describe_answer(rule.annotations)}"
        if rule.annotations.title is not None or not _claims(rule.annotations):
            return "its annotations must claim something of a tool, such as read_only=True, and have no title"
    if rule.sandbox is not None:
        if presets is None:
            return "it has a sandbox mode, so the gate needs presets=, which keep the modes"
        if not isinstance(rule.sandbox, str) or rule.sandbox not in presets.modes:
            return f"no preset has that sandbox mode; the modes are {', '.join(sorted(presets.modes))}"
    return decision_problem(rule.decision)
