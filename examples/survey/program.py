# Surveys a code base. It is the body of an async function, as a model writes it for `run_code`:
# `tools` and `ToolCallError` are there, `await` and `return` work at the top.
import ast
import asyncio
import warnings
from collections import Counter

KNOWN = "py=Python pyi=Python js=JavaScript ts=TypeScript tsx=TypeScript rs=Rust go=Go c=C h=C cpp=C++ java=Java "
KNOWN += "sh=Shell sql=SQL html=HTML css=CSS md=Markdown rst=reStructuredText toml=TOML json=JSON yaml=YAML yml=YAML"
LANGUAGES = dict(pair.split("=") for pair in KNOWN.split())
BATCH = 20  # so many texts are held at once
MAX_FILES = 20_000
MAX_BYTES = 5_000_000


def language(path):
    name = path.rpartition("/")[2]
    return LANGUAGES.get(name.rpartition(".")[2].lower(), "other") if "." in name else "other"


async def read(path):
    try:
        return await tools.read_file(path=path, max_bytes=MAX_BYTES)
    except ToolCallError as error:
        unreadable.append((path, str(error)))
        return None


def functions_of(file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the code under survey deserves to hear is not our output
        tree = ast.parse(file["text"])
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.end_lineno - node.lineno + 1, node.name, f"{file['path']}:{node.lineno}"


def table(head, rows):
    cells = [head, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    cells.insert(1, ["-" * width for width in widths])
    numeric = [isinstance(cell, int) for cell in rows[0]]
    lines = []
    for row in cells:
        aligned = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric, strict=True)]
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)


async def find_markers():
    try:
        return await tools.grep(pattern=r"\b(TODO|FIXME)\b", limit=10_000)
    except ToolCallError as error:
        notes.append(f"markers not counted: {error}")
        return []


files, lines, functions, unreadable, unparsable, notes = Counter(), Counter(), [], [], [], []
listing, markers = await asyncio.gather(tools.glob(pattern="**/*", limit=MAX_FILES), find_markers())
texts = [entry["path"] for entry in listing if not entry["binary"]]

for start in range(0, len(texts), BATCH):
    for file in await asyncio.gather(*(read(path) for path in texts[start : start + BATCH])):
        if file is None:
            continue
        kind = language(file["path"])
        files[kind] += 1
        lines[kind] += file["lines"]
        if file["truncated"]:
            notes.append(f"only the first {MAX_BYTES} bytes counted: {file['path']}")
        if kind == "Python":
            try:
                functions.extend(functions_of(file))
            except (SyntaxError, ValueError, RecursionError):
                unparsable.append(file["path"])

print(f"looked at {len(listing)} files: {files.total()} read, {len(unreadable)} unreadable")

languages = sorted(((kind, files[kind], lines[kind]) for kind in files), key=lambda row: (-row[2], row[0]))
report = [table(["language", "files", "lines"], [*languages, ("total", files.total(), lines.total())])]
if functions:
    longest = sorted(functions, key=lambda row: (-row[0], row[2]))[:5]
    report.append(table(["lines", "longest functions", "where"], longest))
if markers:
    marked = Counter(match["path"] for match in markers).most_common(5)
    report.append(table(["markers", "TODO and FIXME in"], [(count, path) for path, count in marked]))
if unreadable:
    report.append(table(["unreadable", "why"], unreadable[:5]))
if len(listing) == MAX_FILES:
    notes.append(f"there may be more than the first {MAX_FILES} files")
binary = len(listing) - len(texts)
notes.append(f"{binary} binary, {len(unreadable)} unreadable, {len(unparsable)} not parsable, {len(markers)} markers")
return "\n\n".join([*report, "\n".join(notes)])
