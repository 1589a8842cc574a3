"""A journal with a torn tail: what is cut is kept, and said until the user knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.security.journal.damaged import about_cut, finding, journal_of, lines_of, mount, rewrite, tear
from tests.support.program import Program, connected

pytestmark = pytest.mark.mount


def test_a_mount_that_cuts_says_what_where_and_what_next_and_so_do_log_status_and_doctor(yolofs: Program) -> None:
    line = tear(yolofs)
    offset = journal_of(yolofs).stat().st_size - 32
    said = mount(yolofs)
    try:
        (told,) = about_cut(said.err)
        assert f"32 bytes (1 record) from line {line} (byte {offset}) on" in told
        assert str(yolofs.session / "journal.torn") in told
        assert "yolofs doctor --acknowledge" in told
        sentence = told.removeprefix("warning: ")
        (logged,) = about_cut(yolofs.log)
        assert logged.endswith(sentence)
        assert " WARNING " in logged
        assert about_cut(yolofs("status").err) == [told]
        status = yolofs("status", "--json").json
        assert [one for one in status["warnings"] if "torn" in one] == [sentence]
        (cut,) = status["cuts"]
        assert cut.pop("time_ns") > 0
        assert cut == {
            "kind": "torn",
            "line": line,
            "offset": offset,
            "bytes": 32,
            "records": 1,
            "kept_in": str(yolofs.session / "journal.torn"),
        }
        found = finding(yolofs, "cut")
        assert (found["level"], found["message"]) == ("warn", sentence.rsplit("; ", 1)[0])
        assert "yolofs doctor --acknowledge" in found["advice"]
    finally:
        yolofs("unmount")


def test_run_says_it_when_it_starts_the_daemon_that_cuts_and_once_only(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    yolofs = Program(project)
    yolofs.start_session()
    yolofs("run", "--", "touch", "one")
    yolofs("unmount")
    line = tear(yolofs)
    assert f"from line {line} " in about_cut(yolofs("run", "--", "true").err)[0]
    assert about_cut(yolofs("run", "--", "true").err) == []
    yolofs("unmount")
    assert about_cut(yolofs("run", "--", "true").err) == []
    assert len(about_cut(yolofs("status").err)) == 1
    yolofs("unmount")


@pytest.mark.parametrize(
    "words", [("snapshot", "s"), ("travel", "0"), ("commit", "--yes"), ("abort", "--yes")], ids=lambda words: words[0]
)
def test_a_command_that_cuts_without_a_mount_says_so(yolofs: Program, words: tuple[str, ...]) -> None:
    tear(yolofs)
    assert len(about_cut(yolofs(*words).err)) == 1
    assert b"S 1767225600123456789 torn 7 #12" in (yolofs.session / "journal.torn").read_bytes()
    ends_the_journal = words[0] in ("commit", "abort")
    assert len(about_cut(yolofs("status").err)) == (0 if ends_the_journal else 1)


def test_a_torn_tail_is_told_before_anybody_cuts_it(yolofs: Program) -> None:
    line = tear(yolofs)
    before = journal_of(yolofs).read_bytes()
    (told,) = about_cut(yolofs("status").err.replace("tail is torn", "tail was torn"))
    assert f"32 bytes (1 record) from line {line} " in told
    assert len(yolofs("status", "--json").json["warnings"]) == 1
    found = finding(yolofs, "journal")
    assert found["level"] == "warn"
    assert f"line {line} " in found["message"]
    assert "mount" in found["advice"]
    assert journal_of(yolofs).read_bytes() == before
    assert not (yolofs.session / "journal.torn").exists()


def test_a_torn_tail_is_told_until_it_is_acknowledged_over_mounts_and_unmounts(yolofs: Program) -> None:
    tear(yolofs)
    mount(yolofs)
    yolofs("unmount")
    for _ in range(2):
        assert len(about_cut(yolofs("status").err)) == 1
        assert finding(yolofs, "cut")["level"] == "warn"
        assert about_cut(mount(yolofs).err) == []  # who mounts was told once
        assert len(about_cut(yolofs("status").err)) == 1
        yolofs("unmount")
    kept = (yolofs.session / "journal.torn").read_bytes()
    assert "torn" in yolofs("doctor", "--acknowledge").err
    assert (yolofs.session / "journal.torn").read_bytes() == kept
    assert about_cut(yolofs("status").err) == []
    assert yolofs("status", "--json").json["cuts"] == []
    assert finding(yolofs, "cut") == {}
    assert "nothing to acknowledge" in yolofs("doctor", "--acknowledge").err


def test_after_a_repair_or_an_acknowledgement_only_what_is_not_in_order_is_listed(yolofs: Program) -> None:
    tear(yolofs)
    mount(yolofs)
    yolofs("unmount")
    done = yolofs("doctor", "--acknowledge")
    assert "acknowledged: " in done.err
    assert "\nok " not in f"\n{done.out}"
    assert "cut:" not in done.out
    assert "\nok    journal: " in yolofs("doctor").out
    lines = lines_of(yolofs)
    rewrite(yolofs, [*lines[:3], *lines[4:]])
    done = yolofs("doctor", "--repair", "--yes")
    assert "\nok " not in f"\n{done.out}"
    (yolofs.project / ".yolofs.toml").write_text('nonsense = "x"\n')
    assert "fail  config: " in yolofs("doctor", "--repair", code=1).out


def test_a_torn_tail_can_be_acknowledged_while_the_view_is_mounted(yolofs: Program) -> None:
    tear(yolofs)
    mount(yolofs)
    try:
        yolofs("doctor", "--acknowledge")
        assert yolofs("status").err == ""
        with connected(yolofs) as client:
            assert client.info().warnings == ()
    finally:
        yolofs("unmount")


@pytest.mark.parametrize("words", [("commit", "--yes"), ("abort", "--yes"), ("commit", "--yes", "one")], ids=" ".join)
def test_the_end_of_the_journal_ends_it_with_and_without_a_mount(yolofs: Program, words: tuple[str, ...]) -> None:
    tear(yolofs)
    mount(yolofs)
    try:
        yolofs(*words)
        assert yolofs("status").err == ""
    finally:
        yolofs("unmount")
    assert yolofs("status").err == ""
    assert finding(yolofs, "cut") == {}


def test_a_second_tear_keeps_what_the_first_has_moved_and_both_are_told(yolofs: Program) -> None:
    first = tear(yolofs, b"S 1 first")
    mount(yolofs)
    yolofs("unmount")
    with yolofs.mounted(expected_in_log=("tail was torn",)) as view:
        (view / "six").touch()
    second = tear(yolofs, b"S 2 second")
    assert f"from line {second} " in about_cut(mount(yolofs).err)[0]
    yolofs("unmount")
    told = about_cut(yolofs("status").err)
    assert [f"from line {first} " in told[0], f"from line {second} " in told[1]] == [True, True]
    assert len(yolofs("status", "--json").json["cuts"]) == 2
    torn = (yolofs.session / "journal.torn").read_bytes()
    assert torn.index(b"\nS 1 first\n") < torn.index(b"\nS 2 second\n")


def test_what_was_moved_and_then_removed_by_the_user_is_not_told_any_more(yolofs: Program) -> None:
    tear(yolofs)
    mount(yolofs)
    yolofs("unmount")
    (yolofs.session / "journal.torn").unlink()
    assert yolofs("status").err == ""


def test_notes_of_cuts_that_make_no_sense_stop_nobody(yolofs: Program) -> None:
    tear(yolofs)
    mount(yolofs)
    yolofs("unmount")
    notes = yolofs.session / "journal.cuts"
    good = notes.read_bytes()
    for bad in (b"", b"\0" * 5000, b"[]\n{}\n", b'{"line": "x"}\n', good[:-9], b"\xff\n"):
        notes.write_bytes(bad + good)
        yolofs("status")
        yolofs("doctor")
        notes.write_bytes(good + bad)
        assert len(about_cut(yolofs("status").err)) == 1
    notes.unlink()
    notes.mkdir()
    yolofs("status")
    tear(yolofs)
    before = journal_of(yolofs).read_bytes()
    message = yolofs.refused("mount", "--root", ".", code=6)
    assert f"{journal_of(yolofs)}.cuts: it is not a regular file" in message
    assert journal_of(yolofs).read_bytes() == before


def test_a_run_of_zero_bytes_at_the_end_is_a_torn_tail(yolofs: Program) -> None:
    """As after a power failure: the file has grown, and its last pages were never written."""
    whole = journal_of(yolofs).read_bytes()
    journal_of(yolofs).write_bytes(whole[:-30] + b"\0" * 4096)
    line = whole.count(b"\n")
    assert (
        f"{journal_of(yolofs).stat().st_size - len(b''.join(whole.splitlines(keepends=True)[:-1]))} bytes"
        in (about_cut(mount(yolofs).err)[0])
    )
    yolofs("unmount")
    (cut,) = yolofs("status", "--json").json["cuts"]
    assert cut["line"] == line
    assert journal_of(yolofs).read_bytes() == b"".join(whole.splitlines(keepends=True)[:-1])
