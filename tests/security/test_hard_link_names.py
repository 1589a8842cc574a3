"""A commit loses no name of a file with hard links, whichever of them was looked at, renamed and
changed.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program

pytestmark = [pytest.mark.mount, pytest.mark.timeout(600)]

CHANGES = {
    "chmod": "chmod 600 c",
    "append": "echo more >>c",
    "link": "ln c z",
    "touch": "touch -d 2001-01-01 c",
    "truncate": "truncate -s 2 c",
    "rewrite": "echo new >c",
}
"""What is done to the name that was renamed."""
LOOKS = ("ls -l a b", "stat a b", "stat b a", "true")


@pytest.fixture
def yolofs(tmp_path: Path) -> Iterator[Program]:
    """Return the program in a project with the names ``a`` and ``b`` of one file."""
    project = tmp_path / "project"
    make_links(project)
    program = Program(project)
    program.start_session()
    yield program
    if (program.session / "daemon.json").exists():  # the first run has mounted the machine's view
        program("unmount", "--force")


def make_links(directory: Path) -> None:
    directory.mkdir()
    (directory / "a").write_text("data\n")
    (directory / "b").hardlink_to(directory / "a")


def run(yolofs: Program, script: str) -> None:
    yolofs("run", "--", "sh", "-c", script)


def names(project: Path) -> set[str]:
    return {path.name for path in project.iterdir() if path.name[0] != "."}


def check_one_file(project: Path, *expected: str) -> None:
    assert names(project) == set(expected)
    stats = [(project / name).stat() for name in expected]
    assert {st.st_ino for st in stats} == {stats[0].st_ino}
    assert {st.st_nlink for st in stats} == {len(expected)}


def test_a_name_that_was_renamed_leaves_the_other_where_it_is(yolofs: Program) -> None:
    looks = {f"look {number}": look for number, look in enumerate(LOOKS)}
    for name, change in itertools.product(looks, CHANGES):
        (yolofs.project / name).mkdir(exist_ok=True)
        make_links(yolofs.project / name / change)
    lines = [
        f"(cd '{name}/{change}' && {look}; mv a c; {CHANGES[change]})"
        for (name, look), change in itertools.product(looks.items(), CHANGES)
    ]
    run(yolofs, "\n".join(lines))
    yolofs("commit", "--yes", ".")
    contents = {"append": "data\nmore\n", "truncate": "da", "rewrite": "new\n"}
    for name, change in itertools.product(looks, CHANGES):
        directory = yolofs.project / name / change
        check_one_file(directory, *(("b", "c", "z") if change == "link" else ("b", "c")))
        assert (directory / "b").read_text() == contents.get(change, "data\n"), directory
    for name in looks:
        assert (yolofs.project / name / "chmod/b").stat().st_mode & 0o777 == 0o600, name
        assert (yolofs.project / name / "touch/b").stat().st_mtime < 10**9, name


def test_both_names_of_a_hard_link_may_be_renamed(yolofs: Program) -> None:
    orders = ("mv b g; mv a c", "mv a c; mv b g")
    cases = {f"{number}": case for number, case in enumerate(itertools.product(LOOKS, orders))}
    for name in cases:
        make_links(yolofs.project / name)
    run(yolofs, "\n".join(f"(cd {name} && {look}; {order}; chmod 600 c)" for name, (look, order) in cases.items()))
    yolofs("commit", "--yes", ".")
    for name in cases:
        check_one_file(yolofs.project / name, "c", "g")


def test_names_may_be_exchanged_with_those_of_another_file(yolofs: Program) -> None:
    (yolofs.project / "x").write_text("other\n")
    exchange = "import ctypes; ctypes.CDLL(None).renameat2(-100, b'a', -100, b'x', 2)"
    run(yolofs, f'stat a b x; {sys.executable} -c "{exchange}"; chmod 600 x')
    yolofs("commit", "--yes", ".")
    assert (yolofs.project / "a").read_text() == "other\n"
    (yolofs.project / "a").unlink()
    check_one_file(yolofs.project, "b", "x")


def test_a_directory_with_some_of_the_names_may_be_renamed(yolofs: Program) -> None:
    (yolofs.project / "d").mkdir()
    (yolofs.project / "d/in").hardlink_to(yolofs.project / "a")
    run(yolofs, "stat a d/in b; mv d e; mv e/in out; chmod 600 out; mv a e/a")
    yolofs("commit", "--yes", ".")
    assert names(yolofs.project) == {"b", "out", "e"}
    assert {(yolofs.project / name).stat().st_nlink for name in ("b", "out", "e/a")} == {3}


def test_a_commit_of_one_path_leaves_the_view_as_it_was(yolofs: Program) -> None:
    (yolofs.project / "other").write_text("other\n")
    run(yolofs, "stat a b; mv a c; chmod 600 c; echo new >other")
    yolofs("commit", "--yes", "other")
    assert (yolofs.project / "other").read_text() == "new\n"
    run(yolofs, 'test "$(stat -c %h b c | tr -d "\\n")" = 22 && test "$(ls)" = "$(printf "b\\nc\\nother")"')
    yolofs("commit", "--yes", ".")
    (yolofs.project / "other").unlink()
    check_one_file(yolofs.project, "b", "c")


MOVES = {
    "rm d; mv a m": ("b", "m"),
    "mv a m; rm d": ("b", "m"),
    "mv other2 d; mv a other3; mv other3 m": ("b", "m"),
    "mv a m; mv b n; rm d": ("m", "n"),
    "mkdir e; mv a e/a; mv e f; rm d": ("b", "f/a"),
    "rm a d": ("b",),
}
"""What is done to the names a, b and d of a file, and which names it has then."""


def test_a_commit_of_one_path_leaves_the_number_of_names_as_it_was(yolofs: Program) -> None:
    """A name that has moved is not one less."""
    moves = {f"{number}": move for number, move in enumerate(MOVES)}
    for at in moves:
        make_links(yolofs.project / at)
        (yolofs.project / at / "d").hardlink_to(yolofs.project / at / "a")
        for name in ("other", "other2"):
            (yolofs.project / at / name).write_text("other\n")
    run(yolofs, "\n".join(f"(cd {at}; stat a b d; {move}; echo new >other)" for at, move in moves.items()))
    counts = []
    for at, move in moves.items():
        shown = MOVES[move]
        count = f'test "$(stat -c %h {" ".join(shown)} | sort -u)" = {len(shown)}'
        counts.append(f"(cd {at}; {count}) || {{ echo 'it is another after {move}'; exit 1; }}")
    run(yolofs, "\n".join(counts))
    for at in moves:
        yolofs("commit", "--yes", f"{at}/other")
        run(yolofs, "\n".join(counts))
    yolofs("unmount")  # with which the kernel forgets what it was told before
    run(yolofs, "\n".join(counts))
    yolofs("commit", "--yes", ".")
    for at, move in moves.items():
        shown = MOVES[move]
        assert {(yolofs.project / at / name).stat().st_nlink for name in shown} == {len(shown)}, move


def test_the_listing_says_which_names_come_go_and_stay(yolofs: Program) -> None:
    run(yolofs, "stat a b; mv a c; chmod 600 c; ln c z")
    lines = [line.split("  (")[0] for line in yolofs("status").out.splitlines() if line[1:3] == "  "]
    assert lines == ["X  b", "R  a -> c", "A  z"]
    yolofs("commit", "--yes", ".")
    check_one_file(yolofs.project, "b", "c", "z")


def test_what_an_older_version_recorded_is_found_by_doctor_and_committed_rightly(yolofs: Program) -> None:
    from yolofs.journal.records import Rename, Stage
    from yolofs.paths import RelPath
    from yolofs.session.session import Session, SessionAccess

    with Session.open(os.fsencode(yolofs.project), SessionAccess.WRITE) as session:
        where = os.fsencode(yolofs.project / "a").lstrip(b"/")
        a, b, c = (RelPath(where[:-1] + name) for name in (b"a", b"b", b"c"))
        ino = session.store.copy_up(b"/" + a, data=False)
        fingerprint = session.base.fingerprint(session.base.lstat(a))
        session.journal.append(Rename(2, a, c), Stage(3, c, ino, base=fingerprint, origin=b, links=2))
    findings = {one["check"]: one for one in yolofs("doctor", "--json").json["findings"]}
    found = findings["hard links"]
    assert found["level"] == "warn"
    told = f"an older yolofs recorded that {c.decode()} is {b.decode()} in base, but it is {a.decode()}"
    assert told in found["message"]
    assert "commit with this version" in found["advice"]
    assert findings["plan"]["level"] == "ok"
    yolofs("commit", "--yes", ".")
    check_one_file(yolofs.project, "b", "c")
    assert yolofs("doctor", "--json").json["ok"] is True
