"""The store of spilled texts on disk, reading it by parts, and who can read what."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import anyio
import ptc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ptc.runtime.spill_store import part_of

pytestmark = pytest.mark.anyio

posix = pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")


def spill(content: str, session: str = "s1", name: str = "say.txt") -> ptc.SpillText:
    return ptc.SpillText(
        session_id=session, tool_name="say", call_id="c1", label="result", suggested_name=name, content=content
    )


async def whole(store: ptc.SpillStore, locator: str, session: str = "s1", limit: int = 7) -> str:
    """Reads a text part by part."""
    text, offset = "", 0
    while True:
        part = await store.read_text(session, locator, offset=offset, limit=limit)
        assert part.offset == offset
        assert len(part.text.encode()) == part.next_offset - part.offset <= limit
        text += part.text
        if part.next_offset == part.total_bytes:
            return text
        assert part.next_offset > offset
        offset = part.next_offset


@pytest.fixture
def store(tmp_path: Path) -> ptc.LocalSpillStore:
    return ptc.LocalSpillStore(tmp_path / "spilled")


async def test_what_is_saved_is_read_back_by_parts(anyio_backend: str, store: ptc.LocalSpillStore) -> None:
    text = "a\r\nb\0é€😀" * 50
    locator = await store.save_text(spill(text))
    assert await whole(store, locator) == text
    assert await whole(store, locator, limit=10_000) == text
    assert Path(locator).read_bytes() == text.encode()
    assert await whole(store, await store.save_text(spill(""))) == ""


async def test_parts_begin_and_end_between_characters(anyio_backend: str, store: ptc.LocalSpillStore) -> None:
    locator = await store.save_text(spill("a😀b"))
    read = [await store.read_text("s1", locator, offset=offset, limit=4) for offset in range(8)]
    assert [(part.text, part.offset, part.next_offset, part.total_bytes) for part in read] == [
        ("a", 0, 1, 6),
        ("😀", 1, 5, 6),
        ("b", 5, 6, 6),
        ("b", 5, 6, 6),
        ("b", 5, 6, 6),
        ("b", 5, 6, 6),
        ("", 6, 6, 6),
        ("", 6, 6, 6),
    ]
    assert (await store.read_text("s1", locator, offset=10**30, limit=4)).text == ""
    for bad in ({"offset": -1, "limit": 4}, {"offset": 0, "limit": 3}):
        with pytest.raises(ValueError, match="must"):
            await store.read_text("s1", locator, **bad)


@pytest.mark.contract("K12")
@given(text=st.text(alphabet="aé€😀", max_size=40), offset=st.integers(0, 170), limit=st.integers(4, 50))
@example(text="aé😀a😀", offset=4, limit=4)  # what was read begins and ends inside a character
def test_parts_are_within_the_limit_and_always_get_on(text: str, offset: int, limit: int) -> None:
    data = text.encode()
    part = part_of(data[offset : offset + limit + 3], min(offset, len(data)), limit, len(data))
    assert data[part.offset : part.next_offset].decode() == part.text
    assert part.next_offset - part.offset <= limit
    assert part.offset - min(offset, len(data)) <= 3
    assert part.next_offset > part.offset or part.next_offset == len(data)


@posix
async def test_only_the_session_that_saved_a_text_can_read_it(
    anyio_backend: str, store: ptc.LocalSpillStore, tmp_path: Path
) -> None:
    mine, others = await store.save_text(spill("mine")), await store.save_text(spill("theirs", "s2"))
    folder = Path(mine).parent
    secret = tmp_path / "secret.txt"
    secret.write_text("host", encoding="utf-8")
    (folder / "0123456789abcdef-link.txt").symlink_to(secret)
    (folder / "0123456789abcdef-other.txt").symlink_to(others)
    (folder / "0123456789abcdef-dir.txt").mkdir()
    os.mkfifo(folder / "0123456789abcdef-pipe.txt")
    (folder / "plain.txt").write_text("not a spilled text", encoding="utf-8")
    unknown = [
        others,
        str(secret),
        "/etc/passwd",
        "",
        ".",
        "..",
        str(folder),
        f"{folder}/",
        f"{folder}/..",
        f"{folder}/../{Path(others).parent.name}/{Path(others).name}",
        f"{folder}/./{Path(mine).name}",
        f"{folder}//{Path(mine).name}",
        f"{mine}/",
        f"{mine}\n",
        f" {mine}",
        f"{mine}\0",
        f"file://{mine}",
        Path(mine).name,
        os.path.relpath(mine),
        f"{folder}/plain.txt",
        f"{folder}/0123456789abcdef-link.txt",
        f"{folder}/0123456789abcdef-other.txt",
        f"{folder}/0123456789abcdef-dir.txt",
        f"{folder}/0123456789abcdef-pipe.txt",
        f"{folder}/0123456789abcdef-none.txt",
        f"{folder}/0123456789abcdef-{'n' * 5000}.txt",
        f"{folder}/\ud800",
    ]
    for locator in unknown:
        with pytest.raises(ptc.UnknownLocatorError, match="unknown locator") as refused, anyio.fail_after(10):
            await store.read_text("s1", locator, offset=0, limit=100)
        assert str(tmp_path) not in str(refused.value)
    assert (await store.read_text("s1", mine, offset=0, limit=100)).text == "mine"
    assert (await store.read_text("s2", others, offset=0, limit=100)).text == "theirs"
    with pytest.raises(ptc.UnknownLocatorError):
        await store.read_text("s3", mine, offset=0, limit=100)


@posix
async def test_a_directory_that_is_a_link_is_neither_read_nor_written(
    anyio_backend: str, store: ptc.LocalSpillStore, tmp_path: Path
) -> None:
    locator = await store.save_text(spill("mine"))
    folder = Path(locator).parent
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    with pytest.raises(ptc.UnknownLocatorError):
        await store.read_text("s1", locator, offset=0, limit=100)
    with pytest.raises(PermissionError, match="in the place of a directory"):
        await store.save_text(spill("more"))
    assert len(list(elsewhere.iterdir())) == 1
    linked = ptc.LocalSpillStore(tmp_path / "linked")
    (tmp_path / "linked").symlink_to(elsewhere)
    with pytest.raises(PermissionError):
        await linked.save_text(spill("more"))


@posix
@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
async def test_a_directory_that_is_open_to_others_is_refused(
    anyio_backend: str, store: ptc.LocalSpillStore, mode: int
) -> None:
    store.root.mkdir()
    store.root.chmod(mode)
    with pytest.raises(PermissionError, match="chmod 700"):
        await store.save_text(spill("x"))
    assert list(store.root.iterdir()) == []
    assert stat.S_IMODE(store.root.stat().st_mode) == mode


@posix
async def test_a_wide_open_umask_opens_nothing(anyio_backend: str, store: ptc.LocalSpillStore) -> None:
    before = os.umask(0)
    try:
        locator = Path(await store.save_text(spill("x")))
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (locator, locator.parent, store.root)]
    assert modes == [0o600, 0o700, 0o700]


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("search.txt", "-search.txt"),
        ("../../etc/passwd", "-_.._etc_passwd"),
        ("a/b\\c:d\0e\n.txt", "-a_b_c_d_e_.txt"),
        ("", "-text"),
        ("...", "-text"),
        (".hidden", "-hidden"),
        ("喵.txt", "-_.txt"),
        ("n" * 500 + ".txt", "-" + "n" * 76 + ".txt"),
    ],
)
async def test_names_are_made_safe_and_can_be_read_back(
    anyio_backend: str, store: ptc.LocalSpillStore, name: str, end: str
) -> None:
    locator = await store.save_text(spill("x", name=name))
    assert Path(locator).name[16:] == end
    assert Path(locator).parent.parent == store.root
    assert await whole(store, locator) == "x"


async def test_files_are_written_in_a_worker_thread(
    anyio_backend: str, store: ptc.LocalSpillStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    save = store._files.save

    def watched(*args: Any) -> str:
        threads.append(threading.get_ident())
        return save(*args)

    monkeypatch.setattr(store._files, "save", watched)
    await store.save_text(spill("x"))
    assert threads != [threading.get_ident()]


async def test_a_text_that_cannot_be_written_whole_leaves_nothing(
    anyio_backend: str, store: ptc.LocalSpillStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.save_text(spill("x"))

    class Full:
        def __init__(self, descriptor: int, _mode: str) -> None:
            self.descriptor = descriptor

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_error: object) -> None:
            os.close(self.descriptor)

        def write(self, data: bytes) -> None:
            os.write(self.descriptor, data[:1])
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("ptc.runtime.spill_files.os.fdopen", Full)
    with pytest.raises(OSError, match="No space left"):
        await store.save_text(spill("a long text"))
    assert [path.read_text(encoding="utf-8") for path in store.root.rglob("*.txt")] == ["x"]


# Retention


class Clock:
    """The wall clock of a store, and of its files."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    async def save(self, store: ptc.LocalSpillStore, content: str, session: str = "s1") -> Path:
        """Saves a text now."""
        locator = Path(await store.save_text(spill(content, session)))
        if locator.exists():
            os.utime(locator, (self.now, self.now))
        return locator


async def test_texts_stay_unless_retention_is_asked_for(anyio_backend: str, tmp_path: Path) -> None:
    clock = Clock()
    store = ptc.LocalSpillStore(tmp_path / "spilled", clock=clock)
    first = await clock.save(store, "x" * 1000)
    clock.now += 10**9
    await clock.save(store, "y" * 1000)
    assert first.exists()


async def test_old_texts_go_and_then_their_locator_is_unknown(anyio_backend: str, tmp_path: Path) -> None:
    clock = Clock()
    store = ptc.LocalSpillStore(tmp_path / "spilled", max_age_seconds=3600, clock=clock)
    old = await clock.save(store, "old", "s1")
    clock.now += 3000
    young = await clock.save(store, "young", "s2")
    clock.now += 601
    await clock.save(store, "new", "s3")
    assert (old.exists(), young.exists()) == (False, True)
    assert not old.parent.exists()
    with pytest.raises(ptc.UnknownLocatorError):
        await store.read_text("s1", str(old), offset=0, limit=10)


async def test_the_oldest_go_when_all_take_too_much_and_the_newest_stays(anyio_backend: str, tmp_path: Path) -> None:
    clock = Clock()
    store = ptc.LocalSpillStore(tmp_path / "spilled", max_total_bytes=1000, clock=clock)
    saved = []
    for number in range(6):
        clock.now += 1
        saved.append(await clock.save(store, str(number) * 300, f"s{number % 2}"))
    assert [path.exists() for path in saved] == [False, False, False, True, True, True]
    huge = await clock.save(store, "x" * 5000)
    assert [path.exists() for path in [*saved, huge]] == [False] * 6 + [True]


async def test_retention_counts_what_was_there_before_and_leaves_foreign_files(
    anyio_backend: str, tmp_path: Path
) -> None:
    clock = Clock()
    before = await clock.save(ptc.LocalSpillStore(tmp_path / "spilled"), "x" * 900)
    foreign = [tmp_path / "spilled" / "notes.txt", before.parent / "notes.txt", tmp_path / "spilled" / ("0" * 32)]
    for path in foreign:
        path.write_text("n" * 5000, encoding="utf-8")
        os.utime(path, (1, 1))
    clock.now += 1
    after = await clock.save(
        ptc.LocalSpillStore(tmp_path / "spilled", max_total_bytes=1000, max_age_seconds=10**8, clock=clock), "y" * 900
    )
    assert (before.exists(), after.exists()) == (False, True)
    assert all(path.exists() for path in foreign)


@pytest.mark.parametrize(
    "options",
    [{"max_age_seconds": 0}, {"max_age_seconds": float("nan")}, {"max_age_seconds": "1"}, {"max_total_bytes": 1.5},
     {"max_total_bytes": True}, {"max_total_bytes": -1}],
)  # fmt: skip
def test_retention_that_is_no_number_is_refused(tmp_path: Path, options: Any) -> None:
    with pytest.raises(ValueError, match="must be a positive number, or None"):
        ptc.LocalSpillStore(tmp_path, **options)


# The tool


@pytest.fixture
async def readers(anyio_backend: str, tmp_path: Path) -> AsyncIterator[tuple[ptc.Agent, ptc.Agent, str]]:
    """Two agents, and the locator of a text of 5,000 bytes that the first has spilled."""
    async with ptc.Host(log=tmp_path / "log.db") as host:

        @ptc.tool
        async def count() -> str:
            """Count."""
            return "".join(f"{number:05}" for number in range(1000))

        host.tools.register(count)
        ptc.SpillPolicy.install(host, max_inline_bytes=1000, store=ptc.LocalSpillStore(tmp_path / "spilled"))
        one, two = host.agent("one"), host.agent("two")
        shown = (await one.execute([ptc.ToolCall(name="count")])).results[0].result.text
        yield one, two, shown.split("locator ")[1].split(";")[0]


async def read(agent: ptc.Agent, **arguments: Any) -> Any:
    return (await agent.execute([ptc.ToolCall(name="read_spilled", arguments=arguments)])).results[0].result


async def test_a_model_reads_on_with_what_the_notice_says(readers: Any) -> None:
    one, _two, locator = readers
    part = await read(one, locator=locator, offset=10, limit=15)
    assert part.value == {
        "text": "000020000300004", "offset": 10, "total_bytes": 5000, "left_bytes": 4975, "next_offset": 25,
    }  # fmt: skip
    assert part.text == "000020000300004\n\n(bytes 10 to 25 of 5000; 4975 left; go on with offset=25)"
    end = await read(one, locator=locator, offset=4990)
    assert end.value == {"text": "0099800999", "offset": 4990, "total_bytes": 5000, "left_bytes": 0}
    assert end.text == "0099800999\n\n(bytes 4990 to 5000 of 5000; 0 left)"


async def test_whatever_limit_is_asked_for_the_result_is_within_the_cap(readers: Any) -> None:
    one, _two, locator = readers
    for limit in ({}, {"limit": 5000}, {"limit": 10**30}):
        part = await read(one, locator=locator, **limit)
        assert 800 < len(part.text.encode()) <= 1000
        assert "omitted" not in part.text


async def test_a_model_reads_nothing_of_others_and_nothing_of_the_host(readers: Any, tmp_path: Path) -> None:
    one, two, locator = readers
    for agent, asked in ((two, locator), (one, f"{locator}/../../x"), (one, "/etc/passwd"), (one, "")):
        refused = await read(agent, locator=asked)
        assert refused.error.info.code == "UNKNOWN_LOCATOR"
        assert refused.text == "Error: unknown locator: give one exactly as the notice of a shortened result has it"
    for bad in ({"offset": -1}, {"limit": 3}, {"limit": 0}, {"offset": "x"}):
        assert (await read(one, locator=locator, **bad)).error.info.code == "INVALID_ARGS"


async def test_a_text_that_cannot_be_read_tells_a_model_nothing_of_the_host(
    readers: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _two, locator = readers

    def refuse(*_args: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr("ptc.runtime.spill_files.os.open", refuse)
    refused = await read(one, locator=locator)
    assert refused.error.info.code == "SPILL_UNREADABLE"
    assert str(tmp_path) not in refused.text
    assert "Permission denied" in caplog.text


async def test_reading_spills_nothing_again_where_another_cap_is_smaller(readers: Any, tmp_path: Path) -> None:
    one, _two, locator = readers
    smaller = ptc.LocalSpillStore(tmp_path / "smaller")
    ptc.SpillPolicy.install(one, max_inline_bytes=600, store=smaller, read_tool=False)
    part = await read(one, locator=locator)
    assert len(part.text.encode()) > 800
    assert not smaller.root.exists()
