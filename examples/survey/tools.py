"""Tools that read one directory tree and nothing else: `glob`, `read_file` and `grep`.

    ptc run examples/survey/program.py --tools examples/survey/tools.py --set root=DIR

A model's program chooses the paths and patterns, so they are hostile until proven otherwise:

- Each path is walked from the root, one component at a time, each opened below the one before it and never through a
  symbolic link. The opening is the check, so nothing can be swapped in between. Links are refused wherever they lead.
- Only regular files are read. Nothing is opened in a way that could wait for a peer, as a FIFO does.
- Expressions run in a process of their own, with a deadline (see `line_search.py`).
- Whatever touches the disk runs in a worker thread, never on the event loop.

It needs a POSIX system, because it opens files relative to directory descriptors.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import anyio
import ptc
from anyio.to_thread import run_sync
from pydantic import Field
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["RefusedError", "tools"]

SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", ".tox", ".nox", "__pycache__", "node_modules", "build", "dist"})
SKIPPED_IF_THEY_HOLD = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})  # virtual environments, and caches that say so
MAX_ENTRIES = 500_000  # of one walk: a root such as "/" ends with an error instead of keeping a thread for minutes
MAX_READ = 16 * 1024 * 1024
SNIFF_BYTES = 8192  # a NUL in the first bytes makes a file binary, as git has it
SEARCH_SECONDS = 30.0  # what one grep may spend
SEARCH_GRACE_SECONDS = 5.0  # what its process has to answer after that, before it is killed
SEARCH_FILE_BYTES = 4 * 1024 * 1024
SEARCH_BATCH_BYTES = 8 * 1024 * 1024
SEARCH_LINE_CHARS = 2000

OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY

Parts: TypeAlias = tuple[str, ...]


class RefusedError(Exception):
    """A path or pattern that these tools refuse, or a file that they cannot give; the message names it and says why."""


class File(TypedDict, closed=True):
    """One file of the tree."""

    path: Annotated[str, Field(description="relative to the root, with forward slashes")]
    size: Annotated[int, Field(description="in bytes")]
    binary: Annotated[bool, Field(description="whether it holds something else than text")]


class Text(TypedDict, closed=True):
    """The text of one file."""

    path: str
    text: str
    lines: Annotated[int, Field(description="how many lines `text` has")]
    truncated: Annotated[bool, Field(description="whether the file is longer than `max_bytes`")]


class Match(TypedDict, closed=True):
    """One line that matches."""

    path: str
    line_number: Annotated[int, Field(description="counted from 1")]
    line: Annotated[str, Field(description=f"the line, cut to {SEARCH_LINE_CHARS} characters")]


FilePath = Annotated[str, Field(max_length=4096, description="relative to the root, for example src/app.py")]
Glob = Annotated[
    str,
    Field(
        max_length=1000,
        description="* and ? stay inside one name, **/ crosses folders: *.md is the root alone, src/**/*.py is a tree",
    ),
]
Expression = Annotated[
    str,
    Field(min_length=1, max_length=1000, description="regular expression in Python's syntax, for single lines"),
]
FileLimit = Annotated[int, Field(ge=1, le=100_000, description="give at most so many files")]
MatchLimit = Annotated[int, Field(ge=1, le=10_000, description="give at most so many lines")]
ByteLimit = Annotated[int, Field(ge=1, le=MAX_READ, description="read at most so many bytes")]


def tools(root: str = ".") -> Sequence[ptc.ToolDefinition]:
    """The three tools over one tree.

    Args:
        root: the directory that they can read; where `ptc` runs when omitted.

    Raises:
        RefusedError: if `root` is not a directory.
    """
    tree = Tree(os.path.realpath(root))
    if not os.path.isdir(tree.root):
        raise RefusedError(f"root {root!r} is not a directory; give one with --set root=DIR")

    @ptc.tool(concurrency_safe=True)
    async def glob(pattern: Glob = "**/*", limit: FileLimit = 20_000) -> list[File]:
        """List the files whose paths match a pattern, sorted by path.

        Left out: version control, caches, virtual environments, node_modules, symbolic links, and folders that cannot
        be opened. When as many files come as the limit allows, there may be more.
        """
        return await run_sync(tree.glob, pattern, limit)

    @ptc.tool(concurrency_safe=True)
    async def read_file(path: FilePath, max_bytes: ByteLimit = 1_000_000) -> Text:
        """Read one text file. A file that is binary, not UTF-8, not there or not readable is an error."""
        return await run_sync(tree.read, path, max_bytes)

    @ptc.tool(concurrency_safe=True)
    async def grep(
        pattern: Expression, glob: Glob = "**/*", limit: MatchLimit = 1000, ignore_case: bool = False
    ) -> list[Match]:
        """Find the lines that match a regular expression, sorted by path and line, in the text files that match `glob`.

        When as many lines come as the limit allows, there may be more. A pattern that takes too long is an error.
        """
        return await search(tree, pattern, glob, limit, ignore_case)

    return (glob, read_file, grep)


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory that cannot be left. Its methods block, so they run in worker threads.

    Attributes:
        root: the absolute path of the directory, without links.
    """

    root: str

    def glob(self, pattern: str, limit: int) -> list[File]:
        """The first `limit` files that match, sorted by path."""
        files: list[File] = []
        for parts, size in self.walk(pattern)[:limit]:
            try:
                with self.opened(parts) as descriptor:
                    binary = b"\0" in os.read(descriptor, SNIFF_BYTES)
            except (RefusedError, OSError):
                binary = False  # not readable is another thing than binary: whoever reads the file gets the reason
            files.append({"path": shown(parts), "size": size, "binary": binary})
        return files

    def read(self, path: str, max_bytes: int) -> Text:
        """The text of the file at `path`, up to `max_bytes`."""
        with self.opened(parts_of(path)) as descriptor:
            data = read_up_to(descriptor, max_bytes + 1, path)
        truncated = len(data) > max_bytes
        data = data[:max_bytes]
        if b"\0" in data:
            raise RefusedError(f"{path!r} is binary: there is a NUL at byte {data.index(0)}")
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            cut_by_us = truncated and error.reason == "unexpected end of data"
            if not cut_by_us:
                raise RefusedError(f"{path!r} is not UTF-8: {error.reason} at byte {error.start}") from None
            text = data[: error.start].decode()
        text = text.removeprefix("\ufeff")
        lines = text.count("\n") + (text != "" and not text.endswith("\n"))
        return {"path": path, "text": text, "lines": lines, "truncated": truncated}

    def texts(self, pattern: str) -> Iterator[list[tuple[str, str]]]:
        """Path and text of each text file that matches, in batches that a process takes at once."""
        batch: list[tuple[str, str]] = []
        pending = 0
        for parts, _size in self.walk(pattern):
            path = shown(parts)
            try:
                with self.opened(parts) as descriptor:
                    data = read_up_to(descriptor, SEARCH_FILE_BYTES, path)
            except RefusedError:
                continue  # the search is over what can be read, as the walk is
            if b"\0" in data[:SNIFF_BYTES]:
                continue
            batch.append((path, data.decode(errors="replace")))
            pending += len(data)
            if pending >= SEARCH_BATCH_BYTES:
                yield batch
                batch, pending = [], 0
        if batch:
            yield batch

    def walk(self, pattern: str) -> list[tuple[Parts, int]]:
        """Components and size in bytes of each regular file that matches, sorted by path."""
        wanted = pattern_parts(pattern)
        found: list[tuple[Parts, int]] = []
        pending: list[tuple[Parts, frozenset[int]]] = [((), match_start(wanted))]
        seen = 0
        while pending:
            folder, states = pending.pop()
            for name, status in self.entries(folder):
                seen += 1
                if seen > MAX_ENTRIES:
                    raise RefusedError(f"more than {MAX_ENTRIES} entries to look at; give a narrower pattern or root")
                after = match_step(states, name, wanted)
                if stat.S_ISREG(status.st_mode) and len(wanted) in after:
                    found.append(((*folder, name), status.st_size))
                elif stat.S_ISDIR(status.st_mode) and after - {len(wanted)} and name not in SKIPPED_FOLDERS:
                    pending.append(((*folder, name), after))
        return sorted(found, key=lambda file: shown(file[0]))

    def entries(self, folder: Parts) -> list[tuple[str, os.stat_result]]:
        """Names in a folder and what they are; nothing for a folder that is left out or cannot be opened."""
        try:
            with self.opened(folder, flags=OPEN_FOLDER) as descriptor:
                names = os.listdir(descriptor)
                if folder and not SKIPPED_IF_THEY_HOLD.isdisjoint(names):
                    return []
                return [(name, status) for name in names if (status := status_of(name, descriptor)) is not None]
        except RefusedError:
            if not folder:
                raise
            return []

    @contextmanager
    def opened(self, parts: Parts, flags: int = OPEN_FILE) -> Iterator[int]:
        """Opens what lies at `parts` below the root, and gives its descriptor.

        Raises:
            RefusedError: if it is not there, not to be opened, no regular file, or behind a link.
        """
        try:
            descriptor = os.open(self.root, OPEN_FOLDER)
        except OSError as error:
            raise RefusedError(f"cannot open the root: {error.strerror or error}") from None
        try:
            for depth, name in enumerate(parts, start=1):
                try:
                    below = os.open(name, flags if depth == len(parts) else OPEN_FOLDER, dir_fd=descriptor)
                except OSError as error:
                    raise RefusedError(why_not(parts, depth, descriptor, error)) from None
                os.close(descriptor)
                descriptor = below
            if flags == OPEN_FILE and not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise RefusedError(f"{shown(parts)!r} is not a regular file")
            yield descriptor
        finally:
            os.close(descriptor)


async def search(tree: Tree, pattern: str, glob: str, limit: int, ignore_case: bool) -> list[Match]:
    """Runs the expression over the files that match `glob`, one process for each batch of them."""
    matches: list[Match] = []
    deadline = anyio.current_time() + SEARCH_SECONDS
    batches = tree.texts(glob)
    while len(matches) < limit and (batch := await run_sync(next, batches, None)) is not None:
        seconds = deadline - anyio.current_time()
        if seconds <= 0:
            raise RefusedError(f"the search ran out of time before {batch[0][0]!r}; give a narrower glob")
        request = {
            "pattern": pattern,
            "ignore_case": ignore_case,
            "limit": limit - len(matches),
            "seconds": seconds,
            "line_chars": SEARCH_LINE_CHARS,
            "files": batch,
        }
        answer = json.loads(await run_line_search(await run_sync(json.dumps, request), seconds))
        if "error" in answer:
            raise RefusedError(f"pattern {pattern!r}: {answer['error']}")
        matches += [Match(path=path, line_number=number, line=line) for path, number, line in answer["matches"]]
    return matches


async def run_line_search(request: str, seconds: float) -> bytes:
    """Runs `line_search.py` once. Leaving early, for whatever reason, kills the process."""
    command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("line_search.py"))]
    try:
        with anyio.fail_after(seconds + SEARCH_GRACE_SECONDS):
            done = await anyio.run_process(command, input=request.encode(), check=False)
    except TimeoutError:
        raise RefusedError("the search did not answer and was stopped; use a simpler pattern or fewer files") from None
    if done.returncode != 0:
        last_words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise RefusedError(f"the search failed (exit code {done.returncode}): {last_words}")
    return done.stdout


def parts_of(path: str) -> Parts:
    """The components of a path that a program gave.

    Raises:
        RefusedError: for whatever could not be a path below the root.
    """
    if "\0" in path:
        raise RefusedError(f"{path!r} holds a NUL, which no path has")
    if path.startswith("/"):
        raise RefusedError(f"{path!r} is absolute; give a path relative to the root")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise RefusedError(f"{path!r} goes up with '..'; give a path below the root")
    if not parts:
        raise RefusedError(f"{path!r} names no file")
    return parts


def pattern_parts(pattern: str) -> Parts:
    """The components of a glob pattern; refuses what would silently match nothing."""
    if re.search(r"\{[^{}]*,[^{}]*\}", pattern):
        raise RefusedError(f"{pattern!r}: alternatives in braces are not supported; call once for each of them")
    return parts_of(pattern)


def match_start(wanted: Parts) -> frozenset[int]:
    """Where the match of a pattern stands before the first name: how many of its components may be used up."""
    return passing_double_stars({0}, wanted)


def match_step(states: frozenset[int], name: str, wanted: Parts) -> frozenset[int]:
    """Where it may stand after one more name; the walk goes no deeper unless some of the pattern is left."""
    after: set[int] = set()
    for state in states:
        if state == len(wanted):
            continue
        if wanted[state] == "**":
            after.add(state)
        elif fnmatch.fnmatchcase(name, wanted[state]):
            after.add(state + 1)
    return passing_double_stars(after, wanted)


def passing_double_stars(states: set[int], wanted: Parts) -> frozenset[int]:
    """Adds the states that are reached because `**` also stands for no folder at all."""
    reached = set(states)
    for state, part in enumerate(wanted):
        if part == "**" and state in reached:
            reached.add(state + 1)
    return frozenset(reached)


def shown(parts: Parts) -> str:
    """A path as programs see it. A name that is not UTF-8 is shown with its bytes escaped, and cannot be opened."""
    return os.fsencode("/".join(parts)).decode(errors="backslashreplace")


def status_of(name: str, folder: int) -> os.stat_result | None:
    """What a name in an open folder is, without following it; `None` when it has gone in the meantime."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None


def why_not(parts: Parts, depth: int, folder: int, error: OSError) -> str:
    """Why the first `depth` components could not be opened; `folder` is the descriptor of the last one's folder."""
    path, at = shown(parts), shown(parts[:depth])
    status = status_of(parts[depth - 1], folder)
    if status is not None and stat.S_ISLNK(status.st_mode):
        return f"cannot open {path!r}: {at!r} is a symbolic link, and links are not followed"
    return f"cannot open {path!r}: {error.strerror or error}" + (f" ({at!r})" if at != path else "")


def read_up_to(descriptor: int, size: int, path: str) -> bytes:
    """Reads at most `size` bytes."""
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(size)
    except OSError as error:
        raise RefusedError(f"cannot read {path!r}: {error.strerror or error}") from None
