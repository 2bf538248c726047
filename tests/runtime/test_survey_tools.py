"""The survey example: its tools cannot leave their tree or be kept waiting, and its program counts right.

The program runs natively here, against the bodies of the tools: it is our own text, and needs no sandbox.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

EXAMPLE = Path(__file__).parents[2] / "examples" / "survey"
SECRET = "the secret outside"


@pytest.fixture
def example() -> Iterator[ModuleType]:
    """The tools file, loaded afresh from its path as the command line loads one."""
    spec = importlib.util.spec_from_file_location("survey_tools_under_test", EXAMPLE / "tools.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[spec.name]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty tree, with a file beside it that nobody may read."""
    folder = tmp_path / "root"
    folder.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    return folder


class Calls:
    """Calls the tools of one tree by name: `await calls.glob(pattern="*")`."""

    def __init__(self, example: ModuleType, root: Path) -> None:
        self.refused: type[Exception] = example.RefusedError
        self._definitions = {definition.name: definition for definition in example.tools(root=str(root))}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        definition = self._definitions[name]

        async def call(**arguments: object) -> Any:
            run: Any = None  # none of these bodies asks for its run context
            return await definition.execute(arguments, run)

        return call

    async def paths(self, pattern: str = "**/*", **more: object) -> list[str]:
        return [file["path"] for file in await self.glob(pattern=pattern, **more)]


@pytest.fixture
def calls(example: ModuleType, root: Path) -> Calls:
    return Calls(example, root)


def write(root: Path, files: dict[str, str | bytes]) -> None:
    """Writes files by their paths below the root."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


# The definitions


def test_the_tools_file_offers_three_tools_that_may_overlap(example: ModuleType, root: Path) -> None:
    arguments = {"glob": {}, "read_file": {"path": "a"}, "grep": {"pattern": "a"}}
    definitions = example.tools(root=str(root))
    assert [definition.name for definition in definitions] == list(arguments)
    assert [definition.is_concurrency_safe(arguments[definition.name]) for definition in definitions] == [True] * 3


def test_the_root_is_the_current_directory_by_default(
    example: ModuleType, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"a.py": "x = 1\n"})
    monkeypatch.chdir(root)
    (glob, *_rest) = example.tools()

    async def paths() -> list[str]:
        return [file["path"] for file in await glob.execute({}, None)]

    assert anyio.run(paths) == ["a.py"]


def test_a_root_that_is_no_directory_is_refused_by_name(example: ModuleType, root: Path) -> None:
    with pytest.raises(example.RefusedError, match=r"missing' is not a directory.*--set root=DIR"):
        example.tools(root=str(root / "missing"))


# What each tool gives


@pytest.mark.anyio
async def test_glob_lists_sorted_relative_paths_with_sizes(calls: Calls, root: Path) -> None:
    write(root, {"b.py": "12345", "a/z.txt": "1", "a/y/x.py": "", "logo.png": b"\x89PNG\0\1"})
    assert await calls.glob() == [
        {"path": "a/y/x.py", "size": 0, "binary": False},
        {"path": "a/z.txt", "size": 1, "binary": False},
        {"path": "b.py", "size": 5, "binary": False},
        {"path": "logo.png", "size": 6, "binary": True},
    ]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*", ["top.py"]),
        ("**", ["src/a.py", "src/deep/b.py", "src/deep/c.md", "top.py"]),
        ("**/*.py", ["src/a.py", "src/deep/b.py", "top.py"]),
        ("src/*.py", ["src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/deep/b.py"]),
        ("./src//deep/?.[!p]*", ["src/deep/c.md"]),
        ("**/deep/**", ["src/deep/b.py", "src/deep/c.md"]),
        ("**/**/b.py", ["src/deep/b.py"]),
        ("src", []),
        ("*.PY", []),
    ],
)
async def test_glob_patterns(calls: Calls, root: Path, pattern: str, paths: list[str]) -> None:
    write(root, {"top.py": "", "src/a.py": "", "src/deep/b.py": "", "src/deep/c.md": ""})
    assert await calls.paths(pattern) == paths


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("pattern", "why"),
    [("*.{py,md}", "braces"), ("../*", "goes up"), ("/etc/*", "absolute"), ("a\0*", "NUL"), ("", "names no file")],
)
async def test_glob_refuses_patterns_that_cannot_match(calls: Calls, pattern: str, why: str) -> None:
    with pytest.raises(calls.refused, match=why):
        await calls.glob(pattern=pattern)
    with pytest.raises(calls.refused, match=why):
        await calls.grep(pattern="x", glob=pattern)


@pytest.mark.anyio
async def test_glob_leaves_out_caches_environments_and_version_control(calls: Calls, root: Path) -> None:
    write(
        root,
        {
            "kept.py": "",
            ".github/ci.yml": "",
            ".git/config": "",
            "pkg/__pycache__/kept.py": "",
            "web/node_modules/x/index.js": "",
            "env/pyvenv.cfg": "",
            "env/lib/site.py": "",
            "cache/CACHEDIR.TAG": "",
            "cache/old.py": "",
        },
    )
    assert await calls.paths() == [".github/ci.yml", "kept.py"]
    assert await calls.paths("env/**") == []


@pytest.mark.anyio
async def test_read_file_gives_text_and_counts_lines(calls: Calls, root: Path) -> None:
    write(root, {"full": "één\ntwo\n", "open": "one\ntwo", "empty": "", "bom": b"\xef\xbb\xbfx = 1\n"})
    assert await calls.read_file(path="full") == {"path": "full", "text": "één\ntwo\n", "lines": 2, "truncated": False}
    assert (await calls.read_file(path="open"))["lines"] == 2
    assert (await calls.read_file(path="empty"))["lines"] == 0
    assert (await calls.read_file(path="bom"))["text"] == "x = 1\n"


@pytest.mark.anyio
@pytest.mark.parametrize(("max_bytes", "text", "truncated"), [(4, "aé€"[:2], True), (6, "aé€", False), (1, "a", True)])
async def test_read_file_cuts_at_a_whole_character(
    calls: Calls, root: Path, max_bytes: int, text: str, truncated: bool
) -> None:
    write(root, {"f": "aé€"})
    result = await calls.read_file(path="f", max_bytes=max_bytes)
    assert (result["text"], result["truncated"]) == (text, truncated)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"caf\xe9 au lait", r"'src/f' is not UTF-8: .* at byte 3"),
        (b"ends in \xe2\x82", r"'src/f' is not UTF-8: unexpected end of data at byte 8"),
        (b"text\0more", r"'src/f' is binary: there is a NUL at byte 4"),
    ],
)
async def test_read_file_says_what_and_where_when_it_is_not_text(
    calls: Calls, root: Path, content: bytes, why: str
) -> None:
    write(root, {"src/f": content})
    with pytest.raises(calls.refused, match=why):
        await calls.read_file(path="src/f")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("src", r"'src' is not a regular file"),
        ("src/nothing.py", r"cannot open 'src/nothing\.py': No such file or directory$"),
        ("gone/a/b.py", r"cannot open 'gone/a/b\.py': No such file or directory \('gone'\)"),
        ("src/f/below", r"cannot open 'src/f/below': Not a directory \('src/f'\)"),
        ("x" * 300, r"File name too long"),
    ],
)
async def test_read_file_names_what_it_cannot_open(calls: Calls, root: Path, path: str, why: str) -> None:
    write(root, {"src/f": ""})
    with pytest.raises(calls.refused, match=why):
        await calls.read_file(path=path)


@pytest.mark.anyio
async def test_grep_gives_path_number_and_line(calls: Calls, root: Path) -> None:
    write(
        root,
        {
            "b.py": "# TODO: one\r\nx\n# todo\n",
            "a.md": b"caf\xe9 TODO\n",
            "data.bin": b"TODO\0",
            "node_modules/x.js": "TODO",
        },
    )
    assert await calls.grep(pattern=r"\bTODO\b") == [
        {"path": "a.md", "line_number": 1, "line": "caf\ufffd TODO"},
        {"path": "b.py", "line_number": 1, "line": "# TODO: one"},
    ]
    ignoring_case = await calls.grep(pattern="todo$", glob="*.py", ignore_case=True)
    assert ignoring_case == [{"path": "b.py", "line_number": 3, "line": "# todo"}]


@pytest.mark.anyio
async def test_the_end_of_a_file_is_no_line_of_its_own(calls: Calls, root: Path) -> None:
    write(root, {"f": "one\n\ntwo\n"})
    assert [match["line_number"] for match in await calls.grep(pattern="^$")] == [2]


@pytest.mark.anyio
async def test_limits(example: ModuleType, calls: Calls, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example, "SEARCH_BATCH_BYTES", 4)  # so that the limit also has to hold across processes
    write(root, {"a": "hit\nhit\n", "b": "hit\nhit\n", "c": "hit\n"})
    assert await calls.paths(limit=2) == ["a", "b"]
    found = await calls.grep(pattern="hit", limit=3)
    assert [(match["path"], match["line_number"]) for match in found] == [("a", 1), ("a", 2), ("b", 1)]
    assert len(await calls.grep(pattern="hit")) == 5


@pytest.mark.anyio
async def test_long_lines_are_cut_before_the_search(example: ModuleType, calls: Calls, root: Path) -> None:
    write(root, {"f": "a" * example.SEARCH_LINE_CHARS + "needle"})
    assert await calls.grep(pattern="needle") == []
    (match,) = await calls.grep(pattern="^a")
    assert match["line"] == "a" * example.SEARCH_LINE_CHARS


@pytest.mark.anyio
async def test_a_walk_that_is_too_large_is_an_error(
    example: ModuleType, calls: Calls, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example, "MAX_ENTRIES", 4)
    write(root, {"a": "", "b": "", "sub/c": "", "sub/d": ""})
    with pytest.raises(calls.refused, match="more than 4 entries"):
        await calls.glob()
    assert await calls.paths("*") == ["a", "b"]  # a narrower pattern does not go into the folder


@pytest.mark.anyio
@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(((a*)*)*)*b"])
async def test_a_catastrophic_expression_ends_with_an_error_and_blocks_nobody(
    example: ModuleType, calls: Calls, root: Path, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example, "SEARCH_SECONDS", 2.0)
    write(root, {"ok": "fine\n", "slow": "fine\n" + "a" * 60 + "!\n"})
    order: list[str] = []

    async def others_run() -> None:
        for _ in range(3):
            await anyio.sleep(0.001)
        order.append("others")

    async with anyio.create_task_group() as group:
        group.start_soon(others_run)
        with pytest.raises(calls.refused, match=r"ran out of time at line 2 of 'slow'"):
            await calls.grep(pattern=pattern)
        order.append("grep")
    assert order == ["others", "grep"]


@pytest.mark.anyio
async def test_a_search_process_that_does_not_answer_is_killed(
    example: ModuleType, calls: Calls, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = use_stuck_search(example, tmp_path, monkeypatch)
    monkeypatch.setattr(example, "SEARCH_SECONDS", 1.0)
    monkeypatch.setattr(example, "SEARCH_GRACE_SECONDS", 1.0)
    write(root, {"f": "x"})
    with pytest.raises(calls.refused, match="did not answer and was stopped"):
        await calls.grep(pattern="x")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


@pytest.mark.anyio
async def test_a_cancelled_search_leaves_no_process(
    example: ModuleType, calls: Calls, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = use_stuck_search(example, tmp_path, monkeypatch)
    write(root, {"f": "x"})

    async def search() -> None:
        await calls.grep(pattern="x")

    async with anyio.create_task_group() as group:
        group.start_soon(search)
        while not pid_file.exists():  # noqa: ASYNC110 (another process makes it, so there is no event to wait for)
            await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def use_stuck_search(example: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a process that never answers in the place of the search; gives the file where it leaves its process id."""
    started = folder / "started"
    (folder / "line_search.py").write_text(
        f"import os, time\n"
        f"with open({str(started)!r} + '.new', 'w') as file:\n"
        f"    file.write(str(os.getpid()))\n"
        f"os.rename(file.name, {str(started)!r})\n"
        f"time.sleep(3600)\n"
    )
    monkeypatch.setattr(example, "__file__", str(folder / "tools.py"))
    return started


@pytest.mark.anyio
@pytest.mark.parametrize("pattern", ["(", "a{4294967296}", "(?P<n>x)(?P<n>y)"])
async def test_a_wrong_expression_is_explained(calls: Calls, root: Path, pattern: str) -> None:
    write(root, {"f": "x"})
    with pytest.raises(calls.refused, match=r"pattern '.*': not a regular expression that Python can use: \w+"):
        await calls.grep(pattern=pattern)


@pytest.mark.anyio
async def test_a_search_process_that_breaks_is_an_error(
    example: ModuleType, calls: Calls, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "line_search.py").write_text("raise SystemExit('no can do')")
    monkeypatch.setattr(example, "__file__", str(tmp_path / "tools.py"))
    write(root, {"f": "x"})
    with pytest.raises(calls.refused, match=r"the search failed \(exit code 1\): no can do"):
        await calls.grep(pattern="x")


# Confinement


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../outside/secret.txt", "goes up with"),
        ("sub/../../outside/secret.txt", "goes up with"),
        ("sub/..", "goes up with"),
        ("{outside}/secret.txt", "is absolute"),
        ("//{outside}/secret.txt", "is absolute"),
        ("sub\0/../../outside/secret.txt", "holds a NUL"),
        ("a.txt\0.png", "holds a NUL"),
        ("", "names no file"),
        ("./.", "names no file"),
        ("file_link.txt", "'file_link.txt' is a symbolic link"),
        ("folder_link/secret.txt", "'folder_link' is a symbolic link"),
        ("sub/up/outside/secret.txt", "'sub/up' is a symbolic link"),
        ("dangling", "'dangling' is a symbolic link"),
        ("inner_link.txt", "'inner_link.txt' is a symbolic link"),
        ("loop/loop/a.txt", "'loop' is a symbolic link"),
    ],
)
async def test_no_path_leaves_the_root(calls: Calls, root: Path, path: str, why: str) -> None:
    plant_links(root)
    path = path.replace("{outside}", str(root.parent / "outside"))
    with pytest.raises(calls.refused, match=why) as refusal:
        await calls.read_file(path=path)
    assert repr(path) in str(refusal.value)
    assert SECRET not in str(refusal.value)


@pytest.mark.anyio
async def test_odd_names_are_names(calls: Calls, root: Path) -> None:
    names = ["..hidden", "a b", "~", "$HOME", "back\\..\\slash", "new\nline", "{x}", "[a].txt", "-rf", "été"]
    for name in names:
        (root / name).write_text(name)
    assert sorted(await calls.paths("**")) == sorted(names)
    for name in names:
        assert (await calls.read_file(path=name))["text"] == name


@pytest.mark.anyio
async def test_a_name_that_is_not_utf_8_is_shown_escaped_and_cannot_be_read(calls: Calls, root: Path) -> None:
    try:
        (root / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    except OSError:
        pytest.skip("this file system has no such names")
    assert await calls.paths() == ["caf\\xe9.txt"]
    with pytest.raises(calls.refused, match="No such file"):
        await calls.read_file(path="caf\\xe9.txt")
    assert await calls.grep(pattern="x") == [{"path": "caf\\xe9.txt", "line_number": 1, "line": "x"}]


@pytest.mark.anyio
async def test_listing_and_search_do_not_follow_links(calls: Calls, root: Path) -> None:
    plant_links(root)
    assert await calls.paths() == ["a.txt", "sub/b.txt"]
    assert await calls.paths("folder_link/*") == []
    assert await calls.grep(pattern="secret") == []
    assert [match["path"] for match in await calls.grep(pattern=".")] == ["a.txt", "sub/b.txt"]


@pytest.mark.anyio
async def test_the_root_itself_may_be_reached_through_a_link(example: ModuleType, root: Path) -> None:
    write(root, {"f": "x"})
    (root.parent / "way").symlink_to(root)
    assert await Calls(example, root.parent / "way").paths() == ["f"]


@pytest.mark.anyio
@pytest.mark.parametrize("victim", ["folder", "file"])
async def test_a_swap_at_the_moment_of_opening_does_not_get_out(
    calls: Calls, root: Path, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was looked at before, at the last moment the name becomes a link to the outside."""
    write(root, {"folder/secret.txt": "inside"})
    outside = root.parent / "outside"
    swapped = root / "folder" if victim == "folder" else root / "folder" / "secret.txt"
    target = outside if victim == "folder" else outside / "secret.txt"

    def swap() -> None:
        swapped.rename(root.parent / "away")
        swapped.symlink_to(target)

    swap_before_opening(swapped.name, swap, monkeypatch)
    with pytest.raises(calls.refused, match="is a symbolic link"):
        await calls.read_file(path="folder/secret.txt")
    assert swapped.is_symlink()


@pytest.mark.anyio
async def test_a_folder_that_is_swapped_once_open_keeps_being_the_folder(
    calls: Calls, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"folder/secret.txt": "inside"})

    def swap() -> None:
        (root / "folder").rename(root.parent / "away")
        (root / "folder").symlink_to(root.parent / "outside")

    swap_before_opening("secret.txt", swap, monkeypatch)
    assert (await calls.read_file(path="folder/secret.txt"))["text"] == "inside"
    assert (root / "folder" / "secret.txt").read_text() == SECRET


@pytest.mark.anyio
async def test_a_folder_that_is_swapped_during_a_walk_is_not_walked(
    calls: Calls, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"a.txt": "a", "folder/inner.txt": "inside"})

    def swap() -> None:
        (root / "folder").rename(root.parent / "away")
        (root / "folder").symlink_to(root.parent / "outside")

    swap_before_opening("folder", swap, monkeypatch)
    assert await calls.paths() == ["a.txt"]
    assert (root / "folder").is_symlink()


@pytest.mark.anyio
async def test_a_fifo_is_neither_listed_nor_waited_for(calls: Calls, root: Path) -> None:
    os.mkfifo(root / "fifo")
    write(root, {"a": "x"})
    with pytest.raises(calls.refused, match="'fifo' is not a regular file"):
        await calls.read_file(path="fifo")
    with pytest.raises(calls.refused, match=r"cannot open 'fifo/x'"):
        await calls.read_file(path="fifo/x")
    assert await calls.paths() == ["a"]
    assert [match["path"] for match in await calls.grep(pattern="x")] == ["a"]


@pytest.mark.anyio
async def test_no_descriptor_stays_open(calls: Calls, root: Path) -> None:
    plant_links(root)
    os.mkfifo(root / "fifo")
    open_before = len(os.listdir("/dev/fd"))
    for path in ("a.txt", "sub/b.txt", "fifo", "file_link.txt", "sub/up/x", "none", "sub/none/x"):
        try:
            await calls.read_file(path=path)
        except calls.refused:
            assert path not in ("a.txt", "sub/b.txt")
    await calls.glob()
    assert len(os.listdir("/dev/fd")) == open_before


def plant_links(root: Path) -> None:
    """Two real files, and every kind of link."""
    outside = root.parent / "outside"
    write(root, {"a.txt": "a", "sub/b.txt": "b"})
    (root / "file_link.txt").symlink_to(outside / "secret.txt")
    (root / "folder_link").symlink_to(outside)
    (root / "sub" / "up").symlink_to("../..")
    (root / "dangling").symlink_to(outside / "nothing")
    (root / "inner_link.txt").symlink_to("a.txt")
    (root / "loop").symlink_to(".")


def swap_before_opening(name: str, swap: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls `swap` once, right before the first `os.open` of something called `name`."""
    real_open = os.open
    pending = [swap]

    def racing_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if pending and Path(os.fsdecode(path)).name == name:
            pending.pop()()
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", racing_open)


# The program


class ToolCallError(Exception):
    """What the sandbox raises in a program when a call fails."""

    def __init__(self, tool: str, message: str) -> None:
        super().__init__(message)
        self.toolName = tool


class ProgramTools:
    """The `tools` of a program."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(**arguments: object) -> Any:
            try:
                return await getattr(self._calls, name)(**arguments)
            except self._calls.refused as error:
                raise ToolCallError(name, str(error)) from error

        return call


def run_program(calls: Calls) -> str:
    """Runs the program as the body of an async function. It uses asyncio, as programs in the sandbox do."""
    source = (EXAMPLE / "program.py").read_text(encoding="utf-8")
    module = ast.parse("async def main(): pass")
    (main,) = module.body
    assert isinstance(main, ast.AsyncFunctionDef)
    main.body = ast.parse(source, "program.py").body
    names: dict[str, Any] = {"tools": ProgramTools(calls), "ToolCallError": ToolCallError}
    exec(compile(module, "program.py", "exec"), names)  # our own program
    return anyio.run(names["main"], backend="asyncio")


def rows_of(report: str, first_cell: str) -> list[list[str]]:
    """The rows below the head of the table that starts with `first_cell`, split at runs of two spaces or more."""
    (table,) = [part for part in report.split("\n\n") if part.split()[0] == first_cell]
    return [[cell.strip() for cell in row.split("  ") if cell.strip()] for row in table.split("\n")[2:]]


def test_the_program_gives_the_right_numbers(calls: Calls, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        root,
        {
            "app/main.py": "# TODO: later\n\n\ndef short():\n    return 1\n\n\nclass A:\n    async def long(self):\n"
            + "        x = 1\n" * 9,
            "app/broken.py": "def broken(:\n    # FIXME and TODO\n",
            "app/latin.py": b"name = '\xe9'\n",
            "README.md": "# Title\n\nNo markers: TODOS, FIXMES.\n",
            "Makefile": "all:\n\ttrue\n",
            "logo.png": b"\x89PNG\0",
            ".git/HEAD": "TODO\n",
        },
    )
    for number in range(60):  # more than a batch
        write(root, {f"many/m{number}.py": "def f(): pass\n"})

    report = run_program(calls)

    assert capsys.readouterr().out == "looked at 66 files: 64 read, 1 unreadable\n"
    assert rows_of(report, "language") == [
        ["Python", "62", "80"],
        ["Markdown", "1", "3"],
        ["other", "1", "2"],
        ["total", "64", "85"],
    ]
    longest = rows_of(report, "lines")
    assert longest[:2] == [["10", "long", "app/main.py:9"], ["2", "short", "app/main.py:4"]]
    assert rows_of(report, "markers") == [["1", "app/broken.py"], ["1", "app/main.py"]]
    ((path, why),) = rows_of(report, "unreadable")
    assert path == "app/latin.py"
    assert "not UTF-8" in why
    assert report.endswith("1 binary, 1 unreadable, 1 not parsable, 2 markers")


def test_the_program_reports_an_empty_tree(calls: Calls) -> None:
    assert rows_of(run_program(calls), "language") == [["total", "0", "0"]]


def test_the_report_is_aligned(calls: Calls, root: Path) -> None:
    write(root, {"a.py": "x = 1\n" * 1000, "b.md": "x\n"})
    head, rule, *rows = run_program(calls).split("\n\n")[0].split("\n")
    assert [head, rule, *rows] == [
        "language  files  lines",
        "--------  -----  -----",
        "Python        1   1000",
        "Markdown      1      1",
        "total         2   1001",
    ]


def test_the_program_surveys_this_repository(example: ModuleType) -> None:
    report = run_program(Calls(example, EXAMPLE.parents[1]))
    languages = {name: (int(files), int(lines)) for name, files, lines in rows_of(report, "language")}
    assert languages["Python"][0] > 10
    assert languages["Python"][1] > 1000
    assert len(rows_of(report, "lines")) == 5


def test_the_program_survives_a_failing_search_and_says_so(
    example: ModuleType, calls: Calls, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example, "SEARCH_SECONDS", 0.0)
    write(root, {"a.py": "x = 1  # TODO\n"})
    report = run_program(calls)
    assert rows_of(report, "language")[-1] == ["total", "1", "1"]
    assert "markers not counted: the search ran out of time before 'a.py'" in report
