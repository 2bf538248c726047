"""The guest in the user's cache: built once, whole or not there, private, and mended when it is damaged."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from ptc.sandbox.guest.preload import MODULES
from ptc.sandbox.seam import SandboxRequest, SandboxUnavailableError
from ptc.sandbox.wasm import WasmSandbox, artifacts
from ptc.sandbox.wasm.artifacts import compiled_guest, default_cache_directory

from .conftest import Run


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache of the test's own, filled from the user's so that nothing has to be built."""
    source = compiled_guest(default_cache_directory(), lambda _line: None)
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    for path in source.parent.glob(f"{source.stem}.cwasm*"):
        shutil.copy2(path, folder)
    shutil.copy2(source.parent / f"guest-{artifacts._source_address()}.wasm", folder)
    return folder


@pytest.fixture
def compiles_at_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the native code that is known already: compiling takes long, and one test below does it."""
    (compiled,) = cache.glob("*.cwasm")
    native = compiled.read_bytes()

    class Known:
        @staticmethod
        def from_file(_engine: object, component: str) -> SimpleNamespace:
            assert Path(component).read_bytes()[:4] == b"\0asm"
            return SimpleNamespace(serialize=lambda: native)

    monkeypatch.setattr("ptc.sandbox.wasm.artifacts.Component", Known)


async def result_with(cache: Path, lines: list[str]) -> str | None:
    async with WasmSandbox(cache_directory=cache, progress=lines.append, ready=0) as sandbox:
        return (await sandbox.run(SandboxRequest(program="return 1"))).value_json


@pytest.mark.anyio
async def test_a_whole_cache_is_used_without_a_word(cache: Path) -> None:
    lines: list[str] = []
    assert await result_with(cache, lines) == "1"
    assert lines == []


@pytest.mark.anyio
@pytest.mark.usefixtures("compiles_at_once")
@pytest.mark.parametrize("damage", ["flipped", "truncated", "no record"])
async def test_a_damaged_cache_is_made_anew(cache: Path, damage: str) -> None:
    (compiled,) = cache.glob("*.cwasm")
    content = bytearray(compiled.read_bytes())
    match damage:
        case "flipped":
            content[len(content) // 2] ^= 0xFF
        case "truncated":
            content = content[: len(content) // 2]
        case _:
            (cache / f"{compiled.name}.json").unlink()
    compiled.write_bytes(content)
    lines: list[str] = []
    assert await result_with(cache, lines) == "1"
    assert lines == ["compiling the Python sandbox for this machine (once)"]
    assert await result_with(cache, lines) == "1"
    assert len(lines) == 1


@pytest.mark.anyio
@pytest.mark.usefixtures("compiles_at_once")
async def test_native_code_that_the_engine_refuses_is_made_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (compiled,) = cache.glob("*.cwasm")
    content = bytearray(compiled.read_bytes())
    content[:64] = bytes(64)
    compiled.write_bytes(content)
    state, digest = "ptc.sandbox.wasm.artifacts._is_whole", iter([True])
    original = sys.modules["ptc.sandbox.wasm.artifacts"]._is_whole
    monkeypatch.setattr(state, lambda path: next(digest, None) or original(path))
    lines: list[str] = []
    assert await result_with(cache, lines) == "1"
    assert lines[0].startswith("the compiled sandbox in the cache is damaged or made for another machine")


@pytest.mark.usefixtures("compiles_at_once")
def test_the_cache_is_private(cache: Path) -> None:
    (compiled,) = cache.glob("*.cwasm")
    compiled.with_name(compiled.name + ".json").unlink()
    cache.chmod(0o755)
    compiled_guest(cache, lambda _line: None)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in cache.glob("*.cwasm*")} == {0o600}


@pytest.mark.parametrize("place", ["a file", "below a file", "nowhere"])
def test_a_cache_that_cannot_be_written_is_one_clear_message(tmp_path: Path, place: str) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    folder = {"a file": blocked, "below a file": blocked / "cache", "nowhere": Path("/proc/no-such-place/cache")}[place]
    with pytest.raises(SandboxUnavailableError) as caught:
        compiled_guest(folder, lambda _line: None)
    assert str(folder) in str(caught.value)
    assert "PTC_CACHE_DIR" in str(caught.value)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody else")
def test_a_cache_of_somebody_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with pytest.raises(SandboxUnavailableError, match="belongs to another user"):
        compiled_guest(folder, lambda _line: None)


def test_the_command_line_tells_of_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        'import ptc\n\n@ptc.tool\nasync def one() -> int:\n    """One."""\n    return 1\n'
    )
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "ptc.runtime.cli", "run", "-", "--tools", "tools.py"],
        input="return 1",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PTC_CACHE_DIR": str(blocked)},
        check=False,
    )
    assert done.returncode == 1
    assert str(blocked) in done.stderr
    assert "PTC_CACHE_DIR" in done.stderr
    assert "Traceback" not in done.stderr
    audited = subprocess.run(
        [sys.executable, "-m", "ptc.runtime.cli", "audit", "list"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert audited.returncode == 0


def test_two_processes_build_it_once(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from ptc.sandbox.wasm.artifacts import compiled_guest\n"
        f"print(compiled_guest(Path({str(tmp_path / 'cache')!r}), lambda line: print(line, flush=True)))\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=110)[0].splitlines() for process in started]
    assert said[0][-1] == said[1][-1]
    lines = [line for one in said for line in one[:-1]]
    assert sum(line.startswith("building the Python sandbox") for line in lines) == 1
    assert sum(line.startswith("compiling the Python sandbox") for line in lines) == 1
    assert sorted(path.suffix for path in (tmp_path / "cache").iterdir()) == [".cwasm", ".json", ".lock", ".wasm"]


@pytest.mark.usefixtures("compiles_at_once")
def test_what_other_versions_left_is_forgotten_after_a_month(cache: Path) -> None:
    old, recent = cache / "guest-aaaa.cwasm", cache / "guest-bbbb.cwasm"
    for path, age_days in ((old, 40), (recent, 5)):
        path.write_text("")
        then = time.time() - age_days * 24 * 3600
        os.utime(path, (then, then))
    (compiled,) = [path for path in cache.glob("*.cwasm") if path not in (old, recent)]
    compiled.unlink()
    compiled_guest(cache, lambda _line: None)
    assert (old.exists(), recent.exists(), compiled.exists()) == (False, True, True)


@pytest.mark.usefixtures("compiles_at_once")
def test_drafts_of_makers_that_were_killed_are_taken_away_after_a_day(cache: Path) -> None:
    dead, alive, half = cache / "build-dead", cache / "build-alive", cache / "compile-dead"
    for path in (dead, alive):
        (path / "source").mkdir(parents=True)
    half.write_text("")
    then = time.time() - 2 * 24 * 3600
    for path in (dead, half):
        os.utime(path, (then, then))
    for compiled in cache.glob("*.cwasm"):
        compiled.unlink()
    compiled_guest(cache, lambda _line: None)
    assert (dead.exists(), half.exists(), alive.exists()) == (False, False, True)


@pytest.mark.anyio
async def test_every_module_of_the_allowlist_can_be_imported(run: Run) -> None:
    result = await run("import importlib\nfor name in " + repr(MODULES) + ":\n    importlib.import_module(name)")
    assert result.error is None, result.error


def test_the_native_layout_is_that_of_the_library() -> None:
    from ctypes import addressof, sizeof

    from ptc.sandbox.wasm import hostcalls
    from wasmtime import _bindings

    value = _bindings.wasmtime_component_val_t()
    hostcalls.write_string(addressof(value), "añ😀")
    assert value.kind == hostcalls._KIND_STRING
    assert value.of.string.size == len("añ😀".encode())
    assert hostcalls.read_string(addressof(value)) == "añ😀"
    assert sizeof(value) == hostcalls.VAL_SIZE
    assert type(value).of.offset == hostcalls.VALUE_OFFSET
    assert type(value.of.string).data.offset == 8
