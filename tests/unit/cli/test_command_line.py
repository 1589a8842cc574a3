"""JSON spellings, coloured patches, version ranges, and how an error looks."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest

from yolofs.cli import command_line, output
from yolofs.cli.doctor.machine_checks import is_in_range
from yolofs.cli.show.json_forms import text_fields
from yolofs.cli.show.listing import PathDisplay
from yolofs.cli.show.patch_colour import PatchPainter
from yolofs.errors import BusyFilesError, ConflictError
from yolofs.paths import RelPath, absolute


def test_a_path_that_is_utf8_is_a_plain_string() -> None:
    assert text_fields("path", "/ä b".encode()) == {"path": "/ä b"}


def test_a_path_that_is_not_utf8_has_its_exact_bytes_beside_it() -> None:
    assert text_fields("path", b"/caf\xe9%") == {"path": "/caf\ufffd%", "path_bytes": "/caf%E9%25"}


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [(b"/", b"", b"/"), (b"/", b"a/b", b"/a/b"), (b"/r", b"", b"/r"), (b"/r", b"a", b"/r/a")],
)
def test_a_path_of_base_becomes_absolute(root: bytes, path: bytes, expected: bytes) -> None:
    assert absolute(root, path) == expected


def test_paths_are_shown_relative_to_the_project_or_absolute() -> None:
    path_display = PathDisplay(b"/", RelPath(b"home/p"))
    assert path_display.show_path(b"home/p/a/b") == "a/b"
    assert path_display.show_path(b"home/p") == "."
    assert path_display.show_path(b"home/p2/a") == "/home/p2/a"
    assert PathDisplay(b"/r", RelPath(b"")).show_path(b"a") == "a"
    assert PathDisplay(b"/r", None).show_path(b"a") == "/r/a"


def painted(patch: bytes, size: int) -> bytes:
    """Return a patch painted from pieces of ``size`` bytes."""
    out = bytearray()
    painter = PatchPainter(out.extend)
    for at in range(0, len(patch), size):
        painter(patch[at : at + size])
    return bytes(out)


PATCH = b"""\
diff --git a/f b/f
--- a/f
+++ b/f
@@ -1,2 +1,2 @@ head
 same
--- not a header
+++ nor this
diff --git a/g b/g
"""


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_patch_is_coloured_line_by_line_whatever_the_pieces(size: int) -> None:
    bold, green, red, cyan, plain = b"\x1b[1m", b"\x1b[32m", b"\x1b[31m", b"\x1b[36m", b"\x1b[0m"
    assert painted(PATCH, size).splitlines() == [
        bold + b"diff --git a/f b/f" + plain,
        bold + b"--- a/f" + plain,
        bold + b"+++ b/f" + plain,
        cyan + b"@@ -1,2 +1,2 @@ head" + plain,
        b" same",
        red + b"--- not a header" + plain,
        green + b"+++ nor this" + plain,
        bold + b"diff --git a/g b/g" + plain,
    ]


def test_control_characters_are_made_visible() -> None:
    assert painted(b" \x00\t\x1b[31m\x7f\xc2\x9b\xc3\xa9\n", 100) == b" ^@\t^[[31m^?<9b>\xc3\xa9\n"


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [
        ("3.4.0", ">=3.4,<3.6", True),
        ("3.4", "<3.6,>=3.4", True),
        ("3.5.9", ">=3.4, <3.6", True),
        ("3.6", ">=3.4,<3.6", False),
        ("3.6.0", ">=3.4,<3.6", False),
        ("3.10", ">=3.4,<3.6", False),
        ("3.3.9", ">=3.4,<3.6", False),
        ("3.5.0rc1", ">=3.4,<3.6", True),
        ("1", "", True),
    ],
)
def test_a_version_is_in_a_range_or_not(version: str, wanted: str, expected: bool) -> None:
    assert is_in_range(version, wanted) is expected


def test_an_error_is_a_sentence_the_details_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    users = [f"{pid} sh /a" for pid in range(12)]
    assert command_line._report(BusyFilesError("files are open", users=users, hint="close them")) == 8
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["yolofs: files are open", "  0 sh /a"]
    assert lines[-3:] == ["  9 sh /a", "  … and 2 more", "hint: close them"]


def test_conflicting_paths_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line._report(ConflictError("base changed", paths=[b"a\n"])) == 9
    assert capsys.readouterr().err == 'yolofs: base changed\n  "/a\\n"\n'


def test_an_error_of_the_system_is_one_line_and_the_next_thing_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line._report(PermissionError(13, "Permission denied", "/a b")) == 1
    assert capsys.readouterr().err == (
        "yolofs: /a b: Permission denied\nhint: check that you may read it, then try again\n"
    )


def test_an_internal_error_is_one_line_and_a_file_with_the_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ZeroDivisionError) as caught:
        raise ZeroDivisionError("x")
    assert command_line._report(caught.value) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "yolofs: this should not have happened: ZeroDivisionError('x')"
    path = lines[1].removeprefix("hint: the traceback is in ")
    with open(path, encoding="utf-8") as file:
        assert "ZeroDivisionError: x" in file.read()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    assert not output.has_colour(stream)
    monkeypatch.setattr(stream, "isatty", lambda: True)
    assert output.has_colour(stream) is expected
    assert output.paint("x", "red", stream=stream) == ("\x1b[31mx\x1b[0m" if expected else "x")
