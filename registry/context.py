"""The registering context: what one scope contributes, and how each contribution is taken back (contract A7, A8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from .definition import ToolDefinition, ToolSchema
from .errors import ToolRegistrationError
from .events import CHANGE, describe_answer
from .listening import Listening
from .presenters import check_presenter
from .schema import assert_output_schema
from .scopes import Disposer, ScopeKey
from .tool_annotations import ToolAnnotations
from .views import RUN_CODE, Condition, Layer, NameRestriction, Registration, Restriction, quoted

if TYPE_CHECKING:
    from types import TracebackType

    from .executors import ToolExecutor
    from .guards import ToolGuard
    from .registry import ToolRegistry

__all__ = ["ScopedTools"]


class ScopedTools(Listening):
    """Contributes for one scope: its layer, its listeners, its executor (contract A7).

    Every contribution returns its disposer. `close()` takes back, in reverse order, what is still there; it uses the
    same disposers, so an early disposal and the owner's teardown never meet twice (contract A8).

    Attributes:
        registry: the registry that it contributes to.
        scope: the scope that it contributes for; `None` is everybody.
    """

    __slots__ = ("_live", "registry", "scope")

    def __init__(self, registry: ToolRegistry, scope: ScopeKey | None) -> None:
        self.registry = registry
        self.scope = scope
        self._live: dict[Disposer, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Takes back every contribution that is still there, the last one first.

        Raises:
            ExceptionGroup: what listeners of `tools/change` raised meanwhile; everything has been taken back.
        """
        raised: list[Exception] = []
        while self._live:
            disposer = next(reversed(self._live))
            try:
                disposer()
            except Exception as error:  # noqa: BLE001 - the rest must still be taken back; raised together below
                raised.append(error)
            self._live.pop(disposer, None)
        if raised:
            raise ExceptionGroup("listeners raised while contributions were taken back", raised)

    def register(self, definition: ToolDefinition, *, when: Condition | None = None) -> Disposer:
        """Registers a tool for this scope and everything below it (contract A9 to A17).

        Args:
            definition: the tool; it is borrowed and must not change any more (contract A13).
            when: a pure query, asked once for each step, whether the tool is there (contract A38).

        Raises:
            ToolRegistrationError: the definition is incomplete, a presenter of it is asynchronous, or its name is
                reserved or taken in this scope.
            JsonSchemaError: its output schema is outside the supported subset.
            Exception: whatever a `tools/change` listener raised; the tool is then not registered (contract A15).
        """
        _check_definition(definition, when)
        layer = self.registry.layers.find(self.scope)
        name = definition.name
        if layer is not None and name in layer.tools:
            raise ToolRegistrationError(_taken(name, self.scope))
        layer = self.registry.layers.open(self.scope)
        registration = Registration(definition, when)
        layer.tools[name] = registration

        def remove() -> None:
            if layer.tools.get(name) is registration:
                del layer.tools[name]

        return self._contribute(layer, remove)

    def restrict(self, *, allow: Iterable[str] | None = None, deny: Iterable[str] | None = None) -> Disposer:
        """Hides inherited tools from this scope and those below it; its own tools stay (contract A29 to A36).

        This is a policy of what is visible, not a security boundary (contract A37); use `guard` for a hard limit.

        Args:
            allow: the only inherited names that stay visible; an empty list hides them all.
            deny: inherited names that do not stay visible.

        Raises:
            ToolRegistrationError: there is no scope, no list, a reserved or an unknown name.
            Exception: whatever a `tools/change` listener raised; the restriction is then not in force.
        """
        allowed, denied = _names("allow", allow), _names("deny", deny)
        self._check_restriction(allowed, denied)
        return self._restrict(Restriction(allowed, denied))

    def restrict_names(self, sees: Callable[[str], bool]) -> Disposer:
        """Hides inherited tools by a rule for names, whether the tools are there yet or not.

        `restrict` takes names that exist, so that a misspelt one is found; this is for patterns over tools that come
        and go. All else is as there: it is a policy of what is visible.

        Args:
            sees: `(name) -> bool`, plain and pure; what it does not answer with `True` is hidden. Answers are kept.

        Raises:
            ToolRegistrationError: there is no scope, or `sees` cannot be called.
            Exception: whatever a `tools/change` listener raised; the restriction is then not in force.
        """
        if self.scope is None:
            raise ToolRegistrationError("a restriction needs a scope: call restrict_names() on the tools of an agent")
        if not callable(sees):
            raise ToolRegistrationError(f"sees must be a function that takes a name, not {describe_answer(sees)}")
        return self._restrict(NameRestriction(sees))

    def guard(self, guard: ToolGuard) -> Disposer:
        """Adds a hard limit on the calls of this scope and those below it (contract A48 to A51).

        Args:
            guard: `(exec) -> None | reason | ToolGuardDenial`, synchronous; it can only refuse.

        Raises:
            ToolRegistrationError: the guard is not callable, or is async.
        """
        layer = self.registry.layers.open(self.scope)
        try:
            undo = layer.guards.add(guard)
        finally:
            self.registry.layers.reclaim(self.scope, layer)  # a refused guard leaves no empty layer behind

        def remove() -> None:
            undo()
            self.registry.layers.reclaim(self.scope, layer)

        return self._keep(remove)

    def set_executor(self, executor: ToolExecutor) -> Disposer:
        """Selects the executor of this scope, or of the whole deployment without one (contract A52).

        Disposing leaves the selection unavailable until another one replaces it (contract A54).

        Raises:
            ToolRegistrationError: the object is no executor.
            Exception: whatever a `tools/change` listener raised; the former selection is then back.
        """
        chosen = self.registry.selection
        selection, replaced = chosen.select(executor, self.scope)
        try:
            self.registry.events.emit(CHANGE)
        except BaseException:
            chosen.restore(replaced, self.scope)
            raise

        def unload() -> None:
            selection.executor = None
            if chosen.is_current(selection, self.scope):
                self.registry.events.emit(CHANGE)

        return self._keep(unload)

    def get(self, name: str) -> ToolDefinition | None:
        """Returns the definition of that name in this scope's view (contract A24)."""
        return self.registry.get(name, self.scope)

    def definitions(self) -> list[ToolDefinition]:
        """Returns what this scope sees (contract A26)."""
        return self.registry.definitions(self.scope)

    def schemas(self) -> list[ToolSchema]:
        """Returns name, description and parameters of what this scope sees (contract A27)."""
        return self.registry.schemas(self.scope)

    def _listen(self, event: str, listener: Callable[..., Any], *, prepend: bool) -> Disposer:
        return self._keep(self.registry.events.on(event, listener, scope=self.scope, prepend=prepend))

    def _restrict(self, restriction: Restriction | NameRestriction) -> Disposer:
        layer = self.registry.layers.open(self.scope)
        layer.restrictions.append(restriction)

        def lift() -> None:
            layer.restrictions[:] = [kept for kept in layer.restrictions if kept is not restriction]

        return self._contribute(layer, lift)

    def _check_restriction(self, allowed: Sequence[str] | None, denied: Sequence[str] | None) -> None:
        if self.scope is None:
            raise ToolRegistrationError("a restriction needs a scope: call restrict() on the tools of an agent")
        if allowed is None and denied is None:
            raise ToolRegistrationError("restrict() without allow and deny is a no-op; give at least one of them")
        named = [*(allowed or ()), *(denied or ())]
        if RUN_CODE in named:
            raise ToolRegistrationError(f'"{RUN_CODE}" is the transport and cannot be restricted')
        inherited = self.registry.layers.inherited(self.scope)
        unknown = [name for name in dict.fromkeys(named) if name not in inherited]
        if unknown:
            raise ToolRegistrationError(
                f"cannot restrict unknown {'tool' if len(unknown) == 1 else 'tools'} {quoted(unknown)}; "
                f"inherited tools: {', '.join(sorted(inherited)) or '(none)'}"
            )

    def _contribute(self, layer: Layer, remove: Callable[[], None]) -> Disposer:
        """Tells of a contribution that is in place, or takes it back when a listener will not have it (A14, A15)."""
        registry = self.registry
        try:
            registry.events.emit(CHANGE)
        except BaseException:
            remove()
            registry.layers.reclaim(self.scope, layer)
            raise

        def undo() -> None:
            remove()
            registry.layers.reclaim(self.scope, layer)
            registry.events.emit(CHANGE)

        return self._keep(undo)

    def _keep(self, undo: Callable[[], None]) -> Disposer:
        def dispose() -> None:
            self._live.pop(disposer, None)
            undo()

        disposer = Disposer(dispose)
        self._live[disposer] = None
        return disposer


def _check_definition(definition: ToolDefinition, when: Condition | None) -> None:
    """Checks a registration in the order that the contract gives (contract A9)."""
    if not isinstance(definition, ToolDefinition):
        raise ToolRegistrationError(
            f"register() takes a ToolDefinition, not {type(definition).__name__}: make one with @tool or define_tool()"
        )
    name = definition.name
    output = definition.output
    render = getattr(output, "render", None)
    presentation = getattr(output, "presentation_meta", None)
    if not callable(render) or not (presentation is None or callable(presentation)) or not hasattr(output, "schema"):
        raise ToolRegistrationError(f'tool "{name}" must declare output {{ schema, render, presentation_meta? }}')
    assert_output_schema(definition)
    timeout = definition.timeout_ms
    if timeout is not None and not _positive(timeout):
        raise ToolRegistrationError(f'tool "{name}" timeout_ms must be a positive finite number')
    if not isinstance(name, str) or not name:
        raise ToolRegistrationError("a tool's name must be a string that is not empty")
    if name == RUN_CODE:
        raise ToolRegistrationError(f'the name "{RUN_CODE}" is reserved for the transport')
    if not callable(definition.execute):
        raise ToolRegistrationError(f'tool "{name}" execute must be an async function')
    for member in ("present_call", "present_result"):
        check_presenter(f'tool "{name}"', member, getattr(definition, member))
    if not isinstance(definition.annotations, ToolAnnotations | None):
        raise ToolRegistrationError(f'tool "{name}" annotations must be ToolAnnotations(...)')
    if when is not None and not callable(when):
        raise ToolRegistrationError(f'the condition of tool "{name}" must be callable')


def _positive(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 < number < math.inf


def _taken(name: str, scope: ScopeKey | None) -> str:
    if scope is None:
        return (
            f'tool "{name}" is registered globally already; to give one agent its own, register it from '
            "the agent's own context"
        )
    return f'tool "{name}" is already taken in this scope ({scope.name!r}); dispose that registration first'


def _names(which: str, names: Iterable[str] | None) -> tuple[str, ...] | None:
    """Copies a list of names at once, so that the caller may go on changing it (contract A33)."""
    if names is None:
        return None
    if isinstance(names, str):
        raise ToolRegistrationError(f"{which} must be a list of names, not the string {names!r}")
    if not isinstance(names, Iterable):
        raise ToolRegistrationError(f"{which} must be a list of names, not {describe_answer(names)}")
    copied = tuple(names)
    for place, name in enumerate(copied):
        if not isinstance(name, str):
            raise ToolRegistrationError(f"{which}[{place}] must be the name of a tool, not {describe_answer(name)}")
    return copied
