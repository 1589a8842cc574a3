"""Hunks as lines for people."""

from __future__ import annotations

from yolofs.changes.hunks import Hunk, HunkKind
from yolofs.cli.show.hunk_lines import changed_lines
from yolofs.paths import RelPath


def hunk(old: tuple[bytes, ...], new: tuple[bytes, ...]) -> Hunk:
    return Hunk("0" * 16, HunkKind.TEXT, RelPath(b"a"), old_lines=old, new_lines=new)


def test_each_changed_line_has_its_mark_and_an_end_and_nothing_that_commands_a_terminal() -> None:
    written = b"".join(changed_lines(hunk((b"one\n", b"\n", b"tw\x1bo"), (b"\xff\n", "ü\r\n".encode()))))
    assert written == "-one\n-\n-tw^[o\n\\ No newline at end of file\n+<ff>\n+ü^M\n".encode()


def test_lines_are_the_same_however_many_are_written_at_a_time() -> None:
    lines = tuple(b"%d\n" % number for number in range(10_000))
    assert b"".join(changed_lines(hunk((), lines))) == b"".join(b"+" + line for line in lines)


def test_millions_of_lines_are_not_written_one_by_one() -> None:
    written = list(changed_lines(hunk((), (b"\n",) * (1 << 20))))
    assert len(written) < 1000
    assert sum(map(len, written)) == 2 << 20
