"""JSON containers that refuse to be changed (contract C6): what policies, bodies and observers see.

They are subclasses of dict and list, so every reader takes them for what they are: `json`, `match`, `==`, iteration.
They guard against accidents and are no security boundary.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeGuard, cast

from .values import JsonValue

__all__ = ["FrozenDict", "FrozenList", "frozen_dict", "frozen_list", "is_frozen", "thaw"]


def _refuse_change(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    kind = "dict" if isinstance(self, dict) else "list"
    raise TypeError(f"this JSON value is frozen; change a copy of it: {kind}(value), or copy.deepcopy(value)")


class FrozenDict(dict[str, JsonValue]):
    """A JSON object that refuses to be changed; everything inside it is frozen too.

    Only `freeze` and `materialise` make one, so a frozen value is known to be lossless. Copies, slices and pickles of
    it are plain.
    """

    __slots__ = ()

    __init__ = _refuse_change
    __setitem__ = _refuse_change
    __delitem__ = _refuse_change
    __ior__ = _refuse_change  # pyright: ignore[reportAssignmentType]  # refusing is the point
    update = _refuse_change
    setdefault = _refuse_change
    pop = _refuse_change
    popitem = _refuse_change
    clear = _refuse_change

    def __deepcopy__(self, _memo: object) -> JsonValue:
        return thaw(self)

    def __reduce_ex__(self, _protocol: object) -> tuple[type[dict[str, JsonValue]], tuple[dict[str, JsonValue]]]:
        return dict, (dict(self),)


class FrozenList(list[JsonValue]):
    """A JSON array that refuses to be changed; see `FrozenDict`."""

    __slots__ = ()

    __init__ = _refuse_change
    __setitem__ = _refuse_change
    __delitem__ = _refuse_change
    __iadd__ = _refuse_change
    __imul__ = _refuse_change
    append = _refuse_change
    extend = _refuse_change
    insert = _refuse_change
    remove = _refuse_change
    pop = _refuse_change
    clear = _refuse_change
    sort = _refuse_change
    reverse = _refuse_change

    def __deepcopy__(self, _memo: object) -> JsonValue:
        return thaw(self)

    def __reduce_ex__(self, _protocol: object) -> tuple[type[list[JsonValue]], tuple[list[JsonValue]]]:
        return list, (list(self),)


def frozen_dict(members: dict[str, JsonValue]) -> FrozenDict:
    """Makes a frozen object of members that are frozen already; for `materialise` alone."""
    frozen = dict.__new__(FrozenDict)
    dict.update(frozen, members)
    return frozen


def frozen_list(items: list[JsonValue]) -> FrozenList:
    """Makes a frozen array of items that are frozen already; for `materialise` alone."""
    frozen = list.__new__(FrozenList)
    list.extend(frozen, items)
    return frozen


def is_frozen(value: object) -> TypeGuard[FrozenDict | FrozenList]:
    """Returns whether `value` is one of our frozen containers."""
    kind = type(value)
    return kind is FrozenDict or kind is FrozenList


def thaw(value: JsonValue) -> JsonValue:
    """Returns a deep copy of a JSON value in plain containers that may be changed."""
    if not isinstance(value, (dict, list)):
        return value
    copy: Any = _plain(value)
    unvisited: list[Any] = [copy]
    while unvisited:
        container = unvisited.pop()
        for key, item in container.items() if type(container) is dict else enumerate(container):
            if isinstance(item, (dict, list)):
                container[key] = inner = _plain(item)
                unvisited.append(inner)
    return cast("JsonValue", copy)


def _plain(container: dict[str, JsonValue] | list[JsonValue]) -> dict[str, JsonValue] | list[JsonValue]:
    return dict(container) if isinstance(container, dict) else list(container)
