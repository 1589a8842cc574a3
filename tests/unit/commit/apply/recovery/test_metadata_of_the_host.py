"""Mode, owner, times and attributes that the host gives to what a commit changes, while that is
interrupted: they stay, and are told.  A power cut may have undone a move, and what was given after
it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from tests.support.memory_disk import memory_directory
from tests.support.old_base import OLD, all_done, at, killed_after
from yolofs.commit import Plan, execute, resume
from yolofs.commit.apply import step_log
from yolofs.commit.apply.recovery.taking_back import roll_back
from yolofs.commit.apply.step_log import Log
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import FinishDirectory, Park, Place, Rewrite, SetMetadata
from yolofs.paths import RelPath

STAGED_MODE = 0o640
HOSTS_NS = 1_700_000_000_000_000_000


@pytest.fixture
def scribe() -> Iterator[CommitScribe]:
    """A base with a file, one that has two names, and a directory."""
    with memory_directory() as top:
        root = top / "base"
        (root / "d").mkdir(parents=True)
        for name in ("a", "g"):
            (root / name).write_text(f"base {name}\n")
        (root / "h").hardlink_to(root / "g")
        for name in ("a", "g", "d"):
            os.setxattr(root / name, "user.mark", b"old")
            os.utime(root / name, ns=(OLD, OLD))
        yield CommitScribe(os.fsencode(root), os.fsencode(top / "store"))


@pytest.fixture
def parking(scribe: CommitScribe) -> bytes:
    return os.path.join(os.path.dirname(scribe.base.root), b"commits/1")


def stage(scribe: CommitScribe) -> None:
    """Stage metadata of a file that moves, of a file that is written in place, and of a
    directory.
    """
    scribe.rename(b"a", b"z")
    scribe.write(b"g", b"staged\n")
    for path in (b"z", b"g", b"d"):
        scribe.chmod(path, STAGED_MODE if path != b"d" else STAGED_MODE | 0o111)
        scribe.set_xattr(path, "user.mark", b"new")


def number_of(plan: Plan, path: bytes) -> int:
    """Return which step, from 0, gives metadata to what is at a path."""
    (number,) = (
        index
        for index, step in enumerate(plan.steps)
        if step.path == path and isinstance(step, SetMetadata | Rewrite | FinishDirectory)
    )
    return number


def lose_move(scribe: CommitScribe) -> None:
    """Do what a power cut may: the file is at its old place, as it was, and the log has all."""
    at(scribe, b"z").rename(at(scribe, b"a"))
    at(scribe, b"a").chmod(0o644)
    os.setxattr(at(scribe, b"a"), "user.mark", b"old")
    os.utime(at(scribe, b"a"), ns=(OLD, OLD))


HOST: dict[str, Callable[[Path], None]] = {
    "mode": lambda path: path.chmod(0o604),
    "times": lambda path: os.utime(path, ns=(HOSTS_NS, HOSTS_NS)),
    "xattr user.mark": lambda path: os.setxattr(path, "user.mark", b"the host's"),
    "xattr user.other": lambda path: os.setxattr(path, "user.other", b"the host's"),
    "owner": lambda path: os.chown(path, 12345, -1),
    "group": lambda path: os.chown(path, -1, 12345),
}
"""How the host changes a file, by what is told of that."""


def of(path: Path) -> dict[str, object]:
    """Return the metadata of a file, by how each is named to people."""
    st = path.stat()
    found: dict[str, object] = {
        "mode": stat.S_IMODE(st.st_mode),
        "times": st.st_mtime_ns,
        "owner": st.st_uid,
        "group": st.st_gid,
    }
    return found | {f"xattr {name}": os.getxattr(path, name) for name in os.listxattr(path)}


@pytest.fixture(
    params=[
        *("mode", "times", "xattr user.mark", "xattr user.other"),
        *(pytest.param(one, marks=pytest.mark.root_only) for one in ("owner", "group")),  # gives files away
    ]
)
def what(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check_finished(scribe: CommitScribe, plan: Plan, parking: bytes, path: bytes, what: str) -> None:
    """Finish a commit of which the host has changed something; what it has given stays."""
    hosts = of(at(scribe, path) if at(scribe, path).exists() else at(scribe, b"a"))
    outcome = resume(plan, scribe.store, parking=parking)
    now = of(at(scribe, path))
    assert now[what] == hosts[what]
    staged = {"mode": STAGED_MODE, "times": OLD, "xattr user.mark": b"new"}
    assert {name: now[name] for name in staged if name != what} == {
        name: value for name, value in staged.items() if name != what
    }
    assert outcome.left_out == {RelPath(path): (what,)}
    assert step_log.read(parking)[number_of(plan, path)].came is None  # what is there is not the commit's own


def test_what_the_host_gives_a_file_of_which_a_move_was_lost_stays(
    scribe: CommitScribe, parking: bytes, what: str
) -> None:
    stage(scribe)
    plan = all_done(scribe, parking)
    lose_move(scribe)
    HOST[what](at(scribe, b"a"))
    check_finished(scribe, plan, parking, b"z", what)


def test_what_the_host_gives_a_file_before_a_step_stays(scribe: CommitScribe, parking: bytes, what: str) -> None:
    stage(scribe)
    plan = scribe.plan()
    number = number_of(plan, b"z")
    killed_after(
        Steps,
        "do",
        lambda step: step is plan.steps[number - 1],
        lambda: execute(plan, scribe.store, parking=parking, is_spare=lambda _: False),
    )
    HOST[what](at(scribe, b"z"))
    check_finished(scribe, plan, parking, b"z", what)


@pytest.mark.parametrize("aspect", ["mode", "xattr user.mark", "xattr user.other"])
def test_what_the_host_gives_a_directory_stays(scribe: CommitScribe, parking: bytes, aspect: str) -> None:
    stage(scribe)
    plan = all_done(scribe, parking)
    HOST[aspect](at(scribe, b"d"))
    hosts = of(at(scribe, b"d"))
    outcome = resume(plan, scribe.store, parking=parking)
    assert of(at(scribe, b"d")) == hosts
    assert outcome.left_out == {RelPath(b"d"): (aspect,)}


@pytest.mark.parametrize("is_logged", [True, False])
@pytest.mark.parametrize("path", [b"z", b"g", b"d"])
def test_what_the_host_gives_stays_where_a_commit_is_taken_back(
    scribe: CommitScribe, parking: bytes, what: str, path: bytes, *, is_logged: bool
) -> None:
    if path != b"z" and what == "times":
        return  # names in a directory change that, and a file that is written in place has its old content again
    stage(scribe)
    plan = all_done(scribe, parking)
    HOST[what](at(scribe, path))
    hosts = of(at(scribe, path))[what]
    if not is_logged:
        os.truncate(os.path.join(parking, b"progress"), 0)
    meanwhile = roll_back(plan, scribe.store, parking=parking, durable=False)
    now = of(at(scribe, b"a" if path == b"z" else path))
    assert now[what] == hosts
    before = {"mode": 0o755 if path == b"d" else 0o644, "times": OLD, "xattr user.mark": b"old"}
    assert {name: now[name] for name in before if name != what} == {
        name: value for name, value in before.items() if name != what
    }
    assert meanwhile.given_metadata == [path]


def test_a_time_that_an_edit_of_the_host_gives_stays_where_a_commit_is_taken_back(
    scribe: CommitScribe, parking: bytes
) -> None:
    """The edit keeps the size."""
    stage(scribe)
    plan = all_done(scribe, parking)
    at(scribe, b"z").write_text("BASE a\n")
    time_ns = at(scribe, b"z").stat().st_mtime_ns
    roll_back(plan, scribe.store, parking=parking, durable=False)
    assert at(scribe, b"a").read_text() == "BASE a\n"
    assert at(scribe, b"a").stat().st_mtime_ns == time_ns


@pytest.mark.parametrize("kind", [Park, Place])
def test_what_a_file_is_given_after_a_move_that_is_done_again_survives_a_kill_after_that(
    scribe: CommitScribe, parking: bytes, kind: type
) -> None:
    stage(scribe)
    plan = all_done(scribe, parking)
    lose_move(scribe)
    killed_after(Steps, "do", lambda step: isinstance(step, kind), lambda: resume(plan, scribe.store, parking=parking))
    resume(plan, scribe.store, parking=parking)
    assert of(at(scribe, b"z"))["mode"] == STAGED_MODE
    assert of(at(scribe, b"z"))["xattr user.mark"] == b"new"
    told = {step.path: line.came for step, line in zip(plan.steps, step_log.read(parking), strict=True)}
    assert told[RelPath(b"z")] == step_log.ObjectIdentity.of(at(scribe, b"z").lstat())


def test_a_mode_that_the_host_gives_a_new_directory_stays(scribe: CommitScribe, parking: bytes) -> None:
    scribe.mkdir(b"new", 0o750)
    plan = scribe.plan()
    killed_after(Log, "__exit__", lambda *_: True, lambda: execute(plan, scribe.store, parking=parking))
    at(scribe, b"new").chmod(0o711)
    resume(plan, scribe.store, parking=parking)
    assert stat.S_IMODE(at(scribe, b"new").stat().st_mode) == 0o711


def test_what_was_opened_up_or_half_given_is_the_commits_own(scribe: CommitScribe, parking: bytes) -> None:
    stage(scribe)
    plan = all_done(scribe, parking)
    lose_move(scribe)
    os.setxattr(at(scribe, b"a"), "user.mark", b"new")
    at(scribe, b"a").chmod(STAGED_MODE)
    at(scribe, b"d").chmod(0o711 | stat.S_IRWXU)
    at(scribe, b"d").chmod(0o755)
    outcome = resume(plan, scribe.store, parking=parking)
    assert outcome.left_out == {}
    assert of(at(scribe, b"z"))["mode"] == STAGED_MODE
