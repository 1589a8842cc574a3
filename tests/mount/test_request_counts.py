"""How many requests typical work costs.  Unlike times these are exact: a number that changes here
is a decision.

Not counted: ``forget``, which the kernel sends when it likes.  Lifetimes are long, so that no
answer runs out.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.mount.kernel_memory import what_it_knows_stays
from tests.support.in_process import MountedView
from tests.support.transports import IS_DIRECT
from yolofs.fuse.trace import KINDS, Trace

pytestmark = pytest.mark.mount
Mounter = Callable[..., MountedView]

LONG_S = 3600.0
PAGE = b"p" * 4096
NAMES = 100
REWRITE = os.O_WRONLY | os.O_TRUNC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
GIT_ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",  # so that `git status` writes nothing
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.org",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.org",
}


class Counter:
    """A mounted view and what it is asked.  All the names are in the directory ``work``."""

    def __init__(self, view: MountedView, trace: Trace) -> None:
        self.view = view
        self.top = view.mountpoint
        self._trace = trace

    def path(self, name: str) -> bytes:
        return os.path.join(self.top, b"work", name.encode())

    def requests(self, action: Callable[[], object]) -> dict[str, int]:
        """Return what ``action`` asks, by kind."""
        before = self._settled()
        action()
        after = self._settled()
        after["statfs"] -= 1  # of _settled
        counts = {kind: after[kind] - before.get(kind, 0) for kind in after}
        return {kind: count for kind, count in counts.items() if count and kind != "forget"}

    def _settled(self) -> dict[str, int]:
        """Return the counts once everything is carried out: a close(2) does not wait for its
        release, but this does, as requests are answered in order."""
        os.statvfs(self.top)
        return self._trace.counts()

    # ---- work, in system calls and nothing beside them

    def read(self, name: str) -> bytes:
        fd = os.open(self.path(name), os.O_RDONLY)
        try:
            return os.pread(fd, 1 << 20, 0)
        finally:
            os.close(fd)

    def write(self, name: str, flags: int, data: bytes = PAGE, *, times: int = 1, sync: bool = False) -> None:
        fd = os.open(self.path(name), flags, 0o644)
        try:
            for _ in range(times):
                assert os.write(fd, data) == len(data)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)

    def stat(self, name: str) -> os.stat_result:
        return os.lstat(self.path(name))

    def names(self, name: str) -> list[str]:
        fd = os.open(self.path(name), os.O_RDONLY | os.O_DIRECTORY)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)


@pytest.fixture(autouse=True)
def nothing_is_forgotten() -> Iterator[None]:
    with what_it_knows_stays():
        yield


@pytest.fixture
def counter(base: Path, mounted: Mounter) -> Counter:
    """A view of some files, whose kernel has learned what it need not ask again (flush, extended
    attributes).
    """
    work = base / "work"
    (work / "many").mkdir(parents=True)
    for number in range(NAMES):
        (work / "many" / f"file{number}").write_bytes(PAGE)
    for name in ("one", "two"):
        (work / name).write_bytes(PAGE)
    (work / "long").write_bytes(PAGE * 16)
    trace = Trace()
    made = Counter(mounted(trace=trace, base_timeout_s=LONG_S, staged_timeout_s=LONG_S), trace)
    made.write("settling", NEW)
    os.unlink(made.path("settling"))
    made.stat(".")
    return made


def test_a_missing_name_is_looked_up_once(counter: Counter) -> None:
    def look() -> None:
        with pytest.raises(FileNotFoundError):
            counter.stat("missing")

    assert counter.requests(look) == {"lookup": 1}
    assert counter.requests(look) == {}


def test_a_stat_of_what_is_known_asks_nothing(counter: Counter) -> None:
    assert counter.requests(lambda: counter.stat("one")) == {"lookup": 1}
    assert counter.requests(lambda: counter.stat("one")) == {}


def test_the_pages_of_a_file_are_read_once(counter: Counter) -> None:
    def read() -> bytes:
        return counter.read("one")

    assert counter.requests(read) == {"lookup": 1, "open": 1, "read": 1, "release": 1}
    assert counter.requests(read) == {"open": 1, "release": 1}
    counter.view.snapshot()
    assert counter.requests(read) == {"open": 1, "release": 1}


def test_a_stat_after_a_read_asks_for_the_access_time(counter: Counter) -> None:
    counter.read("one")
    assert counter.requests(lambda: counter.stat("one")) == {"getattr": 1}


def test_a_listing_of_a_hundred_names_takes_two_readdirs_once(counter: Counter) -> None:
    """The second of the two readdirs says that there is no more, and opendir(3) looks at the
    descriptor that it has: the access time may be another one since the first reading."""
    assert counter.requests(lambda: counter.names("many")) == {
        "lookup": 1,
        "opendir": 1,
        "readdir": 2,
        "releasedir": 1,
    }
    again = {"getattr": 1, "opendir": 1, "releasedir": 1}
    if not IS_DIRECT:  # where the kernel may keep the listing, it tells it by itself
        again["readdir"] = 2
    assert counter.requests(lambda: counter.names("many")) == again


def test_a_listing_brings_the_attributes_along(counter: Counter) -> None:
    names = counter.names("many")
    assert len(names) == NAMES
    counter.stat("many")  # its access time is another one after it was read
    assert counter.requests(lambda: [counter.stat(f"many/{name}") for name in names]) == {}


def test_a_new_file_takes_one_request_for_each_thing_done(counter: Counter) -> None:
    new = {"lookup": 1, "create": 1, "write": 1, "release": 1}
    assert counter.requests(lambda: counter.write("new", NEW)) == new
    assert counter.requests(lambda: counter.write("rest", NEW, times=4)) == new | {"getattr": 1, "write": 4}


def test_attributes_of_a_written_file_are_asked_for_and_its_pages_not_read_back(counter: Counter) -> None:
    """The kernel keeps the pages that it has: it leaves it to us to say that they are wrong."""
    counter.write("new", NEW)
    counter.stat(".")
    assert counter.requests(lambda: counter.stat("new")) == {"getattr": 1}
    assert counter.requests(lambda: counter.read("new")) == {"open": 1, "release": 1}


def test_what_was_written_in_odd_pieces_is_read_back_at_one_go(counter: Counter) -> None:
    """Of a page that was written in part the kernel has that part, and would read each such page
    alone.
    """
    with open(counter.path("new"), "wb", buffering=0) as file:
        for _ in range(300):
            file.write(b"x" * 1000)
    assert counter.requests(lambda: counter.read("new"))["read"] <= 300_000 // (128 << 10) + 2  # and not 74
    assert "read" not in counter.requests(lambda: counter.read("new"))


def test_overwriting_takes_three_requests(counter: Counter) -> None:
    write = {"open": 1, "write": 1, "release": 1}
    assert counter.requests(lambda: counter.write("one", REWRITE)) == write | {"lookup": 1}
    assert counter.requests(lambda: counter.write("one", REWRITE)) == write


def test_appending_to_a_known_base_file_takes_three_requests(counter: Counter) -> None:
    append = {"open": 1, "write": 1, "release": 1}
    flags = os.O_WRONLY | os.O_APPEND
    assert counter.requests(lambda: counter.write("long", flags, b"x")) == append | {"lookup": 1}
    assert counter.requests(lambda: counter.write("long", flags, b"x")) == append


def test_fsync_adds_one_request(counter: Counter) -> None:
    assert counter.requests(lambda: counter.write("one", REWRITE, sync=True)) == {
        "lookup": 1,
        "open": 1,
        "write": 1,
        "fsync": 1,
        "release": 1,
    }


def test_the_directory_is_asked_for_its_attributes_again_after_each_change_of_a_name(counter: Counter) -> None:
    os.mkdir(counter.path("d"))
    assert counter.requests(lambda: counter.stat("one")) == {"getattr": 1, "lookup": 1}
    assert counter.requests(lambda: counter.stat("two")) == {"lookup": 1}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: os.rename(c.path("one"), c.path("name")), {"lookup": 2, "rename": 1}),
        (lambda c: os.rename(c.path("many"), c.path("name")), {"lookup": 2, "rename": 1}),
        (lambda c: os.unlink(c.path("one")), {"lookup": 1, "unlink": 1}),
        (lambda c: os.link(c.path("one"), c.path("name")), {"lookup": 2, "link": 1}),
        (lambda c: os.symlink("one", c.path("name")), {"lookup": 1, "symlink": 1}),
        (lambda c: os.mkdir(c.path("name")), {"lookup": 1, "mkdir": 1}),
        (lambda c: os.mkfifo(c.path("name")), {"lookup": 1, "mknod": 1}),
        (lambda c: os.chmod(c.path("one"), 0o600), {"lookup": 1, "setattr": 1}),
        (lambda c: os.utime(c.path("one")), {"lookup": 1, "setattr": 1}),
        (lambda c: os.truncate(c.path("one"), 10), {"lookup": 1, "setattr": 1}),
    ],
    ids=["rename", "rename-directory", "unlink", "link", "symlink", "mkdir", "mkfifo", "chmod", "utime", "truncate"],
)
def test_a_change_of_base_costs_its_own_request_and_the_lookups(
    counter: Counter, change: Callable[[Counter], object], expected: dict[str, int]
) -> None:
    assert counter.requests(lambda: change(counter)) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: os.rename(c.path("one"), c.path("name")), {"lookup": 1, "rename": 1}),
        (lambda c: os.unlink(c.path("one")), {"unlink": 1}),
        (lambda c: os.chmod(c.path("one"), 0o600), {"setattr": 1}),
        (lambda c: os.chmod(c.path("one"), 0o644), {"setattr": 1}),
    ],
    ids=["rename", "unlink", "chmod", "chmod-to-the-same"],
)
def test_a_change_of_what_the_kernel_knows_costs_its_own_request_alone(
    counter: Counter, change: Callable[[Counter], object], expected: dict[str, int]
) -> None:
    counter.stat("one")
    assert counter.requests(lambda: change(counter)) == expected


def test_a_symbolic_link_is_read_once(counter: Counter) -> None:
    os.symlink("one", counter.path("link"))
    counter.stat(".")
    assert counter.requests(lambda: os.readlink(counter.path("link"))) == {"readlink": 1}
    assert counter.requests(lambda: os.readlink(counter.path("link"))) == {}


def test_access_is_judged_by_the_kernel(counter: Counter) -> None:
    counter.stat("one")
    assert counter.requests(lambda: os.access(counter.path("one"), os.R_OK)) == {}


def test_a_snapshot_asks_nothing(counter: Counter) -> None:
    counter.write("new", NEW)
    counter.stat("new")
    assert counter.requests(counter.view.snapshot) == {}
    assert counter.requests(lambda: counter.stat("new")) == {}


def test_at_base_timeout_0_each_stat_looks_its_names_up_again(base: Path, mounted: Mounter) -> None:
    (base / "work").mkdir()
    (base / "work/one").write_bytes(PAGE)
    trace = Trace()
    counter = Counter(mounted(trace=trace, base_timeout_s=0.0), trace)
    for _ in range(2):
        counts = counter.requests(lambda: counter.stat("one"))
        assert counts["lookup"] == 2  # of work, and of one


def test_git_status_on_an_unchanged_tree_looks_nothing_up_again(base: Path, mounted: Mounter) -> None:
    """How many of its own files git opens is git's business; of the tree it lists each directory,
    and no more.
    """
    work = base / "work"
    for number in range(40):
        path = work / f"src{number % 4}" / f"file{number}.c"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"int x;\n")
        os.utime(path, (1, 1))

    def git(*words: str, cwd: bytes = os.fsencode(work)) -> str:
        done = subprocess.run(
            ["git", *words], cwd=cwd, env=os.environ | GIT_ENV, check=True, capture_output=True, text=True
        )
        return done.stdout

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message=all")
    trace = Trace()
    counter = Counter(mounted(trace=trace, base_timeout_s=LONG_S), trace)

    def status() -> str:
        return git("status", "--porcelain", cwd=counter.path("."))

    assert status() == ""
    status()  # git writes nothing, but the first one has read: access times are asked for again
    counts = counter.requests(status)
    own_opens = counts.pop("open")
    assert counts.pop("release") == own_opens
    own_getattrs = counts.pop("getattr", 0)
    directories = counts.pop("opendir")
    assert directories >= 5
    readdirs = {} if IS_DIRECT else {"readdir": 2 * directories}
    assert counts == readdirs | {"releasedir": directories}
    assert own_getattrs <= directories + own_opens


def test_the_figures_can_be_read_from_another_process(tmp_path: Path) -> None:
    """The daemon keeps them in the file that its environment names."""
    path = os.fsencode(tmp_path / "trace")
    trace = Trace.create(path)

    async def answer() -> str:
        return "answer"

    operations = SimpleNamespace(**dict.fromkeys(KINDS, answer))
    trace.install(operations)
    for _ in range(3):
        with pytest.raises(StopIteration) as stopped:
            operations.rename().send(None)
        assert stopped.value.value == "answer"
    assert Trace.open(path).counts() == {"rename": 3}
    assert Trace.open(path).figures()["rename"].handler_ns > 0
