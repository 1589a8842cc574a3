"""Commits and drops of hunks are killed at one line of their code after another, and their calls
fail.

All stays staged, or an interrupted commit has its usual two ends; a drop is done or not.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.crash import test_commands_faults, test_commands_killed
from tests.crash.test_commands_killed import TEN, Scene, base_of, before_snapshot, contents, fresh, view_of
from tests.support.core_driver import CoreDriver
from tests.support.every_kind_of_step import populate
from tests.support.fault_points import points
from tests.support.injected_faults import Faults
from tests.support.killed_command import as_user, check_said, kill_points, run, users
from tests.support.model_steps import how_many
from yolofs.changes.changes import Change, ChangeKind, Side
from yolofs.changes.hunks import Hunk, hunks_of
from yolofs.paths import RelPath
from yolofs.session.journal_copy import JournalCopy
from yolofs.store.store import Store

pytestmark = pytest.mark.timeout(300)
STAGED = TEN.replace(b"2\n", b"two\n").replace(b"9\n", b"nine\n")
POINTS = how_many(ci=4, nightly=300)
ERRORS = test_commands_faults.ERRORS


def text_hunks(path: bytes, before: bytes, after: bytes) -> Sequence[Hunk]:
    """Return the hunks of a text, whose ids are the same in every project."""
    with tempfile.TemporaryDirectory() as directory:
        sides = []
        for name, data in ((b"old", before), (b"new", after)):
            full = os.path.join(os.fsencode(directory), name)
            with open(full, "wb") as file:
                file.write(data)
            st = os.lstat(full)
            sides.append(Side(0o100000, 0o644, 0, 0, st.st_mtime_ns, len(data), 0, full, full, None))
        change = Change(ChangeKind.MODIFIED, RelPath(path), old=sides[0], new=sides[1], content=True)
        return hunks_of(change, Store(os.path.join(os.fsencode(directory), b"store"))).hunks


def staged(project: bytes) -> None:
    """A text with two changed lines is staged, and something of every other kind."""
    populate(project)
    (Path(os.fsdecode(project)) / "text").write_bytes(TEN)
    view = CoreDriver(project)
    before_snapshot(view)
    view.overwrite(b"text", STAGED)
    view.close()


FIRST, LAST = (hunk.id for hunk in text_hunks(b"text", TEN, STAGED))
COMMIT = Scene(("commit", "--yes", "--hunk", FIRST), staged, (STAGED,))
DROP = Scene(("restore", "--hunk", LAST), staged, (STAGED,))


@pytest.mark.parametrize("is_root", users("a killed commit"), ids=lambda one: f"root {one}")
def test_a_killed_commit_of_a_hunk_leaves_all_staged_or_is_done(monkeypatch: pytest.MonkeyPatch, is_root: bool) -> None:
    as_user(partial(test_commands_killed.check, COMMIT, int(is_root)), monkeypatch, is_root=is_root)


@pytest.mark.parametrize("is_root", users("a commit on a failing disk"), ids=lambda one: f"root {one}")
@pytest.mark.parametrize("reads", [False, True], ids=["changes", "reads"])
def test_a_commit_of_a_hunk_on_a_failing_disk_leaves_all_staged_or_is_done(
    monkeypatch: pytest.MonkeyPatch, is_root: bool, reads: bool
) -> None:
    as_user(partial(test_commands_faults.check, COMMIT, is_root, reads), monkeypatch, is_root=is_root)


def test_a_commit_of_a_hunk_that_cannot_be_written_down_says_why_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = fresh(COMMIT, tmp_path)
    base, view = base_of(project), view_of(project)

    def fail(_: JournalCopy) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(JournalCopy, "keep", fail)
        ran = run(project, *COMMIT.words)
    check_said(ran)
    assert ran.code == 17
    assert ran.err.startswith("yolofs: the commit was not begun, base is as it was, and all stays staged: ")
    assert "Input/output error" in ran.err
    assert (base_of(project), view_of(project)) == (base, view)


@pytest.mark.parametrize("is_root", users("a killed drop"), ids=lambda one: f"root {one}")
def test_a_killed_drop_is_done_or_not(monkeypatch: pytest.MonkeyPatch, is_root: bool) -> None:
    as_user(check_killed_drop, monkeypatch, is_root=is_root)


@pytest.mark.parametrize("is_root", users("a drop on a failing disk"), ids=lambda one: f"root {one}")
def test_a_drop_on_a_failing_disk_is_done_or_not(monkeypatch: pytest.MonkeyPatch, is_root: bool) -> None:
    as_user(check_failing_drop, monkeypatch, is_root=is_root)


def check_killed_drop(place: Path) -> None:
    project = fresh(DROP, place)
    base, before = base_of(project), view_of(project)
    whole = run(project, *DROP.words, faults=Faults(0, range(0)))
    assert whole.code == 0, whole
    after = view_of(project)
    assert after[b"text"][2] == TEN.replace(b"2\n", b"two\n")
    for line in kill_points(whole, 0, 1, POINTS):
        where = f"killed at line {line} of {whole.lines}"
        project = fresh(DROP, place)
        assert run(project, *DROP.words, line=line).is_killed, where
        now = view_of(project)
        assert now in (before, after), where
        assert base_of(project) == base, where
        assert contents(project) >= {STAGED}, where
        again = run(project, *DROP.words)
        assert again.code == (0 if now == before else 20), (where, again)
        assert view_of(project) == after, where


def check_failing_drop(place: Path) -> None:
    project = fresh(DROP, place)
    before = view_of(project)
    whole = run(project, *DROP.words, faults=Faults(0, range(0)))
    after = view_of(project)
    count = len(whole.calls)
    for number, call in enumerate(points(range(count), "a call of a drop fails", some=POINTS)):
        error = ERRORS[number % len(ERRORS)]
        project = fresh(DROP, place)
        ran = run(project, *DROP.words, faults=Faults(error, range(call, call + 1)))
        assert "Traceback" not in ran.err, ran
        now = view_of(project)
        assert now in (before, after), (call, ran)
        again = run(project, *DROP.words)
        assert again.code == (0 if now == before else 20), (call, again)
        assert view_of(project) == after, (call, ran)
