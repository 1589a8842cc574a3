"""Rules and the hard links that base has: a change through one name is a change of all of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.gate_tools import Answers, at, book, path_rule, refused, replace_rules
from tests.support.in_process import MountedView
from yolofs.access.questions import Decision
from yolofs.rules import RuleState

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]
GUARDS = [RuleState.READ_ONLY, RuleState.DENY, RuleState.HIDDEN]
CHANGES: dict[str, Callable[[str], object]] = {
    "append": lambda path: append(path),
    "truncate": lambda path: os.truncate(path, 1),
    "chmod": lambda path: os.chmod(path, 0o600),
    "utime": lambda path: os.utime(path, ns=(1, 2)),
    "link": lambda path: os.link(path, path + ".new"),
}


def append(path: str) -> None:
    with open(path, "ab") as file:
        file.write(b"!")


@pytest.fixture
def linked(base: Path) -> Path:
    """A base in which guarded/f and open/f are one file."""
    (base / "guarded").mkdir()
    (base / "open").mkdir()
    (base / "guarded/f").write_bytes(b"kept")
    os.link(base / "guarded/f", base / "open/f")
    return base


@pytest.mark.parametrize("seen", [False, True], ids=["never-seen", "seen"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("place", ["guarded", "guarded/f"])
@pytest.mark.parametrize("state", GUARDS, ids=lambda state: state.value)
@pytest.mark.some(20)
def test_no_change_through_a_name_that_is_not_guarded(
    linked: Path, mounted: Mounter, state: RuleState, place: str, change: str, seen: bool
) -> None:
    view = mounted(book=book(linked, path_rule(linked, place, state)), asker=(answers := Answers(Decision.ALLOW)))
    if seen:
        os.path.lexists(at(view, "guarded/f"))
    with pytest.raises(PermissionError):
        CHANGES[change](at(view, "open/f"))
    assert not answers.asked
    assert answers.refusals
    assert sorted(os.listdir(at(view, "open"))) == ["f"]
    view.commit()
    assert (linked / "guarded/f").read_bytes() == b"kept"
    assert os.lstat(linked / "guarded/f").st_mode & 0o777 == 0o644


@pytest.mark.parametrize("change", CHANGES)
def test_nobody_is_asked_about_a_change_that_the_guard_of_another_name_refuses(
    linked: Path, mounted: Mounter, change: str
) -> None:
    rules = [path_rule(linked, "guarded", RuleState.DENY), path_rule(linked, "open", RuleState.ASK)]
    view = mounted(book=book(linked, *rules), asker=(answers := Answers(Decision.ALLOW)))
    with pytest.raises(PermissionError):
        CHANGES[change](at(view, "open/f"))
    assert not answers.asked
    assert {question.path for question in answers.refusals} == {os.fsencode(linked / "guarded/f")}


def test_what_one_may_not_read_is_not_read_after_its_other_name_was_used(linked: Path, mounted: Mounter) -> None:
    view = mounted(book=book(linked, path_rule(linked, "guarded", RuleState.DENY)), asker=Answers())
    os.stat(at(view, "guarded/f"))
    os.stat(at(view, "open/f"))
    for _ in range(2):
        with pytest.raises(PermissionError):
            open(at(view, "guarded/f"), "rb").close()
        os.path.lexists(at(view, "open/f"))


def test_what_one_may_not_read_is_not_read_though_no_other_name_is_known(linked: Path, mounted: Mounter) -> None:
    view = mounted(book=book(linked, path_rule(linked, "guarded", RuleState.DENY)), asker=Answers())
    with pytest.raises(PermissionError):
        open(at(view, "guarded/f"), "rb").close()


def test_the_ask_about_a_hard_link_is_about_its_guarded_name(linked: Path, mounted: Mounter) -> None:
    rule = path_rule(linked, "guarded", RuleState.WRITE_ASK)
    view = mounted(book=book(linked, rule), asker=(answers := Answers(Decision.ALLOW)))
    append(at(view, "open/f"))
    assert [question.path for question in answers.asked] == [os.fsencode(linked / "guarded/f")]
    with open(at(view, "guarded/f"), "rb") as file:
        assert file.read() == b"kept!"


def test_a_name_that_cannot_be_found_is_asked_about(linked: Path, mounted: Mounter, tmp_path: Path) -> None:
    (linked / "alone").write_bytes(b"1")
    os.link(linked / "alone", tmp_path / "outside")
    view = mounted(
        book=book(linked, path_rule(linked, "guarded", RuleState.DENY)), asker=(answers := Answers(Decision.DENY))
    )
    with pytest.raises(PermissionError):
        append(at(view, "alone"))
    assert [question.path for question in answers.asked] == [os.fsencode(linked / "alone")]
    answers.decision = Decision.ALLOW
    append(at(view, "alone"))
    with open(at(view, "alone"), "rb") as file:
        assert file.read() == b"1!"


@pytest.mark.parametrize("state", [RuleState.ASK, RuleState.WRITE_ASK], ids=lambda state: state.value)
@pytest.mark.parametrize("seen", [False, True], ids=["never-seen", "seen"])
def test_nobody_is_asked_about_other_names_when_only_times_are_set(
    linked: Path, mounted: Mounter, state: RuleState, seen: bool
) -> None:
    rule = path_rule(linked, "guarded", state)
    view = mounted(book=book(linked, rule), asker=(answers := Answers(Decision.DENY)))
    os.stat(at(view, "open/f"))
    if seen:
        os.stat(at(view, "guarded/f"))
    os.utime(at(view, "open/f"), ns=(1, 2))
    assert not answers.asked
    assert os.stat(at(view, "open/f")).st_mtime_ns == 2
    with pytest.raises(PermissionError):
        os.chmod(at(view, "open/f"), 0o600)
    assert [question.path for question in answers.asked] == [os.fsencode(linked / "guarded/f")]


def test_times_of_a_file_are_asked_about_if_no_known_name_may_be_changed(linked: Path, mounted: Mounter) -> None:
    rule = path_rule(linked, "guarded", RuleState.WRITE_ASK)
    view = mounted(book=book(linked, rule), asker=(answers := Answers(Decision.DENY)))
    with pytest.raises(PermissionError):
        os.utime(at(view, "guarded/f"), ns=(1, 2))
    assert [question.path for question in answers.asked] == [os.fsencode(linked / "guarded/f")]


def test_nobody_is_asked_about_names_that_cannot_be_found_when_only_times_are_set(
    linked: Path, mounted: Mounter, tmp_path: Path
) -> None:
    (linked / "alone").write_bytes(b"1")
    os.link(linked / "alone", tmp_path / "outside")
    rule = path_rule(linked, "guarded", RuleState.DENY)
    view = mounted(book=book(linked, rule), asker=(answers := Answers(Decision.DENY)))
    os.utime(at(view, "alone"), ns=(1, 2))
    assert not answers.asked
    with pytest.raises(PermissionError):
        os.truncate(at(view, "alone"), 0)
    assert [question.path for question in answers.asked] == [os.fsencode(linked / "alone")]


def test_where_nothing_is_guarded_nobody_looks_for_names(linked: Path, mounted: Mounter, tmp_path: Path) -> None:
    (linked / "alone").write_bytes(b"1")
    os.link(linked / "alone", tmp_path / "outside")
    view = mounted(asker=(answers := Answers(Decision.DENY)))
    append(at(view, "alone"))
    append(at(view, "open/f"))
    assert not answers.asked


def test_names_that_are_all_open_are_changed_without_a_question(linked: Path, mounted: Mounter) -> None:
    (linked / "a/deep").mkdir(parents=True)
    (linked / "a/deep/one").write_bytes(b"1")
    os.link(linked / "a/deep/one", linked / "two")
    rule = path_rule(linked, "guarded", RuleState.DENY)
    view = mounted(book=book(linked, rule), asker=(answers := Answers(Decision.DENY)))
    append(at(view, "a/deep/one"))
    append(at(view, "two"))
    assert not answers.asked
    with open(at(view, "a/deep/one"), "rb") as file:
        assert file.read() == b"1!!"


def test_removing_and_replacing_an_open_name_leaves_the_guarded_one(linked: Path, mounted: Mounter) -> None:
    view = mounted(book=book(linked, path_rule(linked, "guarded", RuleState.DENY)), asker=Answers())
    Path(at(view, "open/new")).write_bytes(b"new")
    os.rename(at(view, "open/new"), at(view, "open/f"))
    os.unlink(at(view, "open/f"))
    view.commit()
    assert (linked / "guarded/f").read_bytes() == b"kept"


@pytest.mark.parametrize("change", CHANGES)
def test_a_name_that_was_renamed_to_a_guarded_place_is_guarded_there(
    linked: Path, mounted: Mounter, change: str
) -> None:
    (linked / "open/g").hardlink_to(linked / "open/f")
    view = mounted(book=book(linked), asker=Answers(Decision.ALLOW))
    os.rename(at(view, "open/g"), at(view, "guarded/g"))
    view.remount()
    replace_rules(view, path_rule(linked, "guarded/g", RuleState.READ_ONLY))
    with pytest.raises(PermissionError):
        CHANGES[change](at(view, "open/f"))


LOSSES: dict[str, Callable[[MountedView, str, str], object]] = {
    "removed": lambda view, lost, _: os.unlink(at(view, lost)),
    "renamed": lambda view, lost, kept: os.rename(at(view, lost), at(view, os.path.dirname(kept) + "/g")),
    "replaced": lambda view, lost, _: os.rename(at(view, "new"), at(view, lost)),
    "left-by-travel": lambda view, *_: view.travel(1),
    "removed-by-the-host": lambda view, lost, _: os.unlink(os.path.join(os.fsdecode(view.base), lost)),
}
"""Ways for a file to lose a name; they take that name and another one, which stays."""


def see_and_lose(view: MountedView, lost: str, kept: str, loss: str) -> int:
    """Have a file seen by two names, the second last, and lose the first; return what holds the
    file.
    """
    Path(at(view, "new")).write_bytes(b"new")
    if loss == "left-by-travel":
        os.unlink(at(view, lost))
        view.snapshot()
        view.travel(0)
    os.stat(at(view, lost))
    held = os.open(at(view, kept), os.O_PATH)
    LOSSES[loss](view, lost, kept)
    return held


@pytest.mark.parametrize("loss", LOSSES)
def test_a_name_that_is_gone_shows_nothing_of_a_file_that_is_hidden(linked: Path, mounted: Mounter, loss: str) -> None:
    view = mounted(book=book(linked))
    held = see_and_lose(view, "open/f", "guarded/f", loss)
    try:
        assert os.stat(held).st_size == 4
        replace_rules(view, path_rule(linked, "guarded", RuleState.HIDDEN))
        with refused(errno.ENOENT):
            os.stat(held)
    finally:
        os.close(held)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_name_that_is_gone_keeps_nobody_from_reading(linked: Path, mounted: Mounter, loss: str) -> None:
    view = mounted(book=book(linked), asker=(answers := Answers()))
    os.close(see_and_lose(view, "guarded/f", "open/f", loss))
    replace_rules(view, path_rule(linked, "guarded/f", RuleState.DENY))
    assert Path(at(view, "open/f")).read_bytes() == b"kept"
    assert not answers.refusals
