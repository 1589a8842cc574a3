"""What a list of changes is folded to."""

from __future__ import annotations

import stat

from yolofs.changes.changes import Aspect, Change, ChangeKind, Side
from yolofs.cli.show.folding import Folded, Sort, fold, group_counts_text, shown_top
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


def folded(*changes: Change, kept: tuple[bytes, ...] = (), outside: tuple[bytes, ...] = ()) -> Folded:
    return fold(
        changes,
        in_project=lambda change: change.path not in outside,
        is_outside=lambda change: change.path in outside,
        is_kept=lambda change: change.path in kept,
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
