"""How large the SDK text is beside the native schemas, and how long it takes to write.

    python -m tests.bench.sdk_size [--markdown] [--rounds N] [--bytes]

The first table has a row for each catalogue of tests/corpus/catalogues and one for a generated catalogue: the tokens of
the tools as a provider is sent them (compact JSON of name, description and input schema), of the same with the output
schemas, of the SDK text, which tells the outputs as well, in each language, and of the index that stands for the Python
one beyond a budget, with the two calls that lead from it to the rest. Tokens are those of `o200k_base`, which
the extra `bench` brings; without it, or with `--bytes`, they are UTF-8 bytes. The second table is the time to write the
text of generated catalogues, in CPU milliseconds of this process, the best of N rounds: for the first time, and once
more, as a host does at every step, when the types of the tools are known from the time before.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ptc import sdk_gen
from ptc.registry import ToolRegistry
from ptc.registry.definition import ToolSchema
from ptc.runtime.discovery import Discovery, SdkBudget
from rich.console import Console
from rich.table import Table

SIZES = (500, 1_000, 2_000, 4_000)
GENERATED = 200


def load_catalogues() -> Any:
    path = Path(__file__).parent.parent / "sdk_gen" / "catalogues.py"
    spec = importlib.util.spec_from_file_location("catalogues", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def counter(in_bytes: bool) -> tuple[str, Callable[[str], int]]:
    """Returns the unit, and what counts a text in it."""
    if not in_bytes:
        try:
            import bpe_openai
        except ImportError:
            print("no tokenizer: pip install 'ptc-runtime[bench]' counts tokens; these are bytes")
        else:
            encoding = bpe_openai.get_encoding("o200k_base")
            return "tokens", lambda text: len(encoding.encode_ordinary(text))
    return "bytes", lambda text: len(text.encode("utf-8", "surrogatepass"))


def renderers() -> dict[str, Callable[[Sequence[ToolSchema]], Any]]:
    """What writes the SDK text, by language; those that there are."""
    found = {"Python": "render_python", "TypeScript": "render_typescript"}
    return {language: getattr(sdk_gen, name) for language, name in found.items() if hasattr(sdk_gen, name)}


def index_of(tools: Sequence[ToolSchema]) -> str:
    """Returns the text that a model is given when the Python one is beyond its budget, and this one is not."""
    calls = SdkBudget(ToolRegistry(), 1).calls(Discovery().free_names(()))
    return sdk_gen.Catalogue(tools).index("index", calls).text


def sizes(catalogues: Any, count: Callable[[str], int]) -> list[list[str]]:
    """Returns the rows of the first table; the last one sums up the real catalogues."""
    writers = renderers()
    named = [(name, catalogues.catalogue(name)) for name in catalogues.names()]
    rows: list[list[str]] = []
    totals = [0] * (4 + len(writers))
    for name, tools in [*named, (f"generated, {GENERATED} tools", catalogues.generated(GENERATED))]:
        native = count(catalogues.native(tools))
        full = count(catalogues.native(tools, output=True))
        texts = [*(count(write(tools).text) for write in writers.values()), count(index_of(tools))]
        if name in catalogues.names():
            totals = [sum(pair) for pair in zip(totals, (len(tools), native, full, *texts), strict=True)]
        rows.append(line(name, len(tools), native, full, texts))
    rows.append(line("all real ones", totals[0], totals[1], totals[2], totals[3:]))
    return rows


def line(name: str, tools: int, native: int, full: int, texts: list[int]) -> list[str]:
    return [name, f"{tools}", f"{native:,}", f"{full:,}", *(f"{text:,} ({text / full:.0%})" for text in texts)]


def times(catalogues: Any, rounds: int) -> list[list[str]]:
    """Returns the rows of the second table."""
    rows = []
    seeds = itertools.count(1)
    for size in SIZES:
        row = [f"{size:,}"]
        for write in renderers().values():
            first, again = [], []
            for _ in range(rounds):
                tools = catalogues.generated.__wrapped__(size, next(seeds))  # schemas that no text was written of yet
                first.append(taken(write, tools))
                again.append(taken(write, tools))
            row += [f"{min(each):.0f} ms ({min(each) / size * 1000:.0f} µs a tool)" for each in (first, again)]
        rows.append(row)
    return rows


def taken(write: Callable[[Sequence[ToolSchema]], object], tools: Sequence[ToolSchema]) -> float:
    """Returns the CPU milliseconds of one text; what the rounds before have left in memory is not looked through."""
    gc.collect()
    gc.freeze()
    try:
        started = time.process_time()
        write(tools)
        return (time.process_time() - started) * 1000
    finally:
        gc.unfreeze()


def show(heads: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> None:
    if markdown:
        print(f"| {' | '.join(heads)} |\n|{'---|' + '---:|' * (len(heads) - 1)}")
        print("\n".join(f"| {' | '.join(row)} |" for row in rows), end="\n\n")
        return
    table = Table(*heads)
    for row in rows:
        table.add_row(*row)
    Console(width=130).print(table)


def main(markdown: bool, rounds: int, in_bytes: bool) -> None:
    catalogues = load_catalogues()
    unit, count = counter(in_bytes)
    languages = list(renderers())
    heads = ["catalogue", "tools", f"native, {unit}", "with outputs", *(f"{name} SDK" for name in languages), "index"]
    show(heads, sizes(catalogues, count), markdown)
    show(
        ["tools", *(f"{name}, {when}" for name in languages for when in ("first", "again"))],
        times(catalogues, rounds),
        markdown,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print tables for a README")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes", action="store_true", help="count UTF-8 bytes instead of tokens")
    options = parser.parse_args()
    main(options.markdown, options.rounds, options.bytes)
