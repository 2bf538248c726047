"""Scopes: who contributes what, and from where it is seen.

A scope is an identity, an agent or a preset, and nothing more. It may be bound under one parent; what the parent
registers flows down to it, and what happens in it is heard by listeners of the parent (contract A1 to A8).
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from .errors import ToolRegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from .values import JsonObject

__all__ = ["Disposer", "ScopeBinding", "ScopeKey", "ScopeTree", "SessionLog"]

V = TypeVar("V")


class SessionLog(Protocol):
    """The session that a scope's root calls are recorded in."""

    async def append(self, type: str, data: JsonObject, *, cites: int | None = None) -> int:  # noqa: A002 - wire name
        """Records one event and returns its sequence number once it is durable (ruling 40).

        Args:
            type: the event's type, for example `tool/call`.
            data: the event's data, as lossless JSON.
            cites: the sequence number of the event that this one answers.
        """
        ...


class ScopeKey:
    """A scope: compared by identity, so that two equal-looking agents stay two scopes (contract A2).

    Args:
        name: for people; it identifies nothing.
        session: where the root calls of this scope are recorded; `None` for no log.
    """

    __slots__ = ("__weakref__", "name", "session")

    def __init__(self, name: str = "", *, session: SessionLog | None = None) -> None:
        self.name = name
        self.session = session

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class Disposer:
    """Takes one contribution back, once: call it, or leave it as a context manager (contract A8).

    Args:
        undo: what takes the contribution back.
    """

    __slots__ = ("_undo",)

    def __init__(self, undo: Callable[[], None]) -> None:
        self._undo: Callable[[], None] | None = undo

    @property
    def disposed(self) -> bool:
        """Whether the contribution has been taken back."""
        return self._undo is None

    def __call__(self) -> None:
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self()


class IdentityMap(Generic[V]):
    """A map from scopes to values that asks `is` and keeps no scope alive.

    A subclass of `ScopeKey` may define equality as it likes; here it does not count.
    """

    __slots__ = ("__weakref__", "_entries")

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[ScopeKey], V]] = {}

    def get(self, key: ScopeKey) -> V | None:
        """Returns the value of exactly this scope, or `None`."""
        entry = self._entries.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else None

    def set(self, key: ScopeKey, value: V) -> None:
        """Keeps a value for as long as the scope lives."""
        number = id(key)
        entries = self._entries

        def forget(dead: weakref.ref[ScopeKey]) -> None:
            entry = entries.get(number)
            if entry is not None and entry[0] is dead:
                del entries[number]

        entries[number] = (weakref.ref(key, forget), value)

    def discard(self, key: ScopeKey) -> None:
        """Forgets the scope's value, if there is one."""
        if self.get(key) is not None:
            del self._entries[id(key)]

    def clear(self) -> None:
        """Forgets everything."""
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


class ScopeTree:
    """Which scope is bound under which (contract A4)."""

    __slots__ = ("__weakref__", "_ancestors", "_parents")

    def __init__(self) -> None:
        self._parents: IdentityMap[ScopeKey] = IdentityMap()
        self._ancestors: IdentityMap[tuple[ScopeKey, ...]] = IdentityMap()

    def ancestors(self, scope: ScopeKey) -> tuple[ScopeKey, ...]:
        """Returns the scopes above `scope`, the nearest first, without `scope` itself."""
        known = self._ancestors.get(scope)
        if known is None:
            known = tuple(self._walk_up(scope))
            self._ancestors.set(scope, known)
        return known

    def chain(self, scope: ScopeKey | None) -> tuple[ScopeKey, ...]:
        """Returns `scope` and the scopes above it, the nearest first; nothing for `None`."""
        return () if scope is None else (scope, *self.ancestors(scope))

    def bind(self, child: ScopeKey, parent: ScopeKey) -> ScopeBinding:
        """Puts `child` under `parent`, for good.

        Returns:
            the only handle that may bind `child` elsewhere.

        Raises:
            ToolRegistrationError: `child` is bound already, or `parent` stands below `child`.
        """
        if self._parents.get(child) is not None:
            raise ToolRegistrationError(
                f"scope {child.name!r} is bound to a parent already; use rebind() of the handle that bind() returned"
            )
        self._attach(child, parent)
        return ScopeBinding(self, child)

    def _attach(self, child: ScopeKey, parent: ScopeKey) -> None:
        if any(scope is child for scope in self.chain(parent)):
            raise ToolRegistrationError(
                f"scope {child.name!r} cannot be bound under {parent.name!r}: that would form a cycle"
            )
        self._parents.set(child, parent)
        self._ancestors.clear()

    def _walk_up(self, scope: ScopeKey) -> Iterator[ScopeKey]:
        parent = self._parents.get(scope)
        while parent is not None:
            yield parent
            parent = self._parents.get(parent)


class ScopeBinding:
    """The right to bind one scope elsewhere (contract A4)."""

    __slots__ = ("_child", "_tree")

    def __init__(self, tree: ScopeTree, child: ScopeKey) -> None:
        self._tree = tree
        self._child = child

    def rebind(self, parent: ScopeKey) -> None:
        """Puts the scope under another parent; from now on only that parent's chain counts.

        Raises:
            ToolRegistrationError: `parent` stands below the scope.
        """
        self._tree._attach(self._child, parent)  # noqa: SLF001 - the handle is the tree's own
