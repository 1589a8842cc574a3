"""Staged changes on paths that a rule hides since: outside of the sandbox they are counted, and
committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount
NOTE = "note: 2 changes on paths that the rules hide not shown; --hidden shows them\n"


@pytest.fixture(params=["mounted", "unmounted"])
def staged(yolofs: Program, request: pytest.FixtureRequest) -> Iterator[Program]:
    """Return the program with an open change and two that are hidden, one of which renames
    something open.
    """
    (yolofs.project / "keys").write_text("old\n")
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("changed\n")
        (view / "keys").write_text("secret\n")
        (view / "dir/b.txt").rename(view / "taken")
        yolofs("rule", "hidden", "keys")
        yolofs("rule", "hidden", "taken")
        if request.param == "mounted":
            yield yolofs
    if request.param == "unmounted":
        yield yolofs


def test_status_counts_hidden_changes_and_lists_them_with_the_option(staged: Program) -> None:
    done = staged("status")
    assert done.out.splitlines()[4:] == ["M  a.txt", "", "1 change: 1 modified"]
    assert done.err == NOTE
    lines = staged("status", "--hidden").out.splitlines()[4:]
    assert lines == ["M  a.txt", "M  keys", "R  dir/b.txt -> taken", "", "3 changes: 2 modified, 1 renamed"]


def test_json_tells_how_many_hidden_changes_are_left_out(staged: Program) -> None:
    for command in ("status", "diff"):
        document = staged(command, "--json").json
        assert [Path(change["path"]).name for change in document["changes"]] == ["a.txt"]
        assert document["hidden_left_out"] == 2
        assert document["counts"]["R"] == 0
        document = staged(command, "--hidden", "--json").json
        assert len(document["changes"]) == 3
        assert document["hidden_left_out"] == 0


def test_hidden_changes_are_left_out_among_hundreds_of_others(yolofs: Program) -> None:
    """The rules come from the mount then, which else judges the paths itself."""
    with yolofs.mounted() as view:
        for number in range(400):
            (view / f"{number}.hid").touch()
            (view / f"{number}.txt").touch()
        yolofs("rule", "hidden", "**/*.hid")
        for command in ("status", "diff"):
            document = yolofs(command, "--json").json
            assert (document["counts"]["A"], document["hidden_left_out"]) == (400, 400)


def test_hunks_leaves_hidden_changes_out_and_says_so(staged: Program) -> None:
    done = staged("hunks")
    assert "+changed" in done.out
    assert "secret" not in done.out
    assert done.err == NOTE
    document = staged("hunks", "--json").json
    assert [hunk["kind"] for hunk in document["hunks"]] == ["text"]
    assert document["hidden_left_out"] == 2
    done = staged("hunks", "--hidden")
    assert "+secret" in done.out
    assert done.err == ""


def test_diff_leaves_hidden_changes_out_and_says_so(staged: Program) -> None:
    done = staged("diff")
    assert "+changed" in done.out
    assert "secret" not in done.out
    assert done.err == NOTE
    done = staged("diff", "--hidden")
    assert "+secret" in done.out
    assert done.err == ""


def test_commit_shows_and_applies_hidden_changes(staged: Program) -> None:
    assert staged("commit", "--yes").out.splitlines() == [
        "M  a.txt",
        "",
        "on paths that the rules hide:",
        "M  keys",
        "R  dir/b.txt -> taken",
        "",
        "3 changes: 2 modified, 1 renamed",
    ]
    assert (staged.project / "keys").read_text() == "secret\n"
    assert staged("status").out.endswith("\nno changes\n")


def test_rules_that_cannot_be_read_hide_nothing_and_that_is_said(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "keys").write_text("secret\n")
    yolofs("rule", "hidden", "keys")
    (yolofs.session / "rules.toml").write_text("[rules]\nkeys = 3\n")
    done = yolofs("status")
    assert "A  keys" in done.out
    assert "warning: .yolofs/rules.toml:2: rules.keys: expected" in done.err
    assert "what its rules would hide is shown" in done.err
