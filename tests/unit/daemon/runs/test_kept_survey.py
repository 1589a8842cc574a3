"""What a survey keeps for the next one, and what is not gone by."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from tests.support.surveys import found, next_tick, survey
from yolofs.daemon.runs import native_survey, survey_process
from yolofs.daemon.runs.native_survey import NATIVE_SURVEY, KnownDirectories, Survey, load, save

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away, and mounts")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Return a directory with some others in it, and with a fifo."""
    (tmp_path / "top/a/b").mkdir(parents=True)
    (tmp_path / "top/c").mkdir()
    (tmp_path / "top/a/file").touch()
    os.mkfifo(tmp_path / "top/c/fifo")
    next_tick(tmp_path)
    return tmp_path / "top"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[int]:
    """Return an open directory to keep a survey in."""
    (tmp_path / "state").mkdir(mode=0o700)
    fd = os.open(tmp_path / "state", os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def read_count(known: KnownDirectories, top: Path) -> int:
    """Return how many directories a survey reads."""
    one = survey(known)
    one.find(os.fsencode(top))
    return one.read_count


def test_directories_that_have_not_changed_are_not_read_again(top: Path, state: int) -> None:
    paths, kept = found({}, top)
    assert paths == {"c/fifo"}
    assert len(kept) == 4
    save(state, kept)
    assert load(state) == kept
    assert found(load(state), top) == (paths, kept)
    assert read_count(kept, top) == 0


def test_only_changed_directories_are_read_again(top: Path) -> None:
    _, kept = found({}, top)
    (top / "a/b/new").mkdir()
    os.mkfifo(top / "a/b/new/fifo")
    assert read_count(kept, top) == 2
    assert found(kept, top)[0] == {"c/fifo", "a/b/new/fifo"}


def test_the_content_of_a_file_is_no_change(top: Path) -> None:
    _, kept = found({}, top)
    (top / "a/file").write_text("more\n")
    assert read_count(kept, top) == 0


def test_a_directory_in_the_place_of_another_is_read(top: Path) -> None:
    """Though the directory around it is put back to what it was, but for its ctime."""
    (top.parent / "other").mkdir()
    os.mkfifo(top.parent / "other/fifo")
    _, kept = found({}, top)
    before = (top / "a").stat()
    (top / "a/b").rmdir()
    (top.parent / "other").rename(top / "a/b")
    os.utime(top / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found(kept, top)[0] == {"c/fifo", "a/b/fifo"}


def test_a_directory_that_became_a_link_leads_nowhere(top: Path) -> None:
    _, kept = found({}, top)
    (top / "c").rename(top.parent / "moved")
    (top / "c").symlink_to(top.parent / "moved")
    paths, kept = found(kept, top)
    assert paths == set()
    assert os.fsencode(top / "c") not in kept


def test_a_journal_that_comes_into_a_directory_is_noticed(top: Path) -> None:
    (top / "a/.yolofs").mkdir()
    next_tick(top.parent)
    paths, kept = found({}, top)
    assert paths == {"c/fifo"}
    (top / "a/.yolofs/journal").touch()
    assert found(kept, top)[0] == {"c/fifo", "a/.yolofs"}


def test_directories_that_changed_just_now_are_not_kept(top: Path) -> None:
    one = Survey({}, mounts=lambda: {b"/": b"ext4"})  # by the real clock
    one.find(os.fsencode(top))
    assert one.to_keep() == {}


def test_nothing_is_kept_of_filesystems_whose_ctimes_others_write(top: Path) -> None:
    one = survey({}, lambda: {b"/": b"ext4", os.fsencode(top): b"fuse.sshfs"})
    one.find(os.fsencode(top))
    assert one.to_keep() == {}


def test_a_directory_in_which_something_is_mounted_is_not_kept(top: Path) -> None:
    one = survey({}, lambda: {b"/": b"ext4", os.fsencode(top / "a/file"): b"tmpfs"})
    one.find(os.fsencode(top))
    assert os.fsencode(top / "a") not in one.to_keep()
    assert os.fsencode(top / "a/b") in one.to_keep()


COVERED = """
import os, subprocess, sys
from pathlib import Path
from tests.support.surveys import survey
from yolofs.daemon.runs.native_survey import read_mounts
top = Path(sys.argv[1])
def found(known):
    one = survey(known, read_mounts)
    return sorted(os.path.relpath(os.fsdecode(path), top) for path in one.find(os.fsencode(top))), one.to_keep()
subprocess.run(["mount", "--bind", top / "a/file", top / "c/fifo"], check=True)
subprocess.run(["mount", "--bind", top / "a/b", top / "d"], check=True)
print(*(covered := found({}))[0])
subprocess.run(["umount", top / "c/fifo", top / "d"], check=True)
print(*found(covered[1])[0])
subprocess.run(["mount", "--bind", top / "c", top / "a/b"], check=True)
print(*found(found({})[1])[0])
"""


@NEEDS_ROOT
def test_what_a_mount_covered_is_found_when_it_has_ended(top: Path) -> None:
    (top / "d").mkdir()
    os.mkfifo(top / "d/below")
    next_tick(top.parent)
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", COVERED, top],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[4],
    )
    assert done.stdout.splitlines() == ["", "c/fifo d/below", "a/b/fifo c/fifo d/below"]


def test_what_is_known_of_other_directories_stays_and_what_is_gone_goes(top: Path) -> None:
    _, of_a = found({}, top / "a")
    _, both = found(of_a, top / "c")
    assert {os.fsencode(top / name) for name in ("a", "a/b", "c")} == both.keys()
    (top / "a/b").rmdir()
    assert os.fsencode(top / "a/b") not in found(both, top / "a")[1]


# ---- the file


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.chmod(0o620),
        lambda path: path.chmod(0o602),
        pytest.param(lambda path: os.chown(path, 1, 1), marks=NEEDS_ROOT),
        a_link,
        a_fifo,
        a_directory,
        Path.unlink,
    ],
)
def test_a_survey_that_another_user_could_have_written_is_not_used(
    top: Path, state: int, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    save(state, found({}, top)[1])
    assert load(state) != {}
    change(tmp_path / "state" / os.fsdecode(NATIVE_SURVEY))
    assert load(state) == {}


def test_a_damaged_survey_is_not_used(top: Path, state: int, tmp_path: Path) -> None:
    save(state, found({}, top)[1])
    path = tmp_path / "state" / os.fsdecode(NATIVE_SURVEY)
    content = path.read_bytes()
    for place in range(0, len(content), 5):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert load(state) == {}, place
        path.write_bytes(content[:place])
        assert load(state) == {}, place
    path.write_bytes(content)
    assert len(load(state)) == 4


KILLED = """
import os, sys
from yolofs.daemon.runs.native_survey import save
state = os.open(sys.argv[1], os.O_RDONLY)
for number in range(10_000):
    save(state, {b"/%d" % one: b"%d" % number for one in range(20_000)})
    print(number, flush=True)
"""


def test_a_kill_while_a_survey_is_written_leaves_the_old_one_or_the_new_one(state: int, tmp_path: Path) -> None:
    last = -1
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(KILLED), tmp_path / "state"], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            last = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
        known = load(state)
        assert len(known) == 20_000
        assert len(set(known.values())) == 1
        assert int(known[b"/0"]) >= last
    save(state, {b"/": b"1"})
    assert os.listdir(tmp_path / "state") == [os.fsdecode(NATIVE_SURVEY)]


# ---- the process


def report(state: int, haste: int, *directories: Path) -> list[list[str]]:
    """Run the process as the daemon does, and return its reports."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", native_survey.__file__, str(state), str(haste)],
        check=True,
        input=b"\0".join(map(os.fsencode, directories)),
        stdout=subprocess.PIPE,
        pass_fds=[state],
    )
    assert done.stdout.endswith(b"\0\0")
    return [os.fsdecode(one).split("\0") for one in done.stdout[:-2].split(b"\0\0")]


def test_the_survey_says_when_it_need_not_be_waited_for_any_more(top: Path, state: int) -> None:
    fifo = str(top / "c/fifo")
    assert report(state, 9, top) == [[str(top), fifo], ["read", "4"]]
    assert report(state, 2, top) == [["idle"], [str(top), fifo], ["read", "4"]]


class Waiting:
    """A survey that still waits for the end of what it is told; its clock is as it is."""

    def __init__(self, state: int, *, is_first: bool) -> None:
        self._survey = survey_process.start(state, is_first=is_first)
        self.pid = self._survey.process.pid
        self._pending = b""

    def next_report(self, within_s: float = 10) -> list[str] | None:
        """Return the next report; None if there is none within some seconds."""
        while b"\0\0" not in self._pending:
            if not select.select([self._survey.reports], [], [], within_s)[0]:
                return None
            data = os.read(self._survey.reports, 1 << 16)
            assert data, "it has ended"
            self._pending += data
        report, _, self._pending = self._pending.partition(b"\0\0")
        return os.fsdecode(report).split("\0")

    def tell(self, *directories: Path) -> list[list[str]]:
        """Tell it all, and return what it reports to its end."""
        os.write(self._survey.wanted, b"\0".join(map(os.fsencode, directories)))
        os.close(self._survey.wanted)
        with open(self._survey.reports, "rb") as reports:
            rest = self._pending + reports.read()
        assert self._survey.process.wait(10) == 0
        return [os.fsdecode(one).split("\0") for one in rest[:-2].split(b"\0\0")]


def test_the_first_survey_of_a_mount_looks_through_what_was_wanted_last_before_it_is_told(
    top: Path, state: int
) -> None:
    fifo = str(top / "c/fifo")
    report(state, 0, top)
    waiting = Waiting(state, is_first=True)
    assert waiting.next_report() == [str(top), fifo]
    assert waiting.tell(top / "a", top) == [[str(top / "a")], ["read", mock.ANY]]
    other = Waiting(state, is_first=True)
    assert [other.next_report(), other.next_report()] == [[str(top / "a")], [str(top), fifo]]
    assert other.tell() == [["read", mock.ANY]]  # its daemon was killed, and so it says nothing of what is wanted
    same = Waiting(state, is_first=True)
    assert [same.next_report(), same.next_report()] == [[str(top / "a")], [str(top), fifo]]
    assert same.tell(top / "c") == [[str(top / "c"), fifo], ["read", mock.ANY]]


def test_later_surveys_look_through_nothing_that_they_are_not_told(top: Path, state: int) -> None:
    report(state, 0, top)
    waiting = Waiting(state, is_first=False)
    assert waiting.tell(top / "a") == [[str(top / "a")], ["read", mock.ANY]]


def test_a_survey_that_waits_keeps_no_directory_of_others_busy(
    top: Path, state: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(state, 0, top)
    monkeypatch.chdir(top)
    waiting = Waiting(state, is_first=True)
    assert waiting.next_report() is not None
    assert os.readlink(f"/proc/{waiting.pid}/cwd") == "/"
    waiting.tell()


def test_what_nobody_waits_for_takes_the_cpu_when_nobody_else_wants_it(top: Path) -> None:
    script = f"""
        import os, sys
        sys.path.insert(0, {os.path.dirname(native_survey.__file__)!r})
        from native_survey import be_idle
        be_idle()
        print(os.sched_getscheduler(0) == os.SCHED_IDLE, flush=True)
        os.execvp("ionice", ["ionice", "-p", str(os.getpid())])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout == "True\nbest-effort: prio 7\n"
