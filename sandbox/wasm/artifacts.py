"""The guest as files: built from its sources on first use, compiled for this machine, kept in the user's cache.

    <cache>/guest-<address>.wasm       the component: CPython with the guest in it, and a snapshot of its memory
    <cache>/guest-<address>.cwasm      the same as native code for this machine
    <cache>/guest-<address>.cwasm.json the digest of the native code, and the state of the file when it was taken

An address is the digest of all that goes into a file, so that another version never meets an old one. The native
code is executed as it is: the directory is the user's own, mode 0700, and a file appears under its name only whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import wasmtime
from filelock import FileLock
from platformdirs import user_cache_path
from wasmtime.component import Component

from ..seam import SandboxUnavailableError
from .engine import engine_config

__all__ = ["CACHE_VARIABLE", "Progress", "compiled_guest", "default_cache_directory", "discard_compiled"]

CACHE_VARIABLE = "PTC_CACHE_DIR"
"""The environment variable that says where the cache lies."""

Progress = Callable[[str], None]
"""Told in one line what is being done, when it takes seconds."""

_HERE = Path(__file__).resolve().parent
_GUEST = _HERE.parent / "guest"
_FORMAT = "1"
_PACKAGES = ("tzdata",)
"""What the guest is given beside the standard library, to read while the component is built."""
_BUILD = "import sys; from componentize_py import script; sys.exit(script())"
_BUILD_TIMEOUT_S = 600
_TAIL = 2000
_NO_CACHES = shutil.ignore_patterns("__pycache__")
_FORGOTTEN_AFTER_S = 30 * 24 * 3600
_BROKEN_OFF_AFTER_S = 24 * 3600
"""After that a draft is taken for one whose maker was killed; none takes a hundredth of it."""


def default_cache_directory() -> Path:
    """Returns where the guest is kept: `PTC_CACHE_DIR`, or the user's cache."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else user_cache_path("ptc-runtime", appauthor=False)


def compiled_guest(directory: Path, progress: Progress) -> Path:
    """Returns the compiled guest, building it first where it is not there yet.

    Args:
        directory: the cache.
        progress: told what is done when it takes seconds.

    Raises:
        SandboxUnavailableError: when the cache cannot be used or the build fails; says what, where and what to do.
    """
    address = _address()
    compiled = directory / f"guest-{address}.cwasm"
    if _is_whole(compiled):
        return compiled
    _make_private(directory)
    with _lock(directory, address, progress):
        # Another process may have built it while this one waited.
        if not _is_whole(compiled):
            component = directory / f"guest-{_source_address()}.wasm"
            if not component.is_file():
                _build(component, progress)
            _compile(component, compiled, progress)
            _forget_old(directory, keep=(component, compiled))
    return compiled


def discard_compiled(compiled: Path) -> None:
    """Takes away native code that this machine does not take; the next use makes it anew."""
    for path in (compiled, _record(compiled)):
        path.unlink(missing_ok=True)


def _forget_old(directory: Path, keep: tuple[Path, Path]) -> None:
    """Takes away what other versions left behind and nobody has read for a month, and drafts of makers that died."""
    kept = {keep[0].stem, keep[1].stem}
    now = time.time()
    for draft in (*directory.glob("build-*"), *directory.glob("compile-*")):
        with suppress(FileNotFoundError):  # its maker lives after all, or another process takes it away
            if now - draft.stat().st_mtime > _BROKEN_OFF_AFTER_S:
                shutil.rmtree(draft) if draft.is_dir() else draft.unlink()
    for path in directory.glob("guest-*"):
        try:
            found = path.stat()
            if path.name.split(".")[0] not in kept and now - max(found.st_atime, found.st_mtime) > _FORGOTTEN_AFTER_S:
                path.unlink()
        except FileNotFoundError:
            continue  # another process has taken it away first


# Addresses


def _sources() -> Iterator[Path]:
    yield from sorted(_GUEST.glob("*.py"))
    yield _HERE / "component_app.py"
    yield _HERE / "world.wit"


def _source_address() -> str:
    versions = [metadata.version(name) for name in ("componentize-py", *_PACKAGES)]
    digest = hashlib.sha256(f"{_FORMAT} {' '.join(versions)}".encode())
    for path in _sources():
        content = path.read_bytes()
        digest.update(f"\0{path.name} {len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:20]


def _address() -> str:
    version = getattr(wasmtime, "__version__", "") or metadata.version("wasmtime")
    told = f"{_source_address()} {version} {platform.machine()} {sys.platform} {_FORMAT}"
    return hashlib.sha256(told.encode()).hexdigest()[:20]


# Whole or not


def _record(compiled: Path) -> Path:
    return compiled.with_name(compiled.name + ".json")


def _state(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ino]


def _is_whole(compiled: Path) -> bool:
    """Tells whether the native code is what was written; it is read again only when the file's state has changed."""
    try:
        record = json.loads(_record(compiled).read_text())
        state = _state(compiled)
        if state == record["state"]:
            return True
        return state[0] == record["state"][0] and _digest(compiled) == record["digest"]
    except FileNotFoundError:
        return False
    except PermissionError as error:
        raise SandboxUnavailableError(
            f"the sandbox cannot be read from its cache: {error.strerror}: {error.filename}; "
            f"set {CACHE_VARIABLE} to a directory of yours"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# The directory


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.stat()
        if found.st_uid != os.getuid():
            raise SandboxUnavailableError(
                f"the cache directory {directory} belongs to another user, and native code is run from it; "
                f"set {CACHE_VARIABLE} to a directory of yours"
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            directory.chmod(0o700)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise SandboxUnavailableError(
            f"the sandbox cannot be built: the cache directory {directory} cannot be written ({error.strerror}); "
            f"set {CACHE_VARIABLE} to a directory that can"
        ) from None


@contextmanager
def _lock(directory: Path, address: str, progress: Progress) -> Iterator[None]:
    lock = FileLock(directory / f"guest-{address}.lock", mode=0o600)
    if not _try(lock):
        progress("waiting for another process that builds the Python sandbox")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _try(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except TimeoutError:
        return False
    return True


# Building


def _build(component: Path, progress: Progress) -> None:
    progress("building the Python sandbox (once on this machine, 10 to 30 seconds)")
    with tempfile.TemporaryDirectory(dir=component.parent, prefix="build-") as name:
        room = Path(name)
        source = room / "source"
        shutil.copytree(_GUEST, source / "ptc_guest", ignore=_NO_CACHES)
        for package in _PACKAGES:
            shutil.copytree(_place_of(package), source / package, ignore=_NO_CACHES)
        shutil.copyfile(_HERE / "component_app.py", source / "app.py")
        shutil.copyfile(_HERE / "world.wit", room / "world.wit")
        built = room / "guest.wasm"
        arguments = ["-q", "-d", str(room / "world.wit"), "-w", "guest", "componentize", "app"]
        arguments += ["-p", str(source), "-o", str(built)]
        # Without the caller's environment of a virtual environment: its packages are no part of the guest.
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
        try:
            done = subprocess.run(  # noqa: S603 - our own interpreter, our own arguments
                [sys.executable, "-P", "-c", _BUILD, *arguments],
                cwd=room,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_BUILD_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SandboxUnavailableError(
                f"building the sandbox took more than {_BUILD_TIMEOUT_S} s and was stopped; try again when idle"
            ) from None
        if done.returncode != 0 or not built.is_file():
            tail = done.stdout.decode("utf-8", "replace")[-_TAIL:].strip()
            raise SandboxUnavailableError(
                f"building the sandbox failed (componentize-py exited with {done.returncode}): {tail}"
            )
        _put(built, component)


def _place_of(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SandboxUnavailableError(
            f'building the sandbox needs {package}, which is not there: pip install "{package}"'
        )
    return Path(spec.origin).parent


def _compile(component: Path, compiled: Path, progress: Progress) -> None:
    progress("compiling the Python sandbox for this machine (once)")
    try:
        native = Component.from_file(wasmtime.Engine(engine_config()), str(component)).serialize()
    except wasmtime.WasmtimeError as error:
        component.unlink(missing_ok=True)
        raise SandboxUnavailableError(
            f"the component {component} could not be compiled and was removed; run again to build it anew: {error}"
        ) from None
    with tempfile.NamedTemporaryFile(dir=compiled.parent, prefix="compile-", delete=False) as file:
        try:
            file.write(native)
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            Path(file.name).unlink(missing_ok=True)
            raise SandboxUnavailableError(
                f"the compiled sandbox cannot be written to {compiled.parent} ({error.strerror}); make room there, or "
                f"set {CACHE_VARIABLE} to a directory with room"
            ) from None
    _put(Path(file.name), compiled)
    told = {"digest": hashlib.sha256(native).hexdigest(), "state": _state(compiled), "written": int(time.time())}
    record = _record(compiled)
    draft = record.with_name(f"{record.name}.{os.getpid()}")
    draft.write_text(json.dumps(told))
    _put(draft, record)


def _put(draft: Path, path: Path) -> None:
    """Gives a finished file its name; whoever looks sees the old state or the new one, never a part."""
    draft.chmod(0o600)
    draft.replace(path)
