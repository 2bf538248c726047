"""`str.format` and `string.Formatter`, with the attributes that a template reads looked at first.

A template is a small language of its own: `"{0.a.b[c]}"` reads attributes in C. So a template is taken apart before it
is used. One that reads no attribute that calls for a guard is given to the real method, whose results and errors are
then Python's own; any other is filled in through the guarded `getattr`.
"""

from __future__ import annotations

import string
from _string import (  # pyright: ignore[reportMissingImports] - what `string.Formatter` is made of
    formatter_field_name_split,
    formatter_parser,
)
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .names import kind_of

__all__ = ["TemplateGuard", "as_function", "reads_public_names_only"]

_KNOWN_TEMPLATES = 512
_LONGEST_KNOWN = 1_000

Getattr = Callable[[Any, str], Any]


def as_function(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that calls a method: what a program holds must not hold the object behind it."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    function.__name__ = function.__qualname__ = method.__name__
    return function


class TemplateGuard:
    """Formats templates for programs.

    Args:
        read: the guarded `getattr`.
    """

    def __init__(self, read: Getattr) -> None:
        self.formatter_class = _make_formatter_class(read)
        self.unbound = as_function(self._format_unbound)
        self.unbound_map = as_function(self._format_map_unbound)
        self._plain: dict[str, bool] = {}

    def bound(self, template: str) -> Callable[..., str]:
        """Returns what `template.format` is to a program."""

        def format(*args: object, **kwargs: object) -> str:  # noqa: A001 - the name that the program sees
            return self.format(template, args, kwargs)

        return format

    def bound_map(self, template: str) -> Callable[[Mapping[str, object]], str]:
        """Returns what `template.format_map` is to a program."""

        def format_map(mapping: Mapping[str, object], /) -> str:
            if self._is_plain(template):
                return str.format_map(template, mapping)  # type: ignore[arg-type]
            return self.formatter_class().vformat(str.__str__(template), (), mapping)

        return format_map

    def _format_unbound(self, template: str, /, *args: object, **kwargs: object) -> str:
        """What `str.format` is to a program."""
        return self.format(_as_template("format", template), args, kwargs)

    def _format_map_unbound(self, template: str, mapping: Mapping[str, object], /) -> str:
        """What `str.format_map` is to a program."""
        return self.bound_map(_as_template("format_map", template))(mapping)

    def format(self, template: str, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
        """Fills in a template."""
        if self._is_plain(template):
            return str.format(template, *args, **kwargs)
        return self.formatter_class().vformat(str.__str__(template), args, kwargs)

    def _is_plain(self, template: str) -> bool:
        text = template if type(template) is str else str.__str__(template)
        known = self._plain.get(text)
        if known is None:
            known = reads_public_names_only(text)
            if len(text) <= _LONGEST_KNOWN and len(self._plain) < _KNOWN_TEMPLATES:
                self._plain[text] = known
        return known


def _as_template(method: str, template: object) -> str:
    if not isinstance(template, str) or not issubclass(type(template), str):
        raise TypeError(
            f"descriptor {method!r} for 'str' objects doesn't apply to a {type(template).__name__!r} object"
        )
    return template


def reads_public_names_only(template: str) -> bool:
    """Tells whether reading what the template names needs no guard; what follows a mistake is never read."""
    pending = [template]
    while pending:
        try:
            for _literal, field, spec, _conversion in formatter_parser(pending.pop()):
                if field and ("." in field or "[" in field):
                    _first, rest = formatter_field_name_split(field)
                    if any(is_attribute and kind_of(name) != "public" for is_attribute, name in rest):
                        return False
                if spec and "{" in spec:
                    pending.append(spec)
        except ValueError:
            continue
    return True


def _make_formatter_class(read: Getattr) -> type:
    """Makes `string.Formatter` anew, with one method replaced.

    It is no subclass: the original must not be among its bases, where its own `get_field` would be found.
    """

    def get_field(self: Any, field_name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[Any, Any]:
        first, rest = formatter_field_name_split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, name in rest:
            value = read(value, name) if is_attribute else value[name]
        return value, first

    methods = {
        name: value
        for name, value in vars(string.Formatter).items()
        if name not in ("__dict__", "__weakref__", "__module__", "__firstlineno__", "__static_attributes__")
    }
    return type("Formatter", (), {**methods, "get_field": get_field, "__module__": "string"})
