"""Targets of symbolic links that the kernel has cached: as long as they are true they stay, and
whatever else a link becomes shows.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mount.hard_links import Mounter
from tests.support.ext4_disk import ext4_disk
from tests.support.gate_tools import at, path_rule, refused, replace_rules
from tests.support.in_process import MountedView
from tests.support.program import wait_until
from yolofs.fuse.direct.transport import DirectTransport
from yolofs.fuse.libfuse.transport import Pyfuse3Transport
from yolofs.fuse.trace import Trace
from yolofs.fuse.transport_choice import TransportClass
from yolofs.overlay.host_changes import HostChange, stale_after
from yolofs.overlay.inodes import NO_PAGES
from yolofs.paths import RelPath
from yolofs.rules import RuleState

pytestmark = [pytest.mark.mount, pytest.mark.root_only]

LONG_S = 1000.0


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """An empty base directory, on a disk on which numbers are given again at once."""
    with ext4_disk(tmp_path) as disk:
        path = disk / "base"
        path.mkdir()
        yield path


@pytest.fixture(params=[DirectTransport, Pyfuse3Transport], ids=["direct", "pyfuse3"])
def transport(request: pytest.FixtureRequest) -> TransportClass:
    made: TransportClass = request.param
    return made


def make_link(link: Path, target: str) -> None:
    """Make a link in base that the kernel may keep."""
    link.symlink_to(target)
    settled(link)


def settled(link: Path) -> None:
    """Wait until a link that is replaced now gets other times than this one has."""
    probe = link.with_name("probe")

    def is_settled() -> bool:
        probe.unlink(missing_ok=True)
        probe.touch()
        return probe.stat().st_ctime_ns > link.lstat().st_ctime_ns

    wait_until(is_settled, "the next tick of the disk's clock")
    probe.unlink()


def replace(link: Path, target: str) -> None:
    """Put another link in the place of one, by the same number and with other times."""
    settled(link)
    number = link.lstat().st_ino
    link.unlink()
    link.symlink_to(target)
    assert link.lstat().st_ino == number, "the disk gives numbers otherwise: nothing is tested here"


@contextlib.contextmanager
def link_held(link: str) -> Iterator[int]:
    """Hold a link itself."""
    fd = os.open(link, os.O_PATH | os.O_NOFOLLOW)
    try:
        yield fd
    finally:
        os.close(fd)


def watch_tells_of(view: MountedView, path: bytes) -> None:
    """Have the kernel told what a watch of base has seen at a path."""
    changes = [HostChange(RelPath(path), is_name=True)]
    view.mount.invalidate(view.mount.call(lambda: stale_after(view.overlay, changes)))


def count_of(trace: Trace) -> int:
    return trace.counts().get("readlink", 0)


def test_a_link_is_read_once(base: Path, mounted: Mounter, transport: TransportClass) -> None:
    make_link(base / "link", "target")
    trace = Trace()
    view = mounted(make_transport=transport, base_timeout_s=LONG_S, trace=trace)
    os.symlink("born here", at(view, "new"))
    for _ in range(5):
        assert os.readlink(at(view, "link")) == "target"
        assert os.readlink(at(view, "new")) == "born here"
    assert count_of(trace) == 2


def test_another_link_of_the_host_shows_once_its_attributes_do(
    base: Path, mounted: Mounter, transport: TransportClass
) -> None:
    make_link(base / "link", "old")
    view = mounted(make_transport=transport, base_timeout_s=0.5)
    for target in ("new", "other"):
        os.readlink(at(view, "link"))
        replace(base / "link", target)
        ctime_ns = (base / "link").lstat().st_ctime_ns
        wait_until(lambda: os.lstat(at(view, "link")).st_ctime_ns == ctime_ns, "the new attributes")  # noqa: B023 - called in this round
        assert os.readlink(at(view, "link")) == target


def test_another_link_of_the_host_that_a_listing_tells_of_shows(
    base: Path, mounted: Mounter, transport: TransportClass
) -> None:
    (base / "d").mkdir()
    make_link(base / "d/link", "old")
    view = mounted(make_transport=transport, base_timeout_s=0.5)
    with link_held(at(view, "d/link")) as fd:
        assert os.readlink("", dir_fd=fd) == "old"
        replace(base / "d/link", "new")
        wait_until(lambda: bool(os.listdir(at(view, "d"))) and os.readlink("", dir_fd=fd) == "new", "the new target")


def test_a_link_that_has_the_number_of_one_that_went_shows_its_own_target(
    base: Path, mounted: Mounter, transport: TransportClass
) -> None:
    make_link(base / "link", "old")
    view = mounted(make_transport=transport, base_timeout_s=LONG_S)
    with link_held(at(view, "link")) as fd:
        assert os.readlink("", dir_fd=fd) == "old"
        replace(base / "link", "new")
        (base / "link").rename(base / "other")
        assert os.readlink(at(view, "other")) == "new"


def test_a_link_that_a_watch_tells_of_shows_at_once(base: Path, mounted: Mounter, transport: TransportClass) -> None:
    make_link(base / "link", "old")
    view = mounted(make_transport=transport, base_timeout_s=LONG_S)
    assert os.readlink(at(view, "link")) == "old"
    replace(base / "link", "new")
    watch_tells_of(view, b"link")
    assert os.readlink(at(view, "link")) == "new"


def test_a_link_within_one_tick_of_the_clock_is_not_kept(
    base: Path, mounted: Mounter, transport: TransportClass
) -> None:
    """What the host puts in its place could have the same times, number and length."""
    trace = Trace()
    (base / "link").symlink_to("old")
    view = mounted(make_transport=transport, base_timeout_s=LONG_S, trace=trace)
    with_clock_at(view, (base / "link").lstat().st_ctime_ns)
    for asked in range(1, 4):
        assert os.readlink(at(view, "link")) == "old"
        wait_until(lambda: not view.overlay.outdated, "the kernel to be told")
        view.mount.call(lambda: None)
        wait_until(lambda: os.readlink(at(view, "link")) == "old" and count_of(trace) > asked, "another request")  # noqa: B023 - called in this round


def with_clock_at(view: MountedView, now_ns: int) -> None:
    view.mount.call(lambda: setattr(view.overlay.attributes, "_clock_ns", lambda: now_ns))


def test_a_travel_shows_the_link_of_its_state(base: Path, mounted: Mounter, transport: TransportClass) -> None:
    make_link(base / "link", "in base")
    view = mounted(make_transport=transport, base_timeout_s=LONG_S)
    link = Path(at(view, "link"))
    assert os.readlink(link) == "in base"
    os.utime(link, ns=(1, 1), follow_symlinks=False)
    view.snapshot(b"touched")
    assert os.readlink(link) == "in base"
    link.unlink()
    link.symlink_to("in the view")
    view.snapshot(b"replaced")
    assert os.readlink(link) == "in the view"
    for generation, target in ((0, "in base"), (2, "in the view"), (1, "in base"), (2, "in the view")):
        view.travel(generation)
        assert os.readlink(link) == target
    view.commit()
    assert os.readlink(link) == os.readlink(base / "link") == "in the view"
    replace(base / "link", "by the host")
    watch_tells_of(view, b"link")
    assert os.readlink(link) == "by the host"


def test_a_link_that_is_copied_up_as_another_one_shows_that(
    base: Path, mounted: Mounter, transport: TransportClass
) -> None:
    make_link(base / "link", "old")
    view = mounted(make_transport=transport, base_timeout_s=LONG_S)
    assert os.readlink(at(view, "link")) == "old"
    replace(base / "link", "new")
    os.utime(at(view, "link"), ns=(1, 1), follow_symlinks=False)
    wait_until(lambda: os.readlink(at(view, "link")) == "new", "the target that was copied")


def test_a_link_that_a_rule_hides_cannot_be_read_by_a_process_that_holds_it(
    base: Path, mounted: Mounter, transport: TransportClass
) -> None:
    make_link(base / "link", "secret")
    view = mounted(make_transport=transport, base_timeout_s=LONG_S)
    os.symlink("staged secret", at(view, "staged"))
    with link_held(at(view, "link")) as link, link_held(at(view, "staged")) as staged:
        assert (os.readlink("", dir_fd=link), os.readlink("", dir_fd=staged)) == ("secret", "staged secret")
        replace_rules(view, *(path_rule(base, name, RuleState.HIDDEN) for name in ("link", "staged")))
        for fd in (link, staged):
            with refused(2):
                os.readlink("", dir_fd=fd)
        replace_rules(view)
        assert (os.readlink("", dir_fd=link), os.readlink("", dir_fd=staged)) == ("secret", "staged secret")


def test_a_link_that_nobody_reads_takes_no_note_of_cached_pages(
    base: Path, mounted: Mounter, transport: TransportClass
) -> None:
    (base / "link").symlink_to("target")
    view = mounted(make_transport=transport)
    os.lstat(at(view, "link"))
    assert all(inode.paged == NO_PAGES for inode in view.inodes())
