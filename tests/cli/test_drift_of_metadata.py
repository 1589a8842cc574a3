"""The host changes mode or owner alone of what is staged: that is drift, too, and may be merged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program

BIG = b"\0" * (5 << 20)
STAGED = {"text": b"text\nmore\n", "binary": b"\0more\n", "big": BIG + b"more\n", "moved-here": b"moved\nmore\n"}


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    project = tmp_path / "project"
    project.mkdir()
    for name, content in (
        ("text", b"text\n"),
        ("binary", b"\0"),
        ("big", BIG),
        ("touched", b"t"),
        ("moved", b"moved\n"),
    ):
        (project / name).write_bytes(content)
        (project / name).chmod(0o644)
    (project / "hard").write_bytes(b"hard\n")
    (project / "hard").chmod(0o644)
    (project / "hard2").hardlink_to(project / "hard")
    (project / "directory").mkdir(mode=0o755)
    program = Program(project)
    program.start_session()
    view = CoreDriver(os.fsencode(project))
    for name in ("text", "binary", "big", "moved", "hard"):
        view.append(name.encode(), b"more\n")
    view.rename(b"moved", b"moved-here")
    view.utimes(b"touched", 10**18)
    view.chmod(b"directory", 0o700)
    view.close()
    return program


ALL = {"text": "text", "binary": "binary", "big": "big", "touched": "touched", "moved": "moved-here", "hard": "hard"}
"""What is staged of files, by the name in base."""


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("name", [*ALL, "directory"])
@pytest.mark.some(3)
def test_a_mode_of_the_host_is_not_overwritten_unasked(yolofs: Program, name: str) -> None:
    (yolofs.project / name).chmod(0o600)
    assert (
        [os.path.basename(item["path"]) for item in yolofs("status", "--json").json["drift"]] == [ALL.get(name, name)]
        if name != "hard"
        else True
    )
    assert "base has changed at" in yolofs("commit", "--yes", code=9).err
    assert mode(yolofs.project / name) == 0o600
    yolofs("commit", "--yes", "--ours")
    assert mode(yolofs.project / ALL.get(name, name)) == (0o700 if name == "directory" else 0o644)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["text", "big", "touched", "directory"])
@pytest.mark.some(2)
def test_an_owner_that_the_host_gave_is_not_overwritten_unasked(yolofs: Program, name: str) -> None:
    os.chown(yolofs.project / name, 1234, 1234)
    yolofs("commit", "--yes", code=9)
    if name != "directory":
        yolofs("commit", "--yes", "--merge")
        st = (yolofs.project / name).stat()
        assert (st.st_uid, st.st_gid) == (1234, 1234)


def test_metadata_is_merged_whatever_the_content_is(yolofs: Program) -> None:
    for name in ALL:
        (yolofs.project / name).chmod(0o600)
    document = yolofs("commit", "--yes", "--merge", "--json").json
    assert document["left"] == []
    for name in ALL.values():
        assert mode(yolofs.project / name) == 0o600
        assert (yolofs.project / name).read_bytes() == STAGED.get(
            name, {"touched": b"t", "hard": b"hard\nmore\n"}.get(name)
        )
    assert (yolofs.project / "touched").stat().st_mtime_ns == 10**18
    assert (yolofs.project / "hard2").read_bytes() == b"hard\nmore\n"
    assert "no changes" in yolofs("status").out


def test_metadata_that_is_the_same_on_both_sides_or_was_taken_back_is_no_conflict(yolofs: Program) -> None:
    """Taken back, of a text: of what is not kept nobody knows what else the host has done."""
    (yolofs.project / "directory").chmod(0o700)
    view = CoreDriver(os.fsencode(yolofs.project))
    view.chmod(b"text", 0o600)
    view.close()
    (yolofs.project / "text").chmod(0o600)
    (yolofs.project / "moved").chmod(0o600)
    (yolofs.project / "moved").chmod(0o644)
    assert yolofs("status", "--json").json["drift"] == []
    (yolofs.project / "big").chmod(0o600)
    (yolofs.project / "big").chmod(0o644)
    assert [os.path.basename(one["path"]) for one in yolofs("status", "--json").json["drift"]] == ["big"]
    yolofs("commit", "--yes", "--ours")
    assert mode(yolofs.project / "text") == 0o600


@pytest.mark.parametrize("words", [("touched",), ("--up-to", "1")], ids=["some", "up-to"])
def test_a_file_that_a_partial_commit_leaves_staged_still_shows_drift_of_its_mode(
    yolofs: Program, words: tuple[str, ...]
) -> None:
    yolofs("snapshot")
    view = CoreDriver(os.fsencode(yolofs.project))
    view.append(b"text", b"again\n")
    view.close()
    yolofs("commit", "--yes", *words)
    assert yolofs("status", "--json").json["drift"] == []
    (yolofs.project / "text").chmod(0o600)
    yolofs("commit", "--yes", code=9)
    assert mode(yolofs.project / "text") == 0o600
    if words == ("touched",):
        yolofs("commit", "--yes", "--merge")
        assert mode(yolofs.project / "text") == 0o600
        assert (yolofs.project / "text").read_bytes() == b"text\nmore\nagain\n"


def test_a_file_that_an_undo_stages_again_still_shows_drift_of_its_mode(yolofs: Program) -> None:
    yolofs("commit", "--yes")
    yolofs("undo", "--yes")
    assert yolofs("status", "--json").json["drift"] == []
    for name in ("text", "touched"):
        (yolofs.project / name).chmod(0o600)
        yolofs("commit", "--yes", name, code=9)
        (yolofs.project / name).chmod(0o644)
    yolofs("commit", "--yes", "--ours")


def test_attributes_that_one_side_changed_are_merged(yolofs: Program) -> None:
    path = yolofs.project / "big"
    try:
        os.setxattr(path, "user.host", b"1")
    except OSError:
        pytest.skip("no extended attributes of users here")
    path.chmod(0o600)
    yolofs("commit", "--yes", "--merge")
    assert os.getxattr(path, "user.host") == b"1"
    assert mode(path) == 0o600


def test_after_an_undo_a_touched_text_is_no_drift_and_an_edited_one_merges(yolofs: Program) -> None:
    """An undo keeps what it brings back, where another version is staged."""
    yolofs("commit", "--yes")
    yolofs("undo", "--yes")
    text = yolofs.project / "text"
    os.utime(text, (1, 1))
    assert yolofs("status", "--json").json["drift"] == []
    text.write_bytes(b"by the host\ntext\n")
    yolofs("commit", "--yes", "text", code=9)
    yolofs("commit", "--yes", "--merge", "text")
    assert text.read_bytes() == b"by the host\ntext\nmore\n"


@pytest.mark.parametrize("how", ["mode", "time", "rename"])
def test_text_of_which_only_metadata_was_staged_merges_once_another_file_has_taken_its_name(
    tmp_path: Path, how: str
) -> None:
    """As `chmod +x` and then `sed -i` do it."""
    project = tmp_path / "project"
    project.mkdir()
    lines = "".join(f"{number}\n" for number in range(10))
    (project / "text").write_text(lines)
    yolofs = Program(project)
    yolofs.start_session()
    view = CoreDriver(os.fsencode(project))
    if how == "mode":
        view.chmod(b"text", 0o755)
    elif how == "time":
        view.utimes(b"text", 10**18)
    else:
        view.chmod(b"text", 0o755)
        view.rename(b"text", b"away")
        view.rename(b"away", b"text")
    view.create(b"new", lines.replace("0", "zero").encode(), 0o755)
    view.rename(b"new", b"text")
    view.close()
    (project / "text").write_text(lines.replace("9", "nine"))
    yolofs("commit", "--yes", "--merge")
    assert (project / "text").read_text() == lines.replace("0", "zero").replace("9", "nine")
