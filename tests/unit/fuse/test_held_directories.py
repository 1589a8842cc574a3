"""Base directories are held for a moment while names are looked up in them, and never longer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.plain_handlers import handlers_of
from yolofs.fuse.handlers import Handlers
from yolofs.overlay.host_changes import HostChange, stale_after
from yolofs.paths import RelPath

HOUR_NS = 3600 * 10**9


class Clockwork:
    """Keeps what is to be called later."""

    def __init__(self) -> None:
        self.due: list[Callable[[], object]] = []

    def later(self, delay_s: float, function: Callable[[], object]) -> None:
        assert delay_s > 0
        self.due.append(function)


@pytest.fixture
def clockwork() -> Clockwork:
    return Clockwork()


@pytest.fixture
def handlers(base: Path, clockwork: Clockwork) -> Iterator[Handlers]:
    for number in range(12):
        (base / f"d{number}").mkdir()
        (base / f"d{number}/file").write_text(str(number))
    with handlers_of(base) as found:
        found.overlay.held.hold_for(HOUR_NS, clockwork.later)
        yield found


def held(base: Path) -> set[str]:
    """Return which directories of base this process holds, by name."""
    places = (os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd"))
    return {os.path.relpath(place, base) for place in places if os.path.isdir(place) and place.startswith(str(base))}


def number_of(handlers: Handlers, name: bytes, parent: int = 1) -> int:
    attr = handlers.lookup(parent, name).attr
    assert attr is not None
    return attr.number


def size_of(handlers: Handlers, name: bytes, parent: int) -> int | None:
    attr = handlers.lookup(parent, name).attr
    return attr.size if attr is not None else None


def test_a_directory_is_held_while_its_names_are_looked_up(handlers: Handlers, base: Path) -> None:
    directory = number_of(handlers, b"d3")
    assert size_of(handlers, b"file", directory) == 1
    assert "d3" in held(base)
    (base / "d3/file").write_text("longer")  # of a name the host's present state is told
    (base / "d3/new").touch()
    assert size_of(handlers, b"file", directory) == 6
    assert size_of(handlers, b"new", directory) == 0
    (base / "d3/file").unlink()
    assert size_of(handlers, b"file", directory) is None


def test_a_held_directory_is_let_go_after_a_moment(handlers: Handlers, base: Path, clockwork: Clockwork) -> None:
    handlers.overlay.held.hold_for(1, clockwork.later)
    directory = number_of(handlers, b"d3")
    assert size_of(handlers, b"file", directory) == 1
    for function in clockwork.due:
        function()
    assert not held(base)
    (base / "d3").rename(base / "aside")
    (base / "d3").mkdir()
    (base / "d3/file").write_text("another")
    assert size_of(handlers, b"file", directory) == 7


def test_timers_that_are_called_early_let_no_directory_go_too_soon(
    handlers: Handlers, base: Path, clockwork: Clockwork
) -> None:
    directory = number_of(handlers, b"d3")
    handlers.lookup(directory, b"file")
    for function in clockwork.due:
        function()
    assert "d3" in held(base)


def test_after_a_moment_the_hosts_directory_is_looked_up(handlers: Handlers, base: Path, clockwork: Clockwork) -> None:
    handlers.overlay.held.hold_for(1, clockwork.later)  # and nobody calls what is due
    directory = number_of(handlers, b"d3")
    assert size_of(handlers, b"file", directory) == 1
    (base / "d3").rename(base / "aside")
    (base / "d3").mkdir()
    (base / "d3/file").write_text("another")
    assert size_of(handlers, b"file", directory) == 7


def test_with_a_notice_the_hosts_directory_is_looked_up_at_once(handlers: Handlers, base: Path) -> None:
    """Else the kernel would be told anew, and for long, what was there before."""
    directory = number_of(handlers, b"d3")
    assert size_of(handlers, b"file", directory) == 1
    (base / "d3").rename(base / "aside")
    (base / "d3").mkdir()
    (base / "d3/file").write_text("another")
    stale_after(handlers.overlay, [HostChange(RelPath(b"d3"), is_name=True)])
    assert size_of(handlers, b"file", directory) == 7


def test_only_a_few_directories_are_held(handlers: Handlers, base: Path) -> None:
    for number in range(12):
        handlers.lookup(number_of(handlers, b"d%d" % number), b"file")
        assert len(held(base)) <= 9  # base itself is one of them
    assert held(base)


def test_no_directory_is_held_after_looking_anew_or_another_state(handlers: Handlers, base: Path) -> None:
    directory = number_of(handlers, b"d3")
    for change in (handlers.overlay.look_anew, handlers.overlay.freeze, handlers.overlay.close):
        handlers.lookup(directory, b"file")
        assert held(base)
        change()
        assert not held(base)


def test_a_link_in_the_place_of_the_directory_leads_nowhere(handlers: Handlers, base: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").touch()
    directory = number_of(handlers, b"d3")
    (base / "d3").rename(base / "aside")
    (base / "d3").symlink_to(outside)
    assert handlers.lookup(directory, b"secret").attr is None


def test_a_held_directory_that_became_a_file_is_not_found(handlers: Handlers, base: Path) -> None:
    directory = number_of(handlers, b"d3")
    (base / "d3").rename(base / "aside")
    assert handlers.lookup(directory, b"file").attr is None
    (base / "d3").touch()
    assert handlers.lookup(directory, b"file").attr is None


def test_of_a_held_directory_the_present_attributes_are_told(handlers: Handlers, base: Path) -> None:
    directory = number_of(handlers, b"d3")
    handlers.lookup(directory, b"file")
    (base / "d3").chmod(0o700)
    os.utime(base / "d3", ns=(10**18, 2 * 10**18))
    attr = handlers.getattr(directory).attr
    assert attr is not None
    assert (attr.mode & 0o777, attr.mtime_ns) == (0o700, 2 * 10**18)


def test_base_itself_is_found_while_it_is_held(handlers: Handlers, base: Path) -> None:
    os.setxattr(base, "user.name", b"value")
    number_of(handlers, b"d3")
    assert "." in held(base)
    assert handlers.getxattr(1, b"user.name") == b"value"
    assert b"user.name" in handlers.listxattr(1)


@pytest.mark.parametrize("instead", ["nothing", "a file", "a link"])
def test_a_held_directory_that_the_host_removes_is_gone_at_once(handlers: Handlers, base: Path, instead: str) -> None:
    directory = number_of(handlers, b"d3")
    handlers.lookup(directory, b"file")
    assert "d3" in held(base)
    (base / "d3/file").unlink()
    (base / "d3").rmdir()
    if instead == "a file":
        (base / "d3").touch()
    elif instead == "a link":
        (base / "d3").symlink_to("d4")
    with pytest.raises(OSError, match=r"No such file|Stale|Not a directory"):
        handlers.getattr(directory)


def test_changing_the_mode_of_a_file_in_a_held_directory_copies_what_is_there(handlers: Handlers, base: Path) -> None:
    directory = number_of(handlers, b"d3")
    number = number_of(handlers, b"file", directory)
    (base / "d3/file").write_text("longer")
    os.utime(base / "d3/file", ns=(10**18, 2 * 10**18))
    attr = handlers.setattr(number, 0o600, None, None, None, None, None).attr
    assert attr is not None
    assert (attr.mode & 0o777, attr.size, attr.mtime_ns) == (0o600, 6, 2 * 10**18)
    assert (base / "d3/file").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("size", [None, 0, 1], ids=["chmod", "empty", "cut"])
def test_what_the_host_puts_in_a_files_place_is_not_copied_for_it(
    handlers: Handlers, base: Path, size: int | None
) -> None:
    directory = number_of(handlers, b"d3")
    number = number_of(handlers, b"file", directory)
    (base / "d3/another").write_text("another")
    (base / "d3/another").rename(base / "d3/file")
    mode = 0o600 if size is None else None
    with pytest.raises(OSError, match="Stale"):
        handlers.setattr(number, mode, None, None, size, None, None)
    assert (base / "d3/file").read_text() == "another"
