"""Permission presets: names for a sandbox mode and an approval policy that go together (contract K17).

Both knobs can be turned on their own, and what counts is always the knobs; the preset is read off them:

    sandbox mode       the agent's last `permission/sandbox`, kept by `PermissionPresets`
    approval policy    the agent's last `approval/policy`, kept by `Approvals`
    preset             the one that has these two; `custom` when none has
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ...registry import ContextMessage, text_block
from ..agent import Agent
from .approval import ApprovalPolicy, checked_policy, checked_source
from .record import StandingEvents, run_whole

if TYPE_CHECKING:
    from ...registry import JsonObject, ScopeKey
    from .approval import Approvals

__all__ = ["CUSTOM", "DEFAULT_PRESETS", "PermissionPresets", "Preset"]

CUSTOM: Final = "custom"
"""What an agent has whose knobs are those of no preset; it cannot be chosen."""

_PRESET_EVENT: Final = "permission/preset"
_SANDBOX_EVENT: Final = "permission/sandbox"
_SOURCE: Final[JsonObject] = {"kind": "plugin", "plugin": "permissions"}


@dataclass(frozen=True, slots=True)
class Preset:
    """One setting of both knobs.

    Attributes:
        sandbox: the sandbox mode: how far the agent's tools may go. It is a name that rules and tools go by, and has
            nothing to do with the sandbox that programs run in, which is the same in every mode.
        approval: whether somebody is asked when a policy asks.

    Raises:
        ValueError: the mode is empty or no text, or there is no such approval policy.
    """

    sandbox: str
    approval: ApprovalPolicy

    def __post_init__(self) -> None:
        if not isinstance(self.sandbox, str) or not self.sandbox:
            raise ValueError(f"a sandbox mode is a text that is not empty, not {self.sandbox!r}")
        checked_policy(self.approval)


DEFAULT_PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        "workspace-write": Preset("workspace-write", "ask"),
        "danger-full-access": Preset("danger-full-access", "never"),
    }
)


class PermissionPresets:
    """Keeps each agent's sandbox mode, and turns both knobs at once.

        presets = ptc.PermissionPresets(host.approvals)
        await presets.set(agent, "danger-full-access", source="the operator")

    Everything is in the agent's session, so an agent that goes on with a session has what it had.

    Args:
        approvals: keeps the approval policies; a host's own are `host.approvals`.
        table: the presets by name. The sandbox mode of the first is that of every agent for which none was set.

    Attributes:
        table: the same, read-only.
        modes: the sandbox modes that presets of the table have.

    Raises:
        ValueError: the table is empty, or has a name that is reserved, empty or no text.
        TypeError: it is no mapping, or something in it is no `Preset`.
    """

    __slots__ = ("_approvals", "_first", "_standing", "modes", "table")

    def __init__(self, approvals: Approvals, table: Mapping[str, Preset] = DEFAULT_PRESETS) -> None:
        self.table: Mapping[str, Preset] = MappingProxyType(_checked(table))
        self.modes: frozenset[str] = frozenset(preset.sandbox for preset in self.table.values())
        self._first = next(iter(self.table.values())).sandbox
        self._approvals = approvals
        self._standing = StandingEvents(_PRESET_EVENT, _SANDBOX_EVENT)

    async def current(self, agent: Agent) -> str:
        """Returns the name of the preset that the agent's knobs are set to, or `custom`.

        When several presets have these knobs it is the one that was chosen last, else the first of the table.

        Raises:
            LogUnavailableError: the session cannot be read.
            ValueError: the session has an approval policy or a mode that this version does not know.
        """
        knobs = Preset(await self.sandbox(agent), await self._approvals.policy(agent))
        chosen = (self._standing.last(agent, _PRESET_EVENT) or {}).get("preset")
        fitting = [name for name, preset in self.table.items() if preset == knobs]
        return chosen if isinstance(chosen, str) and chosen in fitting else next(iter(fitting), CUSTOM)

    async def set(self, agent: Agent, preset: str, source: str | None = None) -> None:
        """Chooses a preset: records that, and turns the knobs that stand otherwise.

        Args:
            agent: for whom.
            preset: a name of the table.
            source: who makes the change, for the record of the knobs.

        Raises:
            ValueError: there is no such preset; nothing is recorded.
            TypeError: the source is no text; nothing is recorded.
            LogUnavailableError: a change could not be recorded. Those recorded before it are in force.
        """
        chosen = self.table.get(preset) if isinstance(preset, str) else None
        if chosen is None:
            derived = " (it is what an agent has whose knobs are those of no preset)" if preset == CUSTOM else ""
            raise ValueError(f"there is no preset {preset!r}{derived}; the presets are {', '.join(self.table)}")
        checked_source(source)

        async def change() -> None:
            await self._standing.append(agent, _PRESET_EVENT, {"preset": preset})
            await self._turn(agent, chosen.sandbox, source)
            await self._approvals.set_policy(agent, chosen.approval, source)

        async with self._standing.lock(agent):
            await self._standing.load(agent)
            await run_whole(change)

    async def sandbox(self, agent: ScopeKey | None) -> str:
        """Returns the sandbox mode of an agent: what its session says last, else the mode of the first preset.

        Args:
            agent: the agent. A call without one, or of a scope that is no agent, has the mode of the first preset.

        Raises:
            LogUnavailableError: the session cannot be read.
            ValueError: the session's mode is no text.
        """
        if not isinstance(agent, Agent):
            return self._first
        await self._standing.load(agent)
        event = self._standing.last(agent, _SANDBOX_EVENT)
        mode = self._first if event is None else event.get("mode")
        if not isinstance(mode, str):
            raise ValueError(f"the sandbox mode in the session of {agent!r} is no text: {mode!r}")  # noqa: TRY004 - as documented
        return mode

    async def set_sandbox(self, agent: Agent, mode: str, source: str | None = None) -> None:
        """Turns one knob alone, on record, and queues a notice for the agent's model; nothing when it stands so.

        Args:
            agent: whose mode.
            mode: one of `modes`.
            source: who makes the change, for the record.

        Raises:
            ValueError: no preset has that mode; nothing is recorded.
            TypeError: the source is no text; nothing is recorded.
            LogUnavailableError: the change could not be recorded, and is not in force.
        """
        if not isinstance(mode, str) or mode not in self.modes:
            raise ValueError(f"no preset has the sandbox mode {mode!r}; the modes are {', '.join(sorted(self.modes))}")
        checked_source(source)
        async with self._standing.lock(agent):
            await self._standing.load(agent)
            await run_whole(lambda: self._turn(agent, mode, source))

    async def _turn(self, agent: Agent, mode: str, source: str | None) -> None:
        """Turns the knob of the sandbox mode, unless it stands so; under the agent's lock, and loaded."""
        event = self._standing.last(agent, _SANDBOX_EVENT)
        if (self._first if event is None else event.get("mode")) == mode:
            return
        await self._standing.append(agent, _SANDBOX_EVENT, {"mode": mode, **checked_source(source)})
        agent.inform(ContextMessage([text_block(f'The sandbox mode is now "{mode}".')], _SOURCE))


def _checked(table: object) -> dict[str, Preset]:
    """Copies a table of presets."""
    if not isinstance(table, Mapping):
        raise TypeError(f"presets are a mapping from names to Preset objects, not {type(table).__name__}")
    copied: dict[str, Preset] = {}
    for name, preset in table.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of a preset is a text that is not empty, not {name!r}")
        if name == CUSTOM:
            raise ValueError(f'the preset name "{CUSTOM}" is reserved for knobs that no preset has')
        if not isinstance(preset, Preset):
            raise TypeError(f'preset "{name}" must be a Preset, not {type(preset).__name__}')
        copied[name] = preset
    if not copied:
        raise ValueError("a table of presets needs at least one")
    return copied
