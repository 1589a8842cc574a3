"""The reference pages say what the code does, and the documents' links lead somewhere."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import yolofs
from yolofs.cli.command_line import BROKEN_PIPE
from yolofs.cli.options import INTERRUPTED
from yolofs.errors import YolofsError

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "scripts/check_docs.py"


def test_every_exit_code_is_documented_with_its_error_and_meaning() -> None:
    _import_everything()
    rows = re.findall(
        r"^\| (\d+) \| `(\w+)` \| (.+) \|$", (ROOT / "docs/reference/exit-codes.md").read_text(), re.MULTILINE
    )
    assert rows == sorted(
        ((str(kind.exit_code), kind.__name__, _first_sentence(kind)) for kind in _kinds(YolofsError)),
        key=lambda row: int(row[0]),
    )


def test_the_exit_codes_that_shells_give_a_meaning_are_documented() -> None:
    page = (ROOT / "docs/reference/exit-codes.md").read_text()
    rows = re.findall(r"^\| (\d+) \| \| .+ \|$", page, re.MULTILINE)
    assert [int(code) for code in rows] == [0, INTERRUPTED, BROKEN_PIPE]


def test_each_error_class_has_its_own_exit_code() -> None:
    _import_everything()
    codes = [kind.exit_code for kind in _kinds(YolofsError)]
    assert len(set(codes)) == len(codes)


def test_all_links_of_the_documents_resolve() -> None:
    done = subprocess.run([sys.executable, CHECK, ROOT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"docs: [1-9]\d* links in [1-9]\d* files resolve\n", done.stdout)


def test_broken_links_are_told_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(
        "# Top\n[good](docs/a.md#the-second-part) [web](https://example.org/x)\n[bad](docs/b.md)\n[self](#top)\n"
    )
    (tmp_path / "docs/a.md").write_text(
        "## The `second` part\n[up](../README.md#topp)\n```\n[in code](nowhere)\n```\n`[x](y)` [out](../../etc)\n"
    )
    done = subprocess.run([sys.executable, CHECK, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "README.md:3: docs/b.md: no such file",
        "docs/a.md:2: ../README.md#topp: no such heading",
        "docs/a.md:6: ../../etc: leaves the project",
    ]


def test_the_index_leads_to_every_page() -> None:
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\((\w[^)#]*\.md)\)", (docs / "index.md").read_text()))
    assert linked == {str(path.relative_to(docs)) for path in docs.glob("*/*.md")}


def _import_everything() -> None:
    """Import every module, as an error class may be defined beside what raises it."""
    for module in pkgutil.walk_packages(yolofs.__path__, "yolofs."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def _kinds(kind: type[YolofsError]) -> Iterator[type[YolofsError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def _first_sentence(kind: type[YolofsError]) -> str:
    assert kind.__doc__
    paragraph = kind.__doc__.split("\n\n")[0]
    return " ".join(paragraph.split()).replace("``", "`")


def test_no_table_of_the_documents_is_torn_by_an_empty_line() -> None:
    """What follows the line would be shown as text with bars in it."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    torn = re.compile(r"^\|.*\|\n\n\|.*\|\n(?!\|[-| ]+\|\n)", re.MULTILINE)
    assert [page.name for page in pages if torn.search(page.read_text())] == []


def test_no_line_of_prose_in_the_documents_is_wider_than_100_columns() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    assert [f"{page.name}:{number}" for page in pages for number in _wide_lines(page.read_text())] == []


def _wide_lines(text: str) -> Iterator[int]:
    """Yield the numbers of wide lines, except in code and tables, and of pictures."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        is_code ^= line.startswith("```")
        if len(line) > 100 and not is_code and not line.startswith(("|", "!")):
            yield number


MEASURED = {
    "build a C project of 60 sources": "make -j2; C project of 60 sources and 30 headers",
    "`git add` and `git commit` in it": "git add, git commit; C project of 60 sources and 30 headers",
    "open and close a file": "open, close; base, warm",
    "edit 10 files, build, snapshot": "edit 10 files, make, snapshot; C project of 60 sources and 30 headers",
    "build right after a mount": "make -j2, right after a mount; C project of 60 sources and 30 headers",
    "build a C project of 400 sources": "make -j2; C project of 400 sources",
    "unpack 1,000 files with `tar`": "untar; 1,000 files",
    "copy 1,000 files with `cp -r`": "cp -r; 1,000 files of base",
    "compile 60 Python modules": "python -m compileall; 60 modules",
    "`git status`": "git status; C project of 60 sources and 30 headers",
    "`find`": "find, warm; 1,000 files",
    "`grep -r`": "grep -r, warm; C project of 60 sources and 30 headers",
    "list a directory of 100": "list a directory of 100; base, warm",
    "list a directory of 100 staged files": "list a directory of 100; staged, warm",
    "list a directory of 100 for the first time": "list a directory of 100; base, cold",
    "open and close a file for the first time": "open, close; base, cold",
    "`stat` of a file": "stat; base, warm",
    "`stat` of a file for the first time": "stat; base, cold",
    "write 4 KiB to a new file": "write 4 KiB, sequential, new file",
    "write 4 KiB, with fsync": "write 4 KiB and fsync",
    "`stat` beside such writes: 99 of 100 take no longer": "stat beside writes with fsync; 99th percentile",
    "write 1 byte to a new file": "write 1 byte, sequential, new file",
    "set aside 64 MiB with `posix_fallocate`": "posix_fallocate 64 MiB",
}
"""The rows of README, each with the row of the page that it is taken from."""


AIMS = {
    "list a directory of 100, warm: of base; staged": [
        "list a directory of 100; base, warm",
        "list a directory of 100; staged, warm",
    ],
    "stat; open, close; list a directory; of base, cold": [
        "stat; base, cold",
        "open, close; base, cold",
        "list a directory of 100; base, cold",
    ],
    "`git status`; find; grep -r; warm": [
        "git status; C project of 60 sources and 30 headers",
        "find, warm; 1,000 files",
        "grep -r, warm; C project of 60 sources and 30 headers",
    ],
    "`git add`, `git commit`; untar; cp -r": [
        "git add, git commit; C project of 60 sources and 30 headers",
        "untar; 1,000 files",
        "cp -r; 1,000 files of base",
    ],
    "compileall; edit, make, snapshot": [
        "python -m compileall; 60 modules",
        "edit 10 files, make, snapshot; C project of 60 sources and 30 headers",
    ],
    "make of 60 sources; of 400": [
        "make -j2; C project of 60 sources and 30 headers",
        "make -j2; C project of 400 sources",
    ],
    "writes of 4 KiB, new file; posix_fallocate; cp of 128 MiB": [
        "write 4 KiB, sequential, new file",
        "posix_fallocate 64 MiB",
        "cp of 128 MiB within the view",
    ],
    "writes of 1 byte, new file": ["write 1 byte, sequential, new file"],
    "first creates after a snapshot; first reads": [
        "create and write 4 KiB, the first 10 after a snapshot",
        "open, read 4 KiB, close; base, the first 10 after a snapshot",
    ],
    "4 KiB written, with fsync": ["write 4 KiB and fsync"],
    "beside that the 99th percentile of stat; of open, read, close": [
        "stat beside writes with fsync; 99th percentile",
        "open, read 4 KiB, close beside writes with fsync; 99th percentile",
    ],
}


def test_each_aim_stands_beside_what_is_reached() -> None:
    rows = _rows(_as_root())
    head = rows[""]
    columns = {
        "plain": ("yolofs", None),  # nobody has its pinned ones
        "fuse-overlayfs": ("yolofs / fuse-overlayfs, free", "yolofs / fuse-overlayfs, pinned"),
    }
    for row, sources in AIMS.items():
        aim, beside, *reached = rows[row]
        for column, cell in zip(columns[beside], reached, strict=True):
            figures = [rows[source][head.index(column)] for source in sources] if column else []
            assert cell == "; ".join(_beside_an_aim(figure, aim) for figure in figures), row


def test_the_readme_shows_each_row_that_misses_its_aim() -> None:
    rows = _rows(_as_root())
    missed = {
        source
        for row, sources in AIMS.items()
        for cell in rows[row][2:]
        for source, figure in zip(sources, cell.split("; "), strict=False)
        if figure.startswith("**")
    }
    assert missed - set(MEASURED.values()) == set()
    assert "open, close; base, cold" in missed


def _beside_an_aim(figure: str, aim: str) -> str:
    """Return a multiple as the table of aims has it: bold if it is more than its aim."""
    number = figure.removeprefix("x")
    return f"**{number}**" if Decimal(number) > Decimal(aim) else number


def test_the_readme_has_the_figures_that_were_measured() -> None:
    measured = _rows(_as_root())
    readme = " ".join((ROOT / "README.md").read_text().split())
    shown = _rows((ROOT / "README.md").read_text())
    for row, source in MEASURED.items():
        assert shown[row] == [_rounded(measured[source][column].removeprefix("x")) for column in (2, 3)], row
    assert len([row for row in shown.values() if row[0][:1].isdigit()]) == len(MEASURED)
    inside = measured["yolofs run -- make -j2, of native make; C project of 60 sources and 30 headers"][3]
    peer, ours = measured["make -j2; C project of 60 sources and 30 headers"][-1].split("; ")
    assert f"`yolofs run -- make` takes {_rounded(inside.removeprefix('x'))} times as long as `make`" in readme
    assert f"takes {ours} s, fuse-overlayfs {peer} s" in readme


def _as_root() -> str:
    """Return the page of what was measured without other figures of the same rows: those of an
    ordinary user.
    """
    page = (ROOT / "docs/design/performance.md").read_text()
    before, _, rest = page.partition("### As an ordinary user\n")
    return before + rest[rest.index("### ") :]


def _rounded(figure: str) -> str:
    """Return a figure with two digits."""
    number = Decimal(figure)
    return str(number.quantize(Decimal("0.1") if number < 10 else Decimal("1"), ROUND_HALF_UP))


def _rows(text: str) -> dict[str, list[str]]:
    """Return the cells of all rows of a page's tables, by the first one."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {first.removesuffix(" *"): rest for first, *rest in rows}
