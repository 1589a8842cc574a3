"""What docstrings refer to is there, and modules that pages, docstrings and tests of kills name."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOPS = ("cli", "config", "daemon", "yolofs")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/design").glob("*.md")), *sorted((ROOT / "docs/guide").glob("*.md"))]
IMPORTS_OF_TESTS = re.compile(r"^ *(?:from tests[\w.]* import (?:\([^)]*\)|.+)|import tests\.[\w.]+.*)$", re.MULTILINE)


ON_TWO_FLOORS = {
    "asks": "the command, and the queue of which it shows what waits",
    "commit": "the command, and what a session does for it",
    "conflicts": "what settles them in a review, and what finds them",
    "diff": "the command, and what it does without click",
    "feedback": "the command, and the notes that it prints",
    "handshake": "the same talk with the kernel, in each of two transports",
    "hunks": "the command, and what it lists",
    "interrupted": "what a command asks about such a commit, and what is known of it",
    "long_changes": "the threads that make them, and what they make",
    "main": "where a program begins: the command line's, and the daemon's",
    "mount": "the command, and what it makes",
    "private_tmp": "what a run says of it, and what it is",
    "progress": "how it is shown, and how it is told",
    "restore": "the command, and what a session does for it",
    "runs": "the command, and what it lists",
    "screen": "a whole terminal: of the review, and of the asks",
    "snapshot": "the command, and what it does without click",
    "status": "the command, and what it does without click",
    "timeline": "the command, and what it shows",
    "transport": "what a mount wants of one, and the two that there are",
    "trust": "the command, the settings that wait for it, and what was agreed to",
    "undo": "the command, and what a session does for it",
}
"""The names that several modules have, each with the idea that these have in common."""


def test_modules_share_a_name_only_where_they_are_one_idea_on_several_floors() -> None:
    names = [path.stem for top in TOPS for path in python_files(top)]
    assert {name for name in names if names.count(name) > 1} - {"__init__"} == set(ON_TWO_FLOORS)


def packages_that_list_modules() -> Iterator[Path]:
    """Yield the packages whose docstring has a list: ``::``, then a line for each module."""
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("__init__.py")):
            if not any(above.is_symlink() for above in path.parents) and "::\n\n    " in docstring(path):
                yield path.parent


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""


@pytest.mark.parametrize("package", [str(path.relative_to(ROOT)) for path in packages_that_list_modules()])
def test_a_package_that_lists_its_modules_lists_all_and_no_others(package: str) -> None:
    text = docstring(ROOT / package / "__init__.py")
    listed = {line.split()[0].rstrip("/,") for line in text.splitlines() if line.startswith("    ")}
    there = {path.stem for path in (ROOT / package).rglob("*.py") if path.stem != "__init__"}
    folders = {path.name for path in (ROOT / package).rglob("*") if path.is_dir()}
    assert listed - there - folders == set()
    assert {name for name in there if not re.search(rf"\b{name}\b", text)} == set()


def test_each_python_file_that_a_page_names_is_there() -> None:
    tops = (*TOPS, "tests", "scripts", "benchmarks")
    names = {path.relative_to(ROOT).as_posix() for top in tops for path in (ROOT / top).rglob("*.py")}
    names |= {name.rpartition("/")[2] for name in names} | {
        "setup.py",
        "pyfloor.py",
    }  # the second is a benchmark's, of another program
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in PAGES
        for name in re.findall(r"`([\w/]+\.py)`", page.read_text())
        if name not in names and f"yolofs/{name}" not in names
    ]
    assert missing == []


def test_each_module_that_a_page_names_by_its_folder_is_there() -> None:
    folders = {path.name for top in TOPS for path in (ROOT / top).rglob("*") if (path / "__init__.py").is_file()}
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in PAGES
        for name in re.findall(r"`((?:\w+/)+\w+)/?`", page.read_text())
        if name.split("/")[0] in folders | set(TOPS) and not is_there(name)
    ]
    assert missing == []


@pytest.mark.parametrize("path", ["tests/support/killed_command.py", "tests/crash/at_a_line.py"])
def test_each_module_whose_lines_are_counted_is_there(path: str) -> None:
    (traced,) = (
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / path).read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TRACED"
    )
    assert [name for name in traced if not is_there(name.replace(".", "/"))] == []


def test_each_name_that_a_docstring_refers_to_is_there() -> None:
    """A reference is the full name of something, or a name that the same module uses."""
    modules = {full_name(path): path.read_text() for top in TOPS for path in python_files(top)}
    missing = [
        f"{module}: {reference}"
        for module, text in modules.items()
        for reference in re.findall(r":(?:class|data|exc|func|meth|attr|mod):`~?\.?([\w.]+)`", text)
        if not is_known(reference, text, modules)
    ]
    assert missing == []


def python_files(top: str) -> Iterator[Path]:
    """Yield the modules of a folder, each by one of its paths."""
    for path in sorted((ROOT / top).rglob("*.py")):
        if not any(above.is_symlink() for above in path.parents):
            yield path


def full_name(path: Path) -> str:
    name = path.relative_to(ROOT).with_suffix("").as_posix().removesuffix("/__init__").replace("/", ".")
    return name if name.split(".")[0] == "yolofs" else f"yolofs.{name}"


def is_known(reference: str, text: str, modules: Mapping[str, str]) -> bool:
    """Tell whether a reference in a module with this text leads anywhere."""
    module, names = reference, list[str]()
    while module and module not in modules:
        module, _, name = module.rpartition(".")
        names.append(name)
    if not module and (hasattr(builtins, reference) or names[-1] in sys.stdlib_module_names):
        return True
    there = modules[module] if module else re.sub(r":\w+:`[^`]*`", "", text)
    return all(re.search(rf"\b{name}\b", there) for name in (names if module else names[-1:]))


def is_there(name: str) -> bool:
    """Tell whether a name like ``commit/select/compose`` is a module or a folder."""
    places = [ROOT / name, ROOT / "yolofs" / name]
    return any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)


def test_what_tests_of_several_folders_need_lies_in_support() -> None:
    """A test module is imported in its own folder only, a helper below its folder of ``tests``."""
    elsewhere = [
        f"{path.relative_to(ROOT)}: {module.relative_to(ROOT)}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for module in imported_from_tests(path)
        if (module.parent != path.parent if module.stem.startswith("test_") else is_of_another_kind(module, path))
    ]
    assert elsewhere == []


def is_of_another_kind(module: Path, path: Path) -> bool:
    """Tell whether a helper lies neither in support nor with the tests that import it."""
    mine, its = (one.relative_to(ROOT / "tests").parts[0] for one in (path, module))
    return its not in ("support", mine) and module.stem != "conftest"


def imported_from_tests(path: Path) -> Iterator[Path]:
    """Yield the modules below ``tests`` that a file imports, wherever in it.  Only its imports are
    parsed, as to parse all files takes seconds.
    """
    for statement in IMPORTS_OF_TESTS.findall(path.read_text()):
        (node,) = ast.parse(statement.strip()).body
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            module = (ROOT / name.replace(".", "/")).with_suffix(".py")
            if name.startswith("tests.") and module.is_file():
                yield module
