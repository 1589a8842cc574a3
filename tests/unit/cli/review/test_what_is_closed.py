"""Which directories and sections of the list are closed, at first and by keys."""

from __future__ import annotations

import stat

import msgspec

from tests.unit.cli.review.models import change, comparison, press, shown, side
from yolofs.changes.changes import Change, ChangeKind
from yolofs.cli.review.keys import ReviewModel
from yolofs.cli.show.folding import Sort
from yolofs.hostcode.mark import Mark
from yolofs.paths import RelPath


def new_directory(path: bytes) -> Change:
    made = side()
    return Change(ChangeKind.ADDED, RelPath(path), new=msgspec.structs.replace(made, type=stat.S_IFDIR, data=None))


def test_closed_directories_stay_closed_in_the_next_comparison(model: ReviewModel) -> None:
    press(model, "jjjh")
    assert shown(model)[4:6] == ["    +d/ (2)", ""]
    model.compared(comparison(change(b"p/a"), change(b"p/d/b"), change(b"p/d/c", ChangeKind.ADDED)))
    assert shown(model)[:4] == ["  in the project (3)", "  M a", "    +d/ (2)", ""]


def test_what_git_and_python_keep_for_themselves_is_closed_at_first_and_stays_as_the_user_has_it() -> None:
    made = ReviewModel()
    changes = [
        change(b"p/.git/index"),
        change(b"p/.git/objects/a", ChangeKind.ADDED),
        change(b"p/.git/hooks/x", ChangeKind.ADDED),
        change(b"p/.git/config", ChangeKind.DELETED),
        change(b"p/s/__pycache__/a", ChangeKind.ADDED),
        change(b"p/s/b"),
    ]
    known = comparison(*changes, marks={RelPath(b"p/.git/hooks/x"): (Mark.GIT,)})
    made.compared(known)
    rows = [
        "  deleted (1)",
        "    .git/",
        "    D config",
        "  what the host would run o… (1)",
        "    .git/hooks/",
        "    A x [run by git]",
        "  in the project (4)",
        "    +.git/ (2)",
        "    s/",
    ]
    assert shown(made) == rows
    made.key("=")
    assert shown(made) != rows
    opened = [(node.path, node.is_open) for node in made.tree.all()]
    made.compared(known)
    assert [(node.path, node.is_open) for node in made.tree.all()] == opened


def test_what_lists_fold_is_a_closed_section_of_its_own_at_the_end() -> None:
    git, ignored = (
        [change(b"p/.git/index"), change(b"p/.git/x.lock", ChangeKind.DELETED)],
        change(b"p/out/a", ChangeKind.ADDED),
    )
    folded = {(one.path, one.kind is ChangeKind.DELETED): Sort.GIT for one in git}
    folded[ignored.path, False] = Sort.IGNORED
    known = comparison(*git, ignored, change(b"p/s"), change(b"p/scratch/a"))
    known = msgspec.structs.replace(known, folded=folded, told={Sort.GIT: "git: 1 commit on main"})
    made = ReviewModel()
    made.compared(known)
    assert shown(made)[:5] == [
        "  in the project (2)",
        "  M s",
        "    scratch/",
        "    M a",
        "  +git: 1 commit on main (2)",
    ]
    assert shown(made)[5] == "  +ignored by git (1)"
    made.key("=")
    assert shown(made)[4:7] == ["  git: 1 commit on main (2)", "    .git/", "    M index"]
    made.key("-")
    assert shown(made)[3:5] == ["  +git: 1 commit on main (2)", "  +ignored by git (1)"]
    made.key("a")
    assert len(made.accepted) == 5


def test_opening_a_directory_opens_those_that_are_alone_in_it() -> None:
    model = ReviewModel()
    tops = (b"p/new", b"p/new/one", b"p/new/one/two", b"p/new/one/two/left", b"p/new/one/two/right")
    files = (change(b"p/new/one/two/left/f", ChangeKind.ADDED), change(b"p/new/one/two/right/g", ChangeKind.ADDED))
    model.compared(comparison(*map(new_directory, tops), *files))
    press(model, "-gj")
    assert shown(model)[:2] == ["  in the project (7)", "  A +new/ (7)"]
    press(model, "l")
    rows = ["  A new/", "    A one/", "      A two/", "        A +left/ (2)", "        A +right/ (2)"]
    assert shown(model)[1:6] == rows
    press(model, "h")
    assert shown(model)[1:3] == ["  A +new/ (7)", ""]


def test_a_large_new_directory_is_closed_at_first_and_a_changed_one_is_not() -> None:
    model = ReviewModel()
    files = [
        change(b"p/%b/f%03d" % (top, number), ChangeKind.ADDED) for top in (b"new", b"old") for number in range(45)
    ]
    model.compared(comparison(new_directory(b"p/new"), change(b"p/z"), *files))
    assert shown(model)[:4] == ["  in the project (92)", "  A +new/ (46)", "    old/", "    A f000"]
    press(model, "l")
    assert shown(model)[2:3] == ["    A f000"]


def test_a_directory_turns_out_to_be_large_after_the_first_screen_and_is_closed() -> None:
    model = ReviewModel()
    files = [change(b"p/new/f%03d" % number, ChangeKind.ADDED) for number in range(45)]
    few = comparison(new_directory(b"p/new"), new_directory(b"p/other"), change(b"p/other/a"), *files[:3])
    model.compared(msgspec.structs.replace(few, is_partial=True))
    assert shown(model)[1:3] == ["  A new/", "    A f000"]
    press(model, "jjjjh")
    assert shown(model)[5:7] == ["  A +other/ (2)", ""]
    model.compared(comparison(new_directory(b"p/new"), new_directory(b"p/other"), change(b"p/other/a"), *files))
    assert shown(model)[1:4] == ["  A +new/ (46)", "  A +other/ (2)", ""]


def test_minus_closes_all_directories_and_equals_opens_them(model: ReviewModel) -> None:
    press(model, "-")
    assert shown(model)[2:6] == ["  in the project (3)", "  M a", "    +d/ (2)", ""]
    press(model, "=")
    assert shown(model)[4:7] == ["    d/", "    M b", "    A c"]


def test_the_inside_of_a_git_directory_is_closed_until_it_is_opened() -> None:
    model = ReviewModel()
    changes = [change(b"p/.git/index"), change(b"p/.git/logs/HEAD"), change(b"p/a")]
    model.compared(comparison(*changes))
    assert shown(model)[:4] == ["  in the project (3)", "    +.git/ (2)", "  M a", ""]
    press(model, "=")
    assert "    M index" in shown(model)
    model.compared(comparison(*changes))
    assert "    M index" in shown(model)


def test_a_git_directory_that_comes_later_is_closed_too() -> None:
    model = ReviewModel()
    model.compared(comparison(change(b"p/a")))
    model.compared(comparison(change(b"p/.git/index"), change(b"p/a")))
    assert shown(model)[:3] == ["  in the project (2)", "    +.git/ (1)", "  M a"]


def test_a_deletion_in_a_git_directory_is_never_closed_away() -> None:
    model = ReviewModel()
    model.compared(comparison(change(b"p/.git/refs/heads/work", ChangeKind.DELETED), change(b"p/a")))
    assert "    D work" in shown(model)
