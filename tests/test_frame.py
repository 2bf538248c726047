"""The frame of the house: floors, package list, one name for each module, the public face."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import ptc
import pytest

ROOT = Path(__file__).resolve().parent.parent
WINGS = ("registry", "sdk_gen", "sandbox", "runtime")
FLOORS: dict[str, frozenset[str]] = {
    "registry": frozenset(),
    "sandbox": frozenset(),
    "sdk_gen": frozenset({"registry"}),
    "runtime": frozenset({"sdk_gen", "sandbox", "registry"}),
}
GUEST_ONLY_IN_COMPONENT = {"wit_world", "ptc_guest"}


def modules(wing: str) -> Iterator[Path]:
    yield from sorted((ROOT / wing).rglob("*.py"))


def imported(path: Path) -> Iterator[tuple[int, str, int]]:
    """Yields (level, module, line) of each import of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            if node.module is None:
                for alias in node.names:
                    yield node.level, alias.name, node.lineno
            else:
                yield node.level, node.module, node.lineno


def resolved(path: Path, level: int, module: str) -> list[str]:
    """Returns the parts below the root that a relative import names."""
    package = list(path.relative_to(ROOT).parent.parts)
    base = package[: len(package) - (level - 1)] if level > 1 else package
    return [*base, *module.split(".")]


def broken_floors(wing: str) -> list[str]:
    broken = []
    for path in modules(wing):
        for level, module, line in imported(path):
            where = f"{path.relative_to(ROOT)}:{line}"
            if level == 0:
                if module.split(".")[0] == "ptc":
                    broken.append(f"{where} imports {module} by its absolute name")
                continue
            target = resolved(path, level, module)[0]
            if target != wing and target not in FLOORS[wing]:
                broken.append(f"{where} imports {target}, which is not below {wing}")
    return broken


@pytest.mark.parametrize("wing", WINGS)
def test_a_wing_imports_only_wings_below_it(wing: str) -> None:
    assert broken_floors(wing) == []


def test_the_guest_imports_the_standard_library_only() -> None:
    broken = [
        f"{path.name}:{line} {module}"
        for path in modules("sandbox/guest")
        for level, module, line in imported(path)
        if (level == 0 and module.split(".")[0] not in sys.stdlib_module_names)
        or (level > 0 and resolved(path, level, module)[:2] != ["sandbox", "guest"])
    ]
    assert broken == []


def test_the_package_list_is_the_tree() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = config["tool"]["setuptools"]["packages"]
    packages = [path.parent for wing in WINGS for path in (ROOT / wing).rglob("__init__.py")]
    found = [".".join(("ptc", *folder.relative_to(ROOT).parts)) for folder in packages]
    assert sorted(listed) == sorted(["ptc", *found])


def test_every_data_file_of_the_package_is_shipped() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = set()
    for package, patterns in config["tool"]["setuptools"]["package-data"].items():
        folder = ROOT.joinpath(*package.split(".")[1:])
        for pattern in patterns:
            shipped.update(folder.glob(pattern))
    data = {
        path
        for wing in WINGS
        for path in (ROOT / wing).rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc"}
    }
    assert data | {ROOT / "py.typed"} == shipped


def test_no_module_is_imported_under_two_names() -> None:
    # A virtual environment may lie inside the checkout; only the package's own folders count.
    own = (str(ROOT / "__init__.py"), *(f"{ROOT / wing}/" for wing in WINGS))
    code = (
        "import sys, ptc, ptc.runtime.cli, ptc.runtime.cli.run\n"
        "files = {}\n"
        "for name, module in list(sys.modules.items()):\n"
        "    file = getattr(module, '__file__', None)\n"
        f"    if file and file.startswith({own!r}) and name != '__main__':\n"
        "        files.setdefault(file, []).append(name)\n"
        "twice = {file: names for file, names in files.items() if len(names) > 1 or not names[0].startswith('ptc')}\n"
        "print(twice)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert done.stdout.strip() == "{}"


def test_the_public_face_is_all_there_is() -> None:
    public = {name for name in vars(ptc) if not name.startswith("_")}
    wings = {module.name for module in pkgutil.iter_modules([str(ROOT)])}
    assert public - wings - {"annotations"} == set(ptc.__all__)
    assert [name for name in ptc.__all__ if inspect.ismodule(getattr(ptc, name))] == []


def test_public_names_are_documented() -> None:
    for name in ptc.__all__:
        item = getattr(ptc, name)
        if inspect.isclass(item) or inspect.isroutine(item):
            assert (item.__doc__ or "").strip(), name
