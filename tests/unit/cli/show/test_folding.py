"""What a list of changes is folded to."""

from __future__ import annotations

import stat

import pytest

from yolofs.changes.changes import Aspect, Change, ChangeKind, Side
from yolofs.cli.show.folding import Folded, Sort, fold, group_counts_text, shown_top
from yolofs.hostcode.mark import Mark, Marks
from yolofs.paths import RelPath


def side(kind: int = stat.S_IFREG) -> Side:
    return Side(kind, 0o644, 0, 0, 0, 1, 0, b"/m", b"/m", None)


def added(path: bytes, kind: int = stat.S_IFREG) -> Change:
    return Change(ChangeKind.ADDED, RelPath(path), new=side(kind))


def deleted(path: bytes, kind: int = stat.S_IFREG) -> Change:
    return Change(ChangeKind.DELETED, RelPath(path), old=side(kind))


def modified(path: bytes) -> Change:
    return Change(ChangeKind.MODIFIED, RelPath(path), old=side(), new=side(), content=True)


def renamed(old: bytes, new: bytes) -> Change:
    return Change(ChangeKind.RENAMED, RelPath(new), RelPath(old), side(), side())


def touched(path: bytes) -> Change:
    return Change(ChangeKind.METADATA, RelPath(path), old=side(), new=side(), metadata=(Aspect.TIME,))


def folded(
    *changes: Change, kept: tuple[bytes, ...] = (), outside: tuple[bytes, ...] = (), marks: Marks | None = None
) -> Folded:
    return fold(
        changes,
        in_project=lambda change: change.path not in outside,
        is_outside=lambda change: change.path in outside,
        is_kept=lambda change: change.path in kept,
        marks=marks or {},
        repositories=None,
    )


def lines(found: Folded) -> list[tuple[bytes, int]]:
    return [(line.change.path, len(line.inside)) for line in found.lines]


def groups(found: Folded) -> list[tuple[Sort, list[bytes]]]:
    return [(group.sort, [change.path for change in group.changes]) for group in found.groups]


DIRECTORY = stat.S_IFDIR


def test_a_new_directory_has_all_that_is_new_in_it_and_not_what_only_begins_with_its_name() -> None:
    found = folded(
        added(b"new", DIRECTORY), added(b"new-file"), added(b"new/deep", DIRECTORY), added(b"new/deep/file"),
        added(b"old/file"), renamed(b"old/moved", b"new/moved"),
    )  # fmt: skip
    assert lines(found) == [(b"new", 2), (b"new/moved", 0), (b"new-file", 0), (b"old/file", 0)]


def test_a_directory_that_takes_the_place_of_another_has_a_line_beside_it() -> None:
    found = folded(deleted(b"d", DIRECTORY), deleted(b"d/old"), added(b"d", DIRECTORY), added(b"d/new"))
    assert [(line.change.kind, len(line.inside)) for line in found.lines] == [
        (ChangeKind.DELETED, 1),
        (ChangeKind.ADDED, 1),
    ]


def of_another_type(path: bytes, old: int, new: int) -> Change:
    return Change(ChangeKind.TYPE, RelPath(path), old=side(old), new=side(new), content=True)


def test_what_takes_the_place_of_a_directory_has_all_that_was_in_it() -> None:
    went = folded(of_another_type(b"d", DIRECTORY, stat.S_IFLNK), deleted(b"d/a"), deleted(b"d/b.pyc"))
    (line,) = went.lines
    assert (line.change.path, line.count_text, line.deletes) == (b"d", "  (and 2 deleted in it)", True)
    came = folded(of_another_type(b"d", stat.S_IFREG, DIRECTORY), added(b"d/a"))
    (line,) = came.lines
    assert (line.change.path, line.count_text, line.deletes) == (b"d", "  (and 1 added in it)", False)


def test_what_is_kept_has_its_own_line_in_a_directory_a_git_directory_and_bytecode() -> None:
    paths = (b"new/hook", b".git/hooks/pre-commit", b"a.pyc", b"touched")
    found = folded(added(b"new", DIRECTORY), *map(added, paths[:3]), touched(paths[3]), kept=paths)
    assert lines(found) == [(paths[1], 0), (paths[2], 0), (b"new", 0), (paths[0], 0), (paths[3], 0)]
    assert not found.groups


def test_all_in_one_git_directory_is_one_line_and_that_itself_is_not() -> None:
    found = folded(added(b".git/objects/aa", DIRECTORY), added(b".git/objects/aa/b"), added(b"sub/.git/index"))
    assert lines(found) == []
    assert groups(found) == [
        (Sort.GIT, [b".git/objects/aa", b".git/objects/aa/b"]),
        (Sort.GIT, [b"sub/.git/index"]),
    ]
    new = folded(added(b".git", DIRECTORY), added(b".git/HEAD"), renamed(b"file", b"x/.git/file"))
    assert lines(new) == [(b".git", 1), (b"x/.git/file", 0)]


def test_a_cache_counts_as_bytecode_only_if_nothing_else_is_in_it() -> None:
    good = folded(added(b"__pycache__", DIRECTORY), added(b"__pycache__/a.pyc"))
    assert (lines(good), groups(good)) == ([], [(Sort.BYTECODE, [b"__pycache__", b"__pycache__/a.pyc"])])
    assert lines(folded(added(b"b.pyo"))) == [(b"b.pyo", 0)]
    bad = folded(added(b"__pycache__", DIRECTORY), added(b"__pycache__/a.pyc"), added(b"__pycache__/a.sh"))
    assert lines(bad) == [(b"__pycache__", 2)]
    link = folded(added(b"a.pyc", stat.S_IFLNK), renamed(b"a.py", b"b.pyc"))
    assert lines(link) == [(b"a.pyc", 0), (b"b.pyc", 0)]


def test_a_deletion_stays_where_git_cannot_tell_that_it_does_not_track_it() -> None:
    assert lines(folded(deleted(b"a.pyc"))) == [(b"a.pyc", 0)]


def test_outside_the_project_only_directories_and_times_fold() -> None:
    paths = (b"o/a.pyc", b"o/touched", b"o/.git/index", b"o/.git/pack")
    found = folded(added(paths[0]), touched(paths[1]), added(paths[2]), touched(paths[3]), outside=paths)
    assert sorted(path for path, _ in lines(found)) == [paths[2], paths[0]]
    assert groups(found) == [(Sort.TIMES, [paths[3], paths[1]])]


def test_times_alone_are_one_line_which_counts_what_is_in_it() -> None:
    found = folded(touched(b"a"), touched(b"b"))
    (group,) = found.groups
    assert (group.sort, group_counts_text(group)) == (Sort.TIMES, "2 changes")


def test_a_submodule_has_a_group_of_its_own_whatever_its_name() -> None:
    found = folded(
        modified(b"p/.git/index"), modified(b"p/.git/modules/lib/sub/index"), modified(b"p/.git/modules/odd"),
        modified(b"p/.git/modules/lib/sub/modules/deep/objects/12/3456"), modified(b"p/.git/modules/index"),
    )  # fmt: skip
    assert [(shown_top(group.top, RelPath(b"p")), len(group.lines)) for group in found.groups if group.top] == [
        ("", 3),
        (", submodule lib/sub", 1),
        (", submodule lib/sub/modules/deep", 1),
    ]
    assert shown_top(RelPath(b"p/q/.git/modules/a b"), RelPath(b"p")) == " in q, submodule a b"


TOOL = [RelPath(b"tools/x/file%d" % number) for number in range(9)]


def alike(found: Folded) -> list[tuple[bytes, int, int]]:
    return [(line.change.path, len(line.inside), len(line.alike)) for line in found.lines]


def installed(*more: Change, mark: Mark = Mark.TOOL) -> Folded:
    """Return what is made of a tool that was installed, beside ``more``."""
    return folded(added(b"tools/x", DIRECTORY), *map(added, TOOL), *more, marks=dict.fromkeys(TOOL, (mark,)))


def test_a_new_directory_of_which_most_files_carry_one_mark_has_one_line_with_it() -> None:
    assert alike(installed(added(b"tools/x/deep", DIRECTORY), added(b"tools/x/plain"))) == [(b"tools/x", 11, 9)]


def test_what_is_marked_otherwise_or_is_kept_in_such_a_directory_has_its_line() -> None:
    marks: dict[RelPath, tuple[Mark, ...]] = {**dict.fromkeys(TOOL, (Mark.TOOL,))}
    marks[RelPath(b"tools/x/evil")] = (Mark.TOOL, Mark.COMMAND)
    marks[RelPath(b"tools/x/setuid")] = (Mark.SETUID,)
    linked = Change(ChangeKind.ADDED, RelPath(b"tools/x/linked"), new=side(), unseen_names=2)
    marks[linked.path] = marks[RelPath(b"tools/x/kept")] = marks[RelPath(b"tools/x/moved")] = (Mark.TOOL,)
    others = [added(b"tools/x/evil"), added(b"tools/x/kept"), linked, renamed(b"a", b"tools/x/moved")]
    found = folded(
        added(b"tools/x", DIRECTORY), *map(added, TOOL), *others, added(b"tools/x/setuid"),
        kept=(b"tools/x/kept",), marks=marks,
    )  # fmt: skip
    apart = [(b"tools/x/" + name, 0, 0) for name in (b"evil", b"kept", b"linked", b"moved", b"setuid")]
    assert alike(found) == [(b"tools/x", 9, 9), *apart]


@pytest.mark.parametrize("mark", [Mark.COMMAND, Mark.SETUID, Mark.SSH, Mark.YOLOFS, Mark.UNSEEN, Mark.LISTED])
def test_what_has_to_be_judged_by_its_name_has_its_line(mark: Mark) -> None:
    assert alike(installed(mark=mark)) == [(b"tools/x", 0, 0), *((path, 0, 0) for path in TOOL)]


def test_a_few_files_and_a_part_of_a_directory_have_their_lines() -> None:
    marks = dict.fromkeys(TOOL[1:], (Mark.TOOL,))
    assert len(folded(added(b"tools/x", DIRECTORY), *map(added, TOOL[1:]), marks=marks).lines) == 9
    plain = [added(b"tools/x/plain%d" % number) for number in range(9)]
    assert len(installed(*plain).lines) == 10


def test_a_directory_that_was_there_or_took_the_place_of_something_does_not_fold() -> None:
    marks = dict.fromkeys(TOOL, (Mark.TOOL,))
    assert len(folded(*map(added, TOOL), marks=marks).lines) == 9
    came = of_another_type(b"tools/x", stat.S_IFREG, DIRECTORY)
    assert len(folded(came, *map(added, TOOL), marks=marks).lines) == 10
    assert len(folded(added(b"tools/x", DIRECTORY), *map(modified, TOOL), marks=marks).lines) == 10


def test_the_line_is_that_of_the_topmost_directory_that_has_such_a_file_itself() -> None:
    above = folded(
        added(b"tools", DIRECTORY), added(b"tools/x", DIRECTORY), *map(added, TOOL), added(b"tools/other"),
        marks=dict.fromkeys(TOOL, (Mark.TOOL,)),
    )  # fmt: skip
    assert alike(above) == [(b"tools", 1, 0), (b"tools/x", 9, 9)]
    listed = {**dict.fromkeys(TOOL, (Mark.TOOL,)), RelPath(b"tools/list"): (Mark.TOOL,)}
    both = folded(
        added(b"tools", DIRECTORY), added(b"tools/list"), added(b"tools/x", DIRECTORY), *map(added, TOOL), marks=listed
    )
    assert alike(both) == [(b"tools", 11, 10)]


def test_in_a_git_directory_only_what_is_marked_goes_with_the_directory() -> None:
    paths = [RelPath(b".git/rebase-merge/file%d" % number) for number in range(9)]
    plain = added(b".git/rebase-merge/plain")
    found = folded(
        added(b".git/rebase-merge", DIRECTORY), *map(added, paths), plain, marks=dict.fromkeys(paths, (Mark.GIT,))
    )
    assert alike(found) == [(b".git/rebase-merge", 9, 9)]
    assert groups(found) == [(Sort.GIT, [plain.path])]
