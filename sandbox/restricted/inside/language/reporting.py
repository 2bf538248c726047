"""`logging` and `sys` for programs: what they print and tell, without frames, files and settings."""

from __future__ import annotations

import sys
from typing import Any, Final, NoReturn, TextIO

from ....guest.report import render
from .typeguard import SandboxObject

__all__ = ["logging_names", "sys_names"]

_LEVELS: Final = {"CRITICAL": 50, "ERROR": 40, "WARNING": 30, "INFO": 20, "DEBUG": 10, "NOTSET": 0}


class _Stream(SandboxObject, shown_as="TextIOWrapper"):
    """`sys.stdout` or `sys.stderr`: what is written to it is the program's output."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def write(self, text: str, /) -> int:
        return _stream(self._name).write(text)

    def writelines(self, lines: Any, /) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Does nothing: output is handed over at once."""

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    @property
    def name(self) -> str:
        return f"<{self._name}>"

    @property
    def encoding(self) -> str:
        return "utf-8"


def _stream(name: str) -> TextIO:
    return getattr(sys, name)


def sys_names() -> dict[str, object]:
    """Returns the names of `sys`."""

    def exit(status: Any = None, /) -> NoReturn:  # noqa: A001 - its name in `sys`
        raise SystemExit(status)

    names = ("byteorder", "float_info", "getrecursionlimit", "getsizeof", "hash_info", "int_info", "intern", "maxsize")
    names += ("maxunicode", "version", "version_info")
    return {
        **{name: getattr(sys, name) for name in names},
        "exit": exit,
        "stderr": _Stream("stderr"),
        "stdout": _Stream("stdout"),
    }


class Logger:
    """A logger that writes to stderr what has its level or a higher one."""

    def __init__(self, name: str, parent: Logger | None) -> None:
        self.name = name
        self.level = 0
        self._parent = parent

    def setLevel(self, level: int | str) -> None:
        self.level = _level(level)

    def getEffectiveLevel(self) -> int:
        return self.level or (self._parent.getEffectiveLevel() if self._parent else _LEVELS["WARNING"])

    def isEnabledFor(self, level: int) -> bool:
        return level >= self.getEffectiveLevel()

    def log(self, level: int, message: object, /, *args: Any, exc_info: Any = None, **_options: object) -> None:
        if not self.isEnabledFor(level):
            return
        text = str(message)
        if args:
            text %= args[0] if len(args) == 1 and isinstance(args[0], dict) and args[0] else args
        title = next((name for name, value in _LEVELS.items() if value == level), f"Level {level}")
        sys.stderr.write(f"{title}:{self.name}:{text}\n")
        error = sys.exc_info()[1] if exc_info is True else exc_info
        if isinstance(error, BaseException):
            sys.stderr.write(render(error) + "\n")

    def debug(self, message: object, /, *args: Any, **options: Any) -> None:
        self.log(_LEVELS["DEBUG"], message, *args, **options)

    def info(self, message: object, /, *args: Any, **options: Any) -> None:
        self.log(_LEVELS["INFO"], message, *args, **options)

    def warning(self, message: object, /, *args: Any, **options: Any) -> None:
        self.log(_LEVELS["WARNING"], message, *args, **options)

    def error(self, message: object, /, *args: Any, **options: Any) -> None:
        self.log(_LEVELS["ERROR"], message, *args, **options)

    def critical(self, message: object, /, *args: Any, **options: Any) -> None:
        self.log(_LEVELS["CRITICAL"], message, *args, **options)

    def exception(self, message: object, /, *args: Any, **options: Any) -> None:
        self.log(_LEVELS["ERROR"], message, *args, **{"exc_info": True, **options})

    def __repr__(self) -> str:
        return f"<Logger {self.name}>"


def _level(level: int | str) -> int:
    if isinstance(level, str):
        if level not in _LEVELS:
            raise ValueError(f"Unknown level: {level!r}")
        return _LEVELS[level]
    return level


def logging_names() -> dict[str, object]:
    """Returns the names of `logging`: loggers and levels, without handlers."""
    root = Logger("root", None)
    known: dict[str, Logger] = {}

    def getLogger(name: str | None = None) -> Logger:
        if not name or name == "root":
            return root
        if name not in known:
            parent, _, _ = name.rpartition(".")
            known[name] = Logger(name, getLogger(parent) if parent else root)
        return known[name]

    def basicConfig(*, level: int | str | None = None, **_options: object) -> None:
        if level is not None:
            root.setLevel(level)

    methods = ("critical", "debug", "error", "exception", "info", "log", "warning")
    return {
        **_LEVELS,
        **{name: getattr(root, name) for name in methods},
        "Logger": Logger,
        "basicConfig": basicConfig,
        "getLogger": getLogger,
    }
