"""What takes the place of names in the standard modules: what would reach further than its caller may."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import functools
import sys
import time
import types
import typing
import unicodedata
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

from ....guest.program import FILENAME
from ....guest.report import traceback_functions
from .attributes import AttributeGuards
from .classes import ProgramClasses
from .enumeration import enumeration_names
from .names import DEFINABLE, is_dunder
from .reporting import logging_names, sys_names
from .typeguard import ABC_META, FUTURE, TASK, TYPE, SandboxObject, TypeGuard

__all__ = ["stand_ins"]


def stand_ins(guards: AttributeGuards, classes: ProgramClasses, enum_type: Any) -> dict[str, dict[str, object]]:
    """Returns what takes the place of names, or is added, by module."""
    return {
        "abc": {"ABCMeta": ABC_META},
        "asyncio": _asyncio_names(),
        "collections": {"namedtuple": _make_namedtuple(classes)},
        "dataclasses": _dataclass_names(classes),
        "enum": enumeration_names(enum_type),
        "functools": _functools_names(guards),
        "logging": logging_names(),
        "operator": _operator_names(guards),
        "string": {"Formatter": guards.templates.formatter_class},
        "sys": sys_names(),
        "time": {"sleep": _sleep},
        "traceback": dict(traceback_functions()),
        "types": {
            "FunctionType": TypeGuard("function", types.FunctionType),
            "LambdaType": TypeGuard("function", types.LambdaType),
            "ModuleType": TypeGuard("module", types.ModuleType),
        },
        "typing": {"get_origin": _get_origin, "get_type_hints": _make_get_type_hints(guards)},
        "warnings": {"warn": _warn},
    }


def _warn(message: Any, category: Any = None, stacklevel: int = 1, source: object = None) -> None:  # noqa: ARG001
    # The place is the program's, whatever level is asked for: the callers above it are not shown.
    kind = type(message) if isinstance(message, Warning) else (category or UserWarning)
    frame = sys._getframe(1)
    line = frame.f_lineno if frame.f_code.co_filename == FILENAME else 1
    warnings.warn_explicit(message, kind, FILENAME, line, module="__main__", registry=None)


def _sleep(seconds: float, /) -> None:
    # Looked up when it is called: each run puts its own there.
    time.sleep(seconds)


class _Loop(SandboxObject, shown_as="EventLoop"):
    """The event loop as programs may use it."""

    __slots__ = ()

    def time(self) -> float:
        return asyncio.get_event_loop().time()

    def create_task(self, coro: Coroutine[Any, Any, Any], *, name: str | None = None) -> asyncio.Task[Any]:
        return asyncio.create_task(coro, name=name)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.get_event_loop().create_future()

    def run_until_complete(self, future: Any) -> Any:
        return asyncio.run(future)

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def close(self) -> None:
        """Does nothing: the loop ends with the run."""


def _asyncio_names() -> dict[str, object]:
    loop = _Loop()

    def run(main: Any, *, debug: bool | None = None) -> Any:  # noqa: ARG001
        return asyncio.run(main)

    async def to_thread(func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    def get_event_loop() -> _Loop:
        return loop

    def get_running_loop() -> _Loop:
        return loop

    def new_event_loop() -> _Loop:
        return loop

    def set_event_loop(loop: object) -> None:
        """Does nothing: there is one loop."""

    made = (run, to_thread, get_event_loop, get_running_loop, new_event_loop, set_event_loop)
    return {**{function.__name__: function for function in made}, "Future": FUTURE, "Task": TASK}


def _make_namedtuple(classes: ProgramClasses) -> Callable[..., Any]:
    def namedtuple(typename: str, field_names: Any, *, rename: bool = False, defaults: Any = None) -> Any:
        made = collections.namedtuple(  # type: ignore[misc]  # noqa: PYI024
            typename, field_names, rename=rename, defaults=defaults, module="__main__"
        )
        return classes.adopt(made)

    return namedtuple


def _dataclass_names(classes: ProgramClasses) -> dict[str, object]:
    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        def wrap(cls: Any) -> Any:
            if not issubclass(type(cls), type) or not classes.owns(cls):
                raise TypeError("dataclass() takes a class that the program defines")
            return classes.adopt(dataclasses.dataclass(cls, **options))

        return wrap if cls is None else wrap(cls)

    def make_dataclass(cls_name: str, fields: Any, *, bases: Any = (), namespace: Any = None, **options: Any) -> Any:
        classes.check_bases(bases)
        listed = [_checked_field(one) for one in fields]
        body = dict(namespace or {})
        for name in body:
            if type(name) is not str or (is_dunder(name) and (name not in DEFINABLE or name == "__new__")):
                raise TypeError(f"a class cannot define {name!r} in this sandbox")
        options.pop("module", None)
        options.pop("decorator", None)
        made = dataclasses.make_dataclass(cls_name, listed, bases=tuple(bases), namespace=body, **options)
        made.__module__ = "__main__"
        return classes.adopt(made)

    return {"dataclass": dataclass, "make_dataclass": make_dataclass}


def _checked_field(field: Any) -> Any:
    """Returns a field as `make_dataclass` takes it. Its name becomes source text there, so that it must be a plain one.

    The source is normalised when it is compiled, and so would be a name that only looks harmless.
    """
    name, *rest = (field,) if isinstance(field, str) else tuple(field)
    if type(name) is not str or unicodedata.normalize("NFKC", name) != name or is_dunder(name):
        raise TypeError(f"a field cannot be called {name!r} in this sandbox")
    return (name, *rest) if rest else name


def _functools_names(guards: AttributeGuards) -> dict[str, object]:
    # The names that `functools` copies are the caller's to choose there, and the copy is given to the wrapper's own
    # `__setattr__`: any attribute of any function could be had.
    def update_wrapper(wrapper: Any, wrapped: Any, assigned: object = None, updated: object = None) -> Any:  # noqa: ARG001
        for name in ("__name__", "__qualname__", "__doc__"):
            text = guards.getattr(wrapped, name, None)
            if isinstance(text, str):
                guards.setattr(wrapper, name, text)
        if type(wrapper) is types.FunctionType and type(wrapped) is types.FunctionType:
            lazy = "__annotate__"  # Python evaluates annotations when they are asked for, since 3.14
            if hasattr(wrapped, lazy):
                setattr(wrapper, lazy, getattr(wrapped, lazy))
            else:
                wrapper.__annotations__ = dict(wrapped.__annotations__)
            wrapper.__dict__.update(wrapped.__dict__)
        return wrapper

    def wraps(wrapped: Any, assigned: object = None, updated: object = None) -> Callable[[Any], Any]:  # noqa: ARG001
        return lambda wrapper: update_wrapper(wrapper, wrapped)

    return {"singledispatch": _singledispatch, "update_wrapper": update_wrapper, "wraps": wraps}


def _singledispatch(func: Any) -> Any:
    """`functools.singledispatch`, which reads the class from an annotation without evaluating text."""
    real = functools.singledispatch(func)

    def dispatching(*args: Any, **kwargs: Any) -> Any:
        return real(*args, **kwargs)

    def register(cls: Any, func: Any = None) -> Any:
        if func is not None:
            return real.register(cls, func)
        if isinstance(cls, type) or typing.get_origin(cls) is not None:
            return lambda function: real.register(cls, function)
        annotated = next(iter(getattr(cls, "__annotations__", {}).values()), None)
        if annotated is None or isinstance(annotated, str):
            raise TypeError("write the class into the decorator: @function.register(int)")
        return real.register(annotated, cls)

    dispatching.__name__ = dispatching.__qualname__ = getattr(func, "__name__", "function")
    dispatching.__doc__ = getattr(func, "__doc__", None)
    dispatching.register = register  # type: ignore[attr-defined]
    dispatching.dispatch = real.dispatch  # type: ignore[attr-defined]
    dispatching.registry = real.registry  # type: ignore[attr-defined]
    return dispatching


def _operator_names(guards: AttributeGuards) -> dict[str, object]:
    read = guards.getattr

    def follow(target: Any, path: str) -> Any:
        for name in path.split("."):
            target = read(target, name)
        return target

    def attrgetter(*paths: str) -> Callable[[Any], Any]:
        if not paths or not all(issubclass(type(path), str) for path in paths):
            raise TypeError("attribute name must be a string")
        plain = [str.__str__(path) for path in paths]
        if len(plain) == 1:
            return lambda target: follow(target, plain[0])
        return lambda target: tuple(follow(target, path) for path in plain)

    def methodcaller(name: str, /, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        if not issubclass(type(name), str):
            raise TypeError("method name must be a string")
        plain = str.__str__(name)
        return lambda target: read(target, plain)(*args, **kwargs)

    return {"attrgetter": attrgetter, "methodcaller": methodcaller}


def _get_origin(annotation: Any) -> Any:
    origin = typing.get_origin(annotation)
    return TYPE if origin is type else origin


def _make_get_type_hints(guards: AttributeGuards) -> Callable[..., dict[str, Any]]:
    def get_type_hints(target: Any, *_scopes: object, include_extras: bool = False) -> dict[str, Any]:  # noqa: ARG001
        hints: dict[str, Any] = {}
        for one in reversed(target.__mro__) if issubclass(type(target), type) else (target,):
            if one is not object:
                hints.update(guards.getattr(one, "__annotations__", {}))
        for name, hint in hints.items():
            if isinstance(hint, (str, typing.ForwardRef)):
                raise NameError(  # noqa: TRY004 - as evaluating it would
                    f"the annotation of {name!r} is text, which is not evaluated in this sandbox"
                )
        return {name: type(None) if hint is None else hint for name, hint in hints.items()}

    return get_type_hints
