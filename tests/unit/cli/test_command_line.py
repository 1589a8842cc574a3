"""How an error looks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from yolofs.cli import command_line
from yolofs.errors import BusyFilesError, ConflictError


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
