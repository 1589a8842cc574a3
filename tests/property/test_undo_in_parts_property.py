"""Commits over hard links are undone in parts and as wholes, in any order, and undos are undone:
base is what it was, to the bit, and a redo makes it what it was after them.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given

from tests.property.test_commit_property import has_second_device
from tests.property.undone_in_parts import Command, Program, check, programs
from tests.support.model_steps import by_night
from tests.support.user_identity import NOBODY


@by_night(nightly=2000)
@given(programs)
@example(  # what an undo of an undo has applied again is undone with the commit itself
    Program([], [[("symlink", b"h0", b"h0")]], [Command(0), Command(1)], [0])
)
@example(  # a move is undone before a later change of what moved
    Program(
        [(b"q/h0", None)],
        [[("rename", b"q/h0", b"q/s/h2")], [("utimes", b"q/s/h2", 1_450_000_000_000_000_000)]],
        [],
        [0],
    )
)
@example(  # an undo between two commits has given a directory the time that the first one had given it
    Program(
        [],
        [[("rename", b"q/s", b"q/n")], [("save", b"q/h0", b"one\n")]],
        [Command(1, (b"q/h0",)), Command(None)],
        [0],
    )
)
@example(  # the undo of a commit takes back a move that a later commit had applied again
    Program(
        [(b"h0", None), (b"h1", None), (b"h2", None)],
        [
            [("unlink", b"h0"), ("rename", b"q/s", b"n")],
            [("chmod", b"q", 0o500), ("chmod", b"h1", 0o755)],
        ],
        [Command(4, (b"q/h1", b"q/s")), Command(None)],
        [4, 0],
    )
)
@example(  # a part of the undo has only linked a name to a file that a later commit has changed
    Program(
        [(b"h0", None), (b"h1", 0), (b"q/s/h1", 0)],
        [
            [("append", b"h0", b"one\n"), ("unlink", b"h1"), ("save", b"q/h0", b"two\n")],
            [("utimes", b"q/s/h1", 1_450_000_000_000_000_000)],
        ],
        [Command(0, (b"h1",))],
        [0],
    )
)
@example(  # a part of the undo has brought back what the undo of an earlier commit then takes away
    Program(
        [(b"p/h2", None)],
        [[("save", b"q/s/h0", b"one\n")], [("unlink", b"q/s/h0"), ("to_link", b"p/h2")], [("rename", b"p", b"n")]],
        [Command(1)],
        [0],
    )
)
@example(  # a redo by undoing an undo, beside others
    Program(
        [(b"h2", None), (b"q/h1", 0), (b"q/h2", None)],
        [
            [("create", b"q/h0", b"one\n", 0o644)],
            [("overwrite", b"h2", b"two\n"), ("rename", b"q/h2", b"h1")],
            [("overwrite", b"q/h1", b"three\n")],
        ],
        [Command(3), Command(7)],
        [1, 3, 1],
    )
)
@example(  # what an undo of an undo has brought back gets another name, and staged work is dropped
    Program([(b"q/s/h0", None)], [[("link", b"q/s/h0", b"h1")], [("rmtree", b"q")]], [], [0])
)
@example(  # a name stays as its file is kept by a later commit, and so does what took its place
    Program([(b"q/s/h0", None), (b"q/s/h2", 0)], [[("to_folder", b"q/s/h2")], [("to_folder", b"q/s/h0")]], [], [0])
)
@example(  # a commit applies again what was undone, and an undo of the first takes it back
    Program(
        [(b"h1", None), (b"h2", None), (b"p/h0", 1), (b"p/h1", None), (b"q/h0", 1), (b"q/h1", 0)],
        [
            [("to_link", b"p/h1"), ("chmod", b"q/h1", 0o640), ("save", b"q/s/h1", b"one\n")],
            [("create", b"q/s/h2", b"two\n", 0o644), ("unlink", b"q/s/h1"), ("chmod", b"p/h0", 0o640)],
        ],
        [Command(2), Command(None), Command(4)],
        [5],
    )
)
@example(  # the view has something of its own at each name of a file that comes back
    Program([(b"q/s/h0", None), (b"q/s/h2", 0)], [[("to_link", b"q/s/h2"), ("save", b"q/s/h0", b"one\n")]], [], [0])
)
@example(  # a later commit has removed the last name of a file with the directory that it lay in
    Program([(b"h0", None), (b"h2", None), (b"q/h0", 1)], [[("rename", b"h0", b"h2")], [("rmtree", b"q")]], [], [0])
)
@example(  # what an undo of a part has brought back is gone, as the undo of an earlier commit has taken it away
    Program(
        [(b"h0", None)],
        [
            [("save", b"h1", b"one\n")],
            [("overwrite", b"h0", b"one\n"), ("overwrite", b"h1", b"one\n")],
            [("overwrite", b"h0", b"two\n")],
        ],
        [Command(1), Command(0)],
        [],
    )
)
@example(  # a part is named by where it would have been made in a directory, had that not moved
    Program(
        [(b"h0", None)],
        [[("to_folder", b"q/s/h0"), ("create", b"q/s/h0", b"one\n", 0o644), ("rename", b"q", b"n")]],
        [Command(0, (b"q/s/h0",))],
        [],
    )
)
@example(  # two undos have applied a commit again in parts, and only one of them is undone before the commit is
    Program(
        [(b"h1", 3), (b"p/h2", 0)],
        [
            [
                ("create", b"q/h2", b"two\n", 420),
                ("to_folder", b"p/h1"),
                ("rename", b"q", b"p/n"),
                ("to_folder", b"h0"),
                ("create", b"h0", b"one\n", 420),
            ]
        ],
        [
            Command(2, (b"q/h2", b"h0")),
            Command(7, (b"q/s/h0", b"p")),
            Command(7, ()),
            Command(1, (b"q/s/h0", b"p")),
            Command(None, ()),
        ],
        [4, 4, 0],
    )
)
@example(  # an undo of the commit itself has taken away what an undo of an undo had applied again, but not all else
    Program(
        [(b"h1", None)],
        [
            [("create", b"q/h2", b"two\n", 420), ("create", b"h0", b"one\n", 420), ("create", b"h2", b"one\n", 420)],
            [("append", b"h2", b"two\n")],
        ],
        [Command(0, (b"h0",)), Command(2), Command(0)],
        [2, 2, 2, 2],
    )
)
@example(  # a later commit has given a file the mode again that it had: an undo of that gives it another one
    Program(
        [(b"p/h1", None), (b"p/h2", 0)],
        [[("chmod", b"p/h2", 0o755), ("create", b"h2", b"one\n", 0o644)], [("chmod", b"p/h1", 0o644)]],
        [Command(0)],
        [0],
    )
)
@example(  # of two names that were all of a file, one comes back, goes and comes back before the other does
    Program(
        [(b"q/s/h1", None), (b"p/h1", 0)],
        [[("to_folder", b"p/h1"), ("rmtree", b"q/s")]],
        [Command(0, (b"p",)), Command(1)],
        [1, 0],
    )
)
@example(  # a directory with the time of a commit that is undone has got a mode by a later one
    Program([(b"q/h0", None)], [[("rename", b"q/h0", b"p/h0")], [("chmod", b"q", 0o700)]], [Command(0)], [0])
)
@example(  # a directory that moved into another one comes back in part, moves again and comes back
    Program(
        [(b"h0", None)],
        [[("rename", b"q/s", b"p/n"), ("to_folder", b"q/h1")]],
        [Command(0), Command(1, (b"q", b"q/s")), Command(2, (b"q/s",)), Command(None)],
        [0, 2, 4],
    )
)
def test_base_is_what_it_was_in_whatever_order_parts_are_undone(program: Program) -> None:
    check(program)


@pytest.mark.skipif(not has_second_device(), reason="there is no second device to write to")
@by_night(nightly=2000)
@given(programs)
@example(  # a name that the undo of another commit takes away is a leftover on the disk of base
    Program(
        [(b"h0", None), (b"h2", 0), (b"q/h0", 0)],
        [[("link", b"h2", b"p/h0")], [("overwrite", b"q/h0", b"one\n")]],
        [],
        [0],
    )
)
@example(  # the file of which a name is a link again has been changed meanwhile, by an undo of another commit
    Program(
        [(b"h1", None), (b"h2", 0)],
        [[("utimes", b"h1", 1_450_000_000_000_000_000)], [("overwrite", b"h2", b"one\n")], [("unlink", b"h1")]],
        [],
        [1],
    )
)
@example(  # both names of a file come back, by two undos
    Program(
        [(b"h0", None), (b"h2", None), (b"q/h0", None), (b"q/s/h0", 0), (b"q/s/h1", 2)],
        [[("to_folder", b"q/h0"), ("rmtree", b"q/s")], [("rename", b"h2", b"h0")]],
        [],
        [0],
    )
)
@example(  # a directory with a hard link in it comes back name by name, is removed again, and the rest comes back
    Program(
        [(b"q/s/h2", None), (b"p/h1", 0), (b"q/h1", None)],
        [[("rmtree", b"q/s"), ("chmod", b"q/h1", 0o500)]],
        [Command(0, (b"q/s",)), Command(None), Command(0)],
        [3, 3],
    )
)
def test_base_is_what_it_was_where_the_session_is_on_another_device(program: Program) -> None:
    check(program, state="/dev/shm")


@pytest.mark.mount
@by_night(nightly=2000)
@given(programs)
@example(  # both names of a file come back to another disk, by two undos
    Program([(b"p/h0", None), (b"p/h2", 0)], [[("rmtree", b"p")], [("create", b"p/h2", b"one\n", 0o644)]], [], [0])
)
@example(  # a name that becomes a link again, and the copy on the other disk, which goes for it
    Program([(b"q/h1", None), (b"q/s/h0", 0)], [[("rename", b"q/h1", b"p/h0")]], [Command(0, (b"p",))], [0])
)
@example(  # both names of a file have moved, by two commits
    Program([(b"h0", None), (b"h2", 0)], [[("rename", b"h0", b"p/h0")], [("rename", b"h2", b"p/h1")]], [], [0])
)
@example(  # one name has moved in a directory, and the other one is replaced by another commit
    Program([(b"h2", None), (b"q/s/h2", 0)], [[("rename", b"q", b"p/n")], [("to_link", b"h2")]], [], [0])
)
@example(  # the staging is dropped, and with it all knowledge of files that an undo had put back
    Program(
        [
            (b"h0", None),
            (b"h2", None),
            (b"p/h1", None),
            (b"p/h2", None),
            (b"q/h1", None),
            (b"q/h2", None),
            (b"q/s/h0", None),
            (b"q/s/h1", 7),
            (b"q/s/h2", 5),
        ],
        [
            [("rename", b"q/h1", b"p/h2")],
            [("append", b"p/h1", b"one\n"), ("to_folder", b"h0"), ("unlink", b"p/h2"), ("rename", b"q/s", b"p/n")],
            [("chmod", b"h0", 0o600), ("rename", b"q/s", b"q/n")],
        ],
        [Command(1), Command(None)],
        [0],
    )
)
@example(  # a file has left the other disk, and got a name; an undo brings it back
    Program([(b"h1", None), (b"p/h0", None)], [[("rename", b"h1", b"p/h0", 2), ("link", b"h1", b"q/h1")]], [], [0])
)
@example(  # a name has moved there, and an undo of an earlier commit has changed the file since
    Program([(b"h1", None), (b"q/h0", 0)], [[("overwrite", b"q/h0", b"one\n")], [("rename", b"h1", b"p/h2")]], [], [0])
)
@example(  # the same, and it has changed places with a file there
    Program(
        [(b"p/h2", None), (b"h1", None), (b"q/h0", 1)],
        [[("utimes", b"q/h0", 1_450_000_000_000_000_000)], [("rename", b"h1", b"p/h2", 2)]],
        [],
        [0],
    )
)
@example(  # a name has moved there, and a later commit has changed the file in its place
    Program(
        [(b"h1", None), (b"q/h0", 0)],
        [[("rename", b"h1", b"p/h2")], [("utimes", b"q/h0", 1_450_000_000_000_000_000)]],
        [],
        [0],
    )
)
@example(  # names have moved there in a directory, and an undo of an earlier commit has changed the file since
    Program(
        [(b"h1", None), (b"q/s/h0", 0), (b"q/h1", 0)],
        [[("overwrite", b"h1", b"one\n")], [("rename", b"q", b"p/n")]],
        [],
        [0],
    )
)
@example(  # both names of a file have come back and gone again: an undo of the rest brings back neither
    Program(
        [(b"p/h0", None), (b"p/h2", 0)],
        [
            [("unlink", b"p/h0"), ("unlink", b"p/h2"), ("create", b"h1", b"one\n", 0o644)],
            [("create", b"h2", b"one\n", 0o644)],
        ],
        [Command(0, (b"p",)), Command(None)],
        [1, 0, 1, 1],
    )
)
@example(  # a name has moved there in a directory, which went and came back
    Program(
        [(b"h0", None), (b"q/h0", 0)],
        [[("overwrite", b"h0", b"one\n"), ("rename", b"q", b"p/n")], [("rmtree", b"p")]],
        [],
        [],
    )
)
@example(  # an undo of a part is of both names of a file that has left its disk
    Program([(b"h1", None)], [[("rename", b"h1", b"p/h2")]], [Command(0, (b"p/h2",))], [0])
)
def test_base_is_what_it_was_where_a_folder_is_another_disk(program: Program) -> None:
    check(program, is_far=True)


@pytest.mark.root_only
@pytest.mark.mount
@by_night(nightly=2000)
@given(programs)
@example(  # a closed directory loses a name, and another one goes to another disk
    Program(
        [(b"q/h0", None), (b"q/s/h0", 0)],
        [
            [("unlink", b"q/h0"), ("chmod", b"q", 0o500)],
            [("rename", b"q/s", b"p/n"), ("setxattr", b"p/n/h0", b"user.one", b"1")],
        ],
        [Command(0, (b"q/h0",))],
        [1],
    )
)
def test_base_is_what_it_was_for_an_ordinary_user_of_two_disks(program: Program) -> None:
    check(program, is_far=True, user=NOBODY)
