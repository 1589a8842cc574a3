"""Damage to the journal of a session, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.program import Done, Program

NAMES = ("one", "two", "three", "four", "five")


def stage(program: Program, *names: str) -> None:
    with program.mounted() as view:
        for name in names:
            (view / name).write_text(f"{name}\n")


def journal_of(program: Program) -> Path:
    return program.session / "journal"


def lines_of(program: Program) -> list[bytes]:
    return journal_of(program).read_bytes().splitlines(keepends=True)


def rewrite(program: Program, lines: list[bytes]) -> None:
    journal_of(program).write_bytes(b"".join(lines))


def tear(program: Program, tail: bytes = b"S 1767225600123456789 torn 7 #12") -> int:
    """Leave a torn tail; return the line that it stands on."""
    line = len(lines_of(program)) + 1
    with journal_of(program).open("ab") as file:
        file.write(tail)
    return line


def about_cut(text: str) -> list[str]:
    return [line for line in text.splitlines() if "tail was torn" in line]


def finding(program: Program, check: str, code: int = 0) -> dict[str, str]:
    """Return what doctor finds; all findings have different names."""
    document = program("doctor", "--json", code=code).json
    found: dict[str, dict[str, str]] = {one["check"]: one for one in document["findings"]}
    return found.get(check, {})


def mount(program: Program) -> Done:
    return program("mount", "--root", ".")


def changes_of(program: Program) -> list[str]:
    return [line for line in program("status").out.splitlines() if line[1:3] == "  " and line[0] != "!"]


Harm = Callable[[list[bytes], list[bytes]], tuple[list[bytes], int, str]]
"""What is done to the lines of a journal, given those of another; the bad line's number, and what
is said of it.
"""


def removed(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:4], *lines[5:]], 5, "a line before it is missing"


def three_removed(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:2], *lines[5:]], 3, "3 lines before it are missing"


def last_but_one_removed(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:-2], lines[-1]], len(lines) - 1, "a line before it is missing"


def first_removed(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [lines[0], *lines[2:]], 2, "a line before it is missing"


def swapped(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:3], lines[4], lines[3], *lines[5:]], 4, "lines have changed places"


def duplicated(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:4], lines[3], *lines[4:]], 5, "it is there twice, and is line 4"


def last_duplicated(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines, lines[-1]], len(lines) + 1, f"it is there twice, and is line {len(lines)}"


def foreign(lines: list[bytes], others: list[bytes]) -> tuple[list[bytes], int, str]:
    return [*lines[:3], others[3], *lines[4:]], 4, "the checksum does not match"


def foreign_first(lines: list[bytes], others: list[bytes]) -> tuple[list[bytes], int, str]:
    return [lines[0], others[1], *lines[2:]], 2, "the checksum does not match"


def flipped(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    bad = bytearray(lines[3])
    bad[5] ^= 1
    return [*lines[:3], bytes(bad), *lines[4:]], 4, "the checksum does not match"


def zeroed(lines: list[bytes], _: list[bytes]) -> tuple[list[bytes], int, str]:
    """A page in the middle that a power failure has kept from the disk, with whole lines after
    it.
    """
    whole = b"".join(lines[3:5])
    hole = whole[:10] + b"\0" * (len(whole) - 20) + whole[-10:]
    return [*lines[:3], hole, *lines[5:]], 4, "zero bytes"


HARMS = [
    removed,
    three_removed,
    last_but_one_removed,
    first_removed,
    swapped,
    duplicated,
    last_duplicated,
    foreign,
    foreign_first,
    flipped,
    zeroed,
]


def harm(yolofs: Program, tmp_path: Path, how: Harm) -> tuple[int, str]:
    other = Program(tmp_path / "other")
    other.project.mkdir()
    other.start_session()
    stage(other, *NAMES)
    lines, line, reason = how(lines_of(yolofs), lines_of(other))
    rewrite(yolofs, lines)
    return line, reason
