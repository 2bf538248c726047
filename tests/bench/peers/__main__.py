"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import os
import platform
import sys

import anyio

from . import __doc__ as about
from .measures import QUICK, Extent, memory
from .others import Monty, Native, Process, Smolagents
from .rows import Bench
from .subjects import Restricted, Subject, UnavailableError, Wasm

SUBJECTS: dict[str, type[Subject]] = {
    one.name: one for one in (Wasm, Restricted, Monty, Smolagents, Process, Native)
}  # fmt: skip


async def held(subject: type[Subject], extent: Extent) -> str:
    async with subject(ready=False, at_once=extent.alive + 1) as one:
        try:
            return f"{await memory(one, extent) / 2**20:.4f}"
        except PermissionError:
            return "unreadable"


def chosen(names: list[str]) -> list[type[Subject]]:
    """Returns those of the subjects that can be measured, and says which cannot."""
    subjects, versions = [], []
    for one in (SUBJECTS[name] for name in names):
        try:
            version = one.version()
        except UnavailableError as missing:
            print(f"left out: {one.title}; {missing}")
            continue
        subjects.append(one)
        versions += [version] if version else []
    python = f"Python {platform.python_version()}, {os.cpu_count()} processors"
    print(f"{'; '.join([python, *versions])}\n")
    return subjects


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m tests.bench.peers", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", action="store_true", help="print the table for a README")
    parser.add_argument("--quick", action="store_true", help="see that it works; the figures mean nothing")
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=list(SUBJECTS), metavar="NAME")
    parser.add_argument("--memory", choices=SUBJECTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(anyio.run(held, SUBJECTS[options.memory], QUICK if options.quick else Extent(), backend="asyncio"))
        return
    table = anyio.run(Bench(chosen(options.subjects), options.quick).run, backend="asyncio")
    print(table.markdown() if options.markdown else table.plain())
    if table.notes:
        print("\n" + "\n".join(table.notes))


if __name__ == "__main__":
    sys.exit(main())
