"""The functions that the component imports, as thin native callbacks.

wasmtime's own Python layer looks up the types of a function anew on each call and converts values one by one; on the
path of every tool call that is most of the cost. Here a callback reads its arguments where they lie and writes its
result there. The layout is that of `wasmtime_component_val_t`: one byte of kind, and at offset 8 the value (for a
string: its length, then a pointer). A test holds it against the bindings that wasmtime ships.

A callback never raises into native code: a fault is given to the host, which raises it once the run has trapped.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from wasmtime import _bindings, _ffi
from wasmtime.component import Component, Linker

__all__ = ["GuestHost", "define_imports", "new_error"]

BRIDGE = "ptc:sandbox/bridge@1.0.0"

_KIND_S64 = _ffi.WASMTIME_COMPONENT_S64.value
_KIND_U8 = _ffi.WASMTIME_COMPONENT_U8.value
_KIND_U32 = _ffi.WASMTIME_COMPONENT_U32.value
_KIND_U64 = _ffi.WASMTIME_COMPONENT_U64.value
_KIND_STRING = _ffi.WASMTIME_COMPONENT_STRING.value
_KIND_LIST = _ffi.WASMTIME_COMPONENT_LIST.value
_KIND_RECORD = _ffi.WASMTIME_COMPONENT_RECORD.value

VAL_SIZE = ctypes.sizeof(_bindings.wasmtime_component_val_t)
VALUE_OFFSET = 8
_NANOSECONDS = 1_000_000_000
_MAX_RANDOM = 1 << 20

# data, context, function type, arguments, their number, results, their number -> error or null
CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_size_t,
)
_FINALIZER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_DLL = cast("ctypes.CDLL", _ffi.dll)

_add_func = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, CALLBACK, ctypes.c_void_p, _FINALIZER
)(("wasmtime_component_linker_instance_add_func", _DLL))
_bytes_new = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)(("wasm_byte_vec_new", _DLL))
_list_new = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)(
    ("wasmtime_component_vallist_new", _DLL)
)
_error_new = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(("wasmtime_error_new", _DLL))
_no_finalizer = _FINALIZER()

_byte_at = ctypes.c_uint8.from_address
_size_at = ctypes.c_size_t.from_address
_signed_at = ctypes.c_int64.from_address
_string_at = ctypes.string_at

# A random byte as the value that the component receives: kind, padding, byte, padding.
_BYTE_VALUES = [
    bytes([_KIND_U8]) + bytes(VALUE_OFFSET - 1) + bytes([byte]) + bytes(VAL_SIZE - VALUE_OFFSET - 1)
    for byte in range(256)
]


def new_error(text: bytes) -> int:
    """Returns an error for native code, which owns it from then on."""
    return _error_new(text) or 0


class GuestHost(Protocol):
    """What answers the component, for the run that the calling thread carries."""

    def submit(self, calls: str) -> None: ...

    def wait(self, calls: str, timeout_us: int) -> str | None:
        """Takes calls as `submit` does, where there are any, and waits.

        Returns:
            replies as JSON text, or `None` when the run has been killed.
        """
        ...

    def emit(self, text: str) -> bool:
        """Returns whether the run may go on."""
        ...

    def fault(self, error: BaseException) -> None:
        """Takes what went wrong in the host itself."""
        ...


def read_string(value: int) -> str:
    """Returns the string whose value lies at an address."""
    size = _size_at(value + VALUE_OFFSET).value
    return _string_at(_size_at(value + VALUE_OFFSET + 8).value, size).decode("utf-8") if size else ""


def write_string(value: int, text: str) -> None:
    """Writes a string as the value at an address; native code owns the copy."""
    data = text.encode("utf-8")
    _byte_at(value).value = _KIND_STRING
    _bytes_new(value + VALUE_OFFSET, len(data), data)


def _write_unsigned(value: int, number: int) -> None:
    _byte_at(value).value = _KIND_U64
    _size_at(value + VALUE_OFFSET).value = number


def _write_bytes(value: int, data: bytes) -> None:
    _byte_at(value).value = _KIND_LIST
    _list_new(value + VALUE_OFFSET, len(data), b"".join([_BYTE_VALUES[byte] for byte in data]))


def define_imports(linker: Linker, component: Component, host: GuestHost) -> list[Any]:
    """Defines all that the component may import; whatever else it imports traps when it is called.

    Args:
        linker: the linker.
        component: the component, for the versions of the interfaces that it imports.
        host: what answers.

    Returns:
        the native callbacks, to be kept for as long as the linker is.
    """
    kept: list[Any] = []

    def callback(function: Callable[[int, int], bytes | None]) -> Any:
        def call(_data: Any, _context: Any, _kind: Any, arguments: int, _n: int, results: int, _m: int) -> int:
            try:
                trap = function(arguments, results)
            except BaseException as error:  # noqa: BLE001 - nothing may be raised into native code; the run raises it
                host.fault(error)
                trap = b"host fault"
            return new_error(trap) if trap is not None else 0

        native = CALLBACK(call)
        kept.append(native)
        return native

    functions = _bridge(host) | _wasi()
    names = {name.partition("@")[0]: name for name in component.type.imports(linker.engine)}
    names[BRIDGE.partition("@")[0]] = BRIDGE
    with linker.root() as root:
        for interface, members in functions.items():
            if interface not in names:
                continue
            with root.add_instance(names[interface]) as instance:
                for name, function in members.items():
                    raw = ctypes.cast(instance.ptr(), ctypes.c_void_p)
                    encoded = name.encode()
                    error = _add_func(raw, encoded, len(encoded), callback(function), None, _no_finalizer)
                    if error:
                        raise RuntimeError(f"wasmtime refused the import {interface}#{name}")
    linker.define_unknown_imports_as_traps(component)
    return kept


Members = Mapping[str, Callable[[int, int], bytes | None]]


def _bridge(host: GuestHost) -> dict[str, Members]:
    def submit(arguments: int, _results: int) -> None:
        host.submit(read_string(arguments))

    def wait(arguments: int, results: int) -> bytes | None:
        calls, timeout_us = arguments, _signed_at(arguments + VAL_SIZE + VALUE_OFFSET).value
        replies = host.wait(read_string(calls), timeout_us)
        if replies is None:
            return b"killed"
        write_string(results, replies)
        return None

    def emit(arguments: int, _results: int) -> bytes | None:
        return None if host.emit(read_string(arguments)) else b"killed"

    return {BRIDGE.partition("@")[0]: {"submit": submit, "wait": wait, "emit": emit}}


def _wasi() -> dict[str, Members]:
    """The few pure functions of WASI that CPython cannot start without: no files, no environment, no sockets."""

    def nothing(_arguments: int, results: int) -> None:
        _byte_at(results).value = _KIND_LIST
        _list_new(results + VALUE_OFFSET, 0, None)

    def monotonic(_arguments: int, results: int) -> None:
        _write_unsigned(results, time.monotonic_ns())

    def resolution(_arguments: int, results: int) -> None:
        _write_unsigned(results, 1)

    def wall_clock(_arguments: int, results: int) -> None:
        seconds, nanoseconds = divmod(time.time_ns(), _NANOSECONDS)
        entries = (_bindings.wasmtime_component_valrecord_entry_t * 2)()
        for entry, name, kind in ((entries[0], b"seconds", _KIND_U64), (entries[1], b"nanoseconds", _KIND_U32)):
            _bytes_new(ctypes.addressof(entry.name), len(name), name)
            entry.val.kind = kind
        entries[0].val.of.u64 = seconds
        entries[1].val.of.u32 = nanoseconds
        record = _bindings.wasmtime_component_valrecord_t.from_address(results + VALUE_OFFSET)
        _bindings.wasmtime_component_valrecord_new(ctypes.byref(record), 2, entries)
        _byte_at(results).value = _KIND_RECORD

    def random_bytes(arguments: int, results: int) -> bytes | None:
        count = _size_at(arguments + VALUE_OFFSET).value
        if count > _MAX_RANDOM:
            return b"too many random bytes at once"
        _write_bytes(results, os.urandom(count))
        return None

    def random_number(_arguments: int, results: int) -> None:
        _write_unsigned(results, int.from_bytes(os.urandom(8), "little"))

    return {
        "wasi:cli/environment": {"get-environment": nothing, "get-arguments": nothing},
        "wasi:clocks/monotonic-clock": {"now": monotonic, "resolution": resolution},
        "wasi:clocks/wall-clock": {"now": wall_clock},
        "wasi:random/random": {"get-random-bytes": random_bytes, "get-random-u64": random_number},
        "wasi:filesystem/preopens": {"get-directories": nothing},
    }
