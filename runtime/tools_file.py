"""Tools from a file or module that somebody names on a command line.

A tools file either defines its tools with `@ptc.tool` or `ptc.define_tool` at module level, or has a function
`tools(...)` that returns them; the function's keyword parameters are what a user may set, as strings.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ..registry import HarnessError, ToolDefinition

__all__ = ["ToolsFileError", "load_tools"]

_FACTORY = "tools"


class ToolsFileError(HarnessError):
    """Tools cannot be loaded; the message says from where, what went wrong, and what to do."""

    default_code = "TOOLS_FILE"


def load_tools(source: str, settings: Mapping[str, str]) -> list[ToolDefinition]:
    """Returns the tools that a file or module defines.

    Args:
        source: the path of a Python file, or the dotted name of a module.
        settings: what the user sets of the file's `tools(...)` function.

    Raises:
        ToolsFileError: the source does not exist, does not import, has no tools, or does not take the settings.
    """
    module = _load(source)
    factory: Any = getattr(module, _FACTORY, None)
    if factory is not None and not isinstance(factory, ToolDefinition) and callable(factory):
        found = _call(source, factory, settings)
    elif settings:
        raise ToolsFileError(f"{source} has no function tools(...), so nothing can be set: {', '.join(settings)}")
    else:
        found = list(dict.fromkeys(item for item in vars(module).values() if isinstance(item, ToolDefinition)))
    if not found:
        raise ToolsFileError(
            f"{source} defines no tools; decorate async functions with @ptc.tool, or return definitions from tools()"
        )
    for item in found:
        if not isinstance(item, ToolDefinition):
            raise ToolsFileError(
                f"tools() of {source} returned {type(item).__name__} {item!r}, which is not a tool; "
                "use @ptc.tool or ptc.define_tool"
            )
    return found


def _load(source: str) -> ModuleType:
    path = Path(source)
    if path.suffix != ".py" and not path.exists():
        return _import(source)
    if not path.is_file():
        raise ToolsFileError(f"there is no tools file {source}; --tools takes a Python file or the name of a module")
    name = f"ptc_tools_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ToolsFileError(f"{source} is not a Python file; --tools takes a Python file or the name of a module")
    module = importlib.util.module_from_spec(spec)
    # Known by its name while it runs: dataclasses and annotations look their module up.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ToolsFileError(_told(source, str(path.resolve()), error)) from error
    return module


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name is not None and name.startswith(error.name):
            raise ToolsFileError(
                f"there is no tools module {name}; --tools takes a Python file or the name of a module"
            ) from None
        raise ToolsFileError(_told(name, None, error)) from error


def _told(source: str, file: str | None, error: BaseException) -> str:
    """Says what went wrong while a source was imported, and in which line of it."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == file else None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == file:
            line = frame.lineno
    where = f"{source}, line {line}" if line is not None else source
    return f"the tools cannot be loaded ({where}): {type(error).__name__}: {error}"


def _call(source: str, factory: Callable[..., Any], settings: Mapping[str, str]) -> list[ToolDefinition]:
    try:
        inspect.signature(factory).bind(**settings)
    except TypeError as error:
        names = [name for name, one in inspect.signature(factory).parameters.items() if one.kind is not one.VAR_KEYWORD]
        known = ", ".join(names) or "nothing"
        raise ToolsFileError(f"tools() of {source} does not fit what was set ({error}); it takes {known}") from None
    try:
        return list(factory(**settings))
    except (Exception, SystemExit) as error:
        raise ToolsFileError(_told(source, str(Path(source).resolve()), error)) from error
