"""Lossless JSON: the one primitive behind arguments, results, records and schemas (contract B1 to B7, ruling 33).

A value is lossless when writing it as JSON and reading it back gives an equal value. `snapshot` takes such a value
apart from its owner, `materialise` also freezes it, and both name the path and the way out when they refuse.

Two walks give the same answers. The quick one recurses, but only over exact dicts and lists and only to a small
depth, so it needs neither paths nor a memory of ancestors. Whatever is out of the ordinary sends the whole value to
the careful walk, which keeps an explicit stack: it accepts subclasses and enum members, finds cycles, and knows where
it is. The quick walk never runs foreign code, so nothing with an effect is read twice (contract B4).
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from .foreign import a_kind, describe_foreign
from .frozen import FrozenDict, FrozenList, frozen_dict, frozen_list, is_frozen, thaw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .values import JsonValue

__all__ = [
    "MAX_DEPTH",
    "MAX_INT_DIGITS",
    "MAX_VALUES",
    "FrozenDict",
    "FrozenList",
    "LosslessError",
    "freeze",
    "from_json_text",
    "is_frozen",
    "is_lossless",
    "item_path",
    "materialise",
    "member_path",
    "same_json",
    "shown_path",
    "snapshot",
    "thaw",
    "to_json_text",
]

MAX_DEPTH: Final = 512
"""How many containers may be nested in one another (ruling 34): `[]` is one level, `[[]]` two."""

MAX_VALUES: Final = 5_000_000
"""How many values one value may hold in all. Without it, an object that is used twice at each of 40 levels would be
copied until the memory is full (contract B3)."""

MAX_INT_DIGITS: Final = 4300
"""How many decimal digits an integer may have: what Python itself writes and reads as text."""

_QUICK_DEPTH: Final = 64
_INT_LIMIT: Final = 10**MAX_INT_DIGITS
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN_PATH: Final = 160
_TOO_MANY: Final = (f"holds more than {MAX_VALUES:,} values", "return less, and no object that is used over and over")


class LosslessError(ValueError):
    """A value that JSON cannot carry without loss.

    Attributes:
        path: where it is, for example `value.rows[3].when`.
        problem: what is wrong, as the end of a sentence that begins with the path.
        hint: the way out.
    """

    def __init__(self, path: str, problem: str, hint: str) -> None:
        self.path = path
        self.problem = problem
        self.hint = hint
        super().__init__(path, problem, hint)

    def __str__(self) -> str:
        path = self.path
        if len(path) > _SHOWN_PATH:
            path = f"{path[: _SHOWN_PATH // 2]}…{path[-_SHOWN_PATH // 2 :]}"
        return f"{path} {self.problem}; {self.hint}"


# Paths ---------------------------------------------------------------------------------------------------------------


def shown_path(path: str) -> str:
    """Returns how a path is shown: the empty root is called `arguments` (contract B33)."""
    return path or "arguments"


def member_path(path: str, name: str) -> str:
    """Returns the path of the member `name` of the object at `path` (contract B33)."""
    return f"{path}.{name}" if path else name


def item_path(path: str, index: int) -> str:
    """Returns the path of item `index` of the array at `path` (contract B33)."""
    return f"{path}[{index}]"


# The quick walk ------------------------------------------------------------------------------------------------------


_set_member = dict.__setitem__
_set_item = list.__setitem__


class _UnusualError(Exception):
    """The quick walk met something that only the careful one can judge."""


class _TooManyError(Exception):
    """The quick walk has counted more values than `MAX_VALUES`."""


def _quick(value: Any, depth: int, frozen: bool, budget: list[int]) -> Any:  # noqa: C901  # spelled out for speed
    """Copies an exact dict or list; `depth` is how many levels may still follow, `budget` how many values."""
    budget[0] -= len(value) + 1
    if budget[0] < 0:
        raise _TooManyError
    if depth == 0:
        raise _UnusualError
    kind = type(value)
    if kind is dict or kind is FrozenDict:
        copy: Any = frozen_dict(value) if frozen else dict(value)
        for key, item in value.items():
            if type(key) is not str:
                raise _UnusualError
            if not key.isascii():
                key.encode()
            kind = type(item)
            if kind is str:
                if not item.isascii():
                    item.encode()
            elif kind is dict or kind is list:
                _set_member(copy, key, _quick(item, depth - 1, frozen, budget))
            elif kind is int:
                if not -_INT_LIMIT < item < _INT_LIMIT:
                    raise _UnusualError
            elif item is not None and kind is not bool:
                _set_member(copy, key, _quick_rest(item, kind, depth, frozen, budget))
        return copy
    copy = frozen_list(value) if frozen else list(value)
    for index, item in enumerate(value):
        kind = type(item)
        if kind is str:
            if not item.isascii():
                item.encode()
        elif kind is dict or kind is list:
            _set_item(copy, index, _quick(item, depth - 1, frozen, budget))
        elif kind is int:
            if not -_INT_LIMIT < item < _INT_LIMIT:
                raise _UnusualError
        elif item is not None and kind is not bool:
            _set_item(copy, index, _quick_rest(item, kind, depth, frozen, budget))
    return copy


def _quick_rest(item: Any, kind: type, depth: int, frozen: bool, budget: list[int]) -> Any:
    """The kinds that `_quick` does not look at itself: floats, and containers that are frozen already."""
    if kind is float and math.isfinite(item):
        return item
    if kind is FrozenDict or kind is FrozenList:
        return _quick(item, depth - 1, frozen, budget)
    raise _UnusualError


def _take(value: Any, root: str, frozen: bool) -> Any:
    """Copies any value, by the quick walk if it can."""
    kind = type(value)
    try:
        if kind is dict or kind is list or kind is FrozenDict or kind is FrozenList:
            return _quick(value, _QUICK_DEPTH, frozen, [MAX_VALUES])
        if kind is str:
            if not value.isascii():
                value.encode()
            return value
        if value is None or kind is bool:
            return value
        if (kind is float and math.isfinite(value)) or (kind is int and -_INT_LIMIT < value < _INT_LIMIT):
            return value
    except (_UnusualError, UnicodeEncodeError):
        pass  # the careful walk says what it is
    except _TooManyError:
        raise LosslessError(shown_path(root), *_TOO_MANY) from None
    return _Walk(root, frozen).take(value)


# The careful walk ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class _Level:
    """One container that the careful walk is inside of."""

    source: Any
    members: Iterator[Any]
    built: Any
    key: Any = None


class _Walk:
    """One careful walk over one value: explicit stack, ancestors, paths."""

    def __init__(self, root: str, frozen: bool) -> None:
        self.root = root
        self.frozen = frozen
        self.levels: list[_Level] = []
        self.ancestors: set[int] = set()
        self.left = MAX_VALUES

    def take(self, value: object) -> Any:
        done = self._enter(value)
        while self.levels:
            level = self.levels[-1]
            entering = self._next_member(level)
            if entering is _END:
                done = self._leave()
                if self.levels:
                    self._store(done)
            else:
                item = self._enter(entering)
                if item is not _OPENED:
                    self._store(item)
        return done

    def path(self) -> str:
        """Where the walk is. Built only when something is refused."""
        path = self.root
        for level in self.levels:
            if level.key is not None:
                path = item_path(path, level.key) if type(level.built) is list else member_path(path, level.key)
        return shown_path(path)

    def refuse(self, problem: str, hint: str) -> NoReturn:
        raise LosslessError(self.path(), problem, hint)

    def _enter(self, value: Any) -> Any:
        """Returns the JSON value of a scalar, or opens a level for a container and returns `_OPENED`."""
        self.left -= 1
        if self.left < 0:
            raise LosslessError(shown_path(self.root), *_TOO_MANY)
        if isinstance(value, dict):
            members, built = iter(value.items()), {}
        elif isinstance(value, (list, tuple)):
            members, built = iter(value), []
        else:
            return self._scalar(value)
        if id(value) in self.ancestors:
            self.refuse("contains itself", "JSON cannot say that; refer to the outer value by a name or an id")
        if len(self.levels) >= MAX_DEPTH:
            self.refuse(f"is nested deeper than {MAX_DEPTH} levels", "return it flatter, or as text")
        self.ancestors.add(id(value))
        self.levels.append(_Level(value, members, built))
        return _OPENED

    def _leave(self) -> Any:
        level = self.levels.pop()
        self.ancestors.discard(id(level.source))
        if not self.frozen:
            return level.built
        return frozen_dict(level.built) if type(level.built) is dict else frozen_list(level.built)

    def _store(self, item: Any) -> None:
        level = self.levels[-1]
        if type(level.built) is dict:
            level.built[level.key] = item
        else:
            level.built.append(item)

    def _next_member(self, level: _Level) -> Any:
        """Steps to the next member of a level; leaves `level.key` on it."""
        previous, level.key = level.key, None
        if type(level.built) is list:
            for item in level.members:
                level.key = 0 if previous is None else previous + 1
                return item
            return _END
        for key, item in level.members:
            level.key = self._key(key, level.built)
            return item
        return _END

    def _key(self, key: Any, built: dict[str, Any]) -> str:
        if not isinstance(key, str):
            shown = f" {key!r}" if key is None or type(key) in (bool, int, float) else ""
            self.refuse(f"has the key{shown} ({a_kind(type(key))}), and JSON keys are strings", "write str(key)")
        plain = str.__str__(key)
        if _SURROGATE.search(plain):
            self.refuse(f"has the key {plain!a}, which holds half of a surrogate pair", _SURROGATE_HINT)
        if plain in built:
            self.refuse(f"has two keys that are both spelled {plain!a}", "keep one of them")
        return plain

    def _scalar(self, value: Any) -> Any:
        if value is None or type(value) is bool:
            return value
        if isinstance(value, str):
            plain = str.__str__(value)
            if _SURROGATE.search(plain):
                self.refuse("is text that holds half of a surrogate pair, which UTF-8 cannot carry", _SURROGATE_HINT)
            return plain
        if isinstance(value, int):
            number = int.__int__(value)
            if not -_INT_LIMIT < number < _INT_LIMIT:
                self.refuse(f"is an integer of more than {MAX_INT_DIGITS} digits", "pass it as text, in hex(...)")
            return number
        if isinstance(value, float):
            real = float.__float__(value)
            if not math.isfinite(real):
                self.refuse(f"is {real}, and JSON has only finite numbers", "use None, or text")
            return real
        return self.refuse(*describe_foreign(value))


class _Mark(enum.Enum):
    END = "end"
    OPENED = "opened"


_END: Final = _Mark.END
_OPENED: Final = _Mark.OPENED
_SURROGATE_HINT: Final = "repair it first, for example text.encode('utf-8', 'replace').decode()"


# The public functions ------------------------------------------------------------------------------------------------


def snapshot(value: object, *, root: str = "value") -> JsonValue:
    """Copies a lossless value into plain dicts and lists that share nothing with it.

    Subclasses of dict, list, str, int and float, tuples, and `StrEnum`/`IntEnum` members become plain (ruling 33);
    one object used in two places is copied twice (contract B3); key order is kept (contract B7).

    Args:
        value: anything.
        root: what the value is called in paths; `""` stands for a call's arguments (contract B33).

    Raises:
        LosslessError: the value has no lossless JSON form.
        Exception: whatever a container's own iteration raises (contract B4).
    """
    return cast("JsonValue", _take(value, root, frozen=False))


def materialise(value: object, *, root: str = "value") -> JsonValue:
    """Copies a lossless value into frozen containers; takes and raises what `snapshot` does.

    A container that is frozen already is returned as it is.
    """
    return cast("JsonValue", value if is_frozen(value) else _take(value, root, frozen=True))


def freeze(value: JsonValue) -> JsonValue:
    """Returns a frozen copy of a JSON value; a frozen one is returned as it is.

    Raises:
        LosslessError: the value is not JSON after all.
    """
    return materialise(value)


def is_lossless(value: object) -> bool:
    """Returns whether `snapshot` would accept a value.

    Raises:
        Exception: whatever a container's own iteration raises (contract B4).
    """
    try:
        _take(value, "value", frozen=False)
    except LosslessError:
        return False
    return True


def same_json(one: object, other: object) -> bool:
    """Compares two JSON values: a bool never equals a number, `1` equals `1.0`, key order is no matter (ruling 22)."""
    pairs: list[tuple[Any, Any]] = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, dict):
            if not isinstance(right, dict) or left.keys() != right.keys():
                return False
            pairs.extend((item, right[key]) for key, item in left.items())
        elif isinstance(left, list):
            if not isinstance(right, list) or len(left) != len(right):
                return False
            pairs.extend(zip(left, right, strict=True))
        elif isinstance(right, (dict, list)) or (type(left) is bool) != (type(right) is bool) or left != right:
            return False
    return True


def _make_encode() -> Callable[[object], str]:
    """Returns what writes a value as compact text; made once, where `JSONEncoder` makes its machinery for each text."""
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    string: Any = getattr(json.encoder, "encode_basestring", None)
    if make is None or string is None:
        return encoder.encode
    pieces = make(None, encoder.default, string, None, ":", ",", False, False, False)
    join = "".join

    def encode(value: object) -> str:
        return string(value) if type(value) is str else join(pieces(value, 0))

    return encode


_encode: Final = _make_encode()


def to_json_text(value: JsonValue) -> str:
    """Writes a JSON value as compact text; characters beyond ASCII stay as they are.

    Raises:
        LosslessError: the value is not JSON after all.
    """
    try:
        return _encode(value)
    except (ValueError, TypeError, RecursionError) as error:
        snapshot(value)
        raise LosslessError("value", f"cannot be written as JSON ({error})", "return it flatter, or as text") from error


def from_json_text(text: str) -> JsonValue:
    """Reads JSON text. The last of two equal keys wins, at the place of the first (contract B63).

    Raises:
        json.JSONDecodeError: the text is not JSON. It is a `ValueError`.
        LosslessError: it is JSON to Python, and yet no lossless value: NaN, an infinity or a number that overflows to
            one, half a surrogate pair, an integer of too many digits, or too many levels. A `ValueError` too.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        problem, hint = f"is nested deeper than {MAX_DEPTH} levels", "send it flatter, or as text"
    except ValueError:
        problem, hint = f"has an integer of more than {MAX_INT_DIGITS} digits", "send it as text"
    else:
        return cast("JsonValue", _take(value, "value", frozen=False))
    raise LosslessError("value", problem, hint)
