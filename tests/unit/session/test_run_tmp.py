"""The private directories of a session's runs: made, measured, emptied, removed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from yolofs.session import run_tmp
from yolofs.system.busy_trees import Measured

pytestmark = pytest.mark.disk


@pytest.fixture
def session(tmp_path: Path) -> bytes:
    return bytes(tmp_path)


def test_tmp_directories_are_made_once_with_modes_that_no_umask_changes(session: bytes, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        found = run_tmp.make(session, [])
        assert run_tmp.make(session, []) == found
    finally:
        os.umask(before)
    assert found == {b"/tmp": session + b"/run-tmp/tmp", b"/var/tmp": session + b"/run-tmp/var-tmp"}
    modes = [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("run-tmp", "run-tmp/tmp", "run-tmp/var-tmp")]
    assert modes == [0o700, 0o1777, 0o1777]


@pytest.mark.parametrize("mode", [0, 0o300, 0o500])
def test_what_a_run_has_closed_is_measured_emptied_and_open_to_the_next_one(ordinary_room: bytes, mode: int) -> None:
    def close() -> None:
        for place in run_tmp.make(ordinary_room, []).values():
            os.mkdir(place + b"/left")
            os.chmod(place, mode)

    close()
    assert run_tmp.size(ordinary_room).size_bytes > 0
    places = list(run_tmp.make(ordinary_room, []).values())
    assert [stat.S_IMODE(os.stat(place).st_mode) for place in places] == [0o1777] * 2
    for place in places:
        os.chmod(place, mode)
    run_tmp.clear(ordinary_room)
    assert [os.listdir(place) for place in run_tmp.make(ordinary_room, []).values()] == [[], []]
    close()
    run_tmp.remove(ordinary_room)
    assert os.listdir(ordinary_room) == []


def test_where_there_are_none_nothing_is_to_be_measured_emptied_or_removed(session: bytes, tmp_path: Path) -> None:
    assert run_tmp.size(session) == Measured(0)
    run_tmp.clear(session)
    run_tmp.remove(session)
    assert list(tmp_path.iterdir()) == []


def test_directories_on_the_way_to_the_project_do_not_count_and_stay(session: bytes, tmp_path: Path) -> None:
    """Whatever their names are, and however often they are noted."""
    ways = [b"/tmp/x/project", b"/var/tmp/a b\n\xff"]
    tmp = tmp_path / "run-tmp/tmp"
    run_tmp.make(session, ways[:1])
    run_tmp.make(session, ways)
    assert (tmp_path / "run-tmp/ways").read_text().splitlines() == ["/tmp/x/project", "/var/tmp/a%20b%0A%FF"]
    (tmp / "x/project/left").mkdir(parents=True)
    os.mkdir(bytes(tmp_path / "run-tmp/var-tmp") + b"/a b\n\xff")
    (tmp / "x/file").write_text("x")
    assert run_tmp.size(session).size_bytes == sum(
        os.lstat(tmp / name).st_blocks * 512 for name in ("x/file", "x/project/left")
    )
    run_tmp.clear(session)
    assert [path.relative_to(tmp).as_posix() for path in sorted(tmp.rglob("*"))] == ["x", "x/project"]
    assert os.listdir(bytes(tmp_path / "run-tmp/var-tmp")) == [b"a b\n\xff"]
    assert run_tmp.size(session) == Measured(0)


def test_removing_tmp_removes_the_ways_to_what_is_shown_there(session: bytes, tmp_path: Path) -> None:
    run_tmp.make(session, [b"/tmp/x/project"])
    (tmp_path / "run-tmp/tmp/x/project").mkdir(parents=True)
    run_tmp.remove(session)
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_the_place_of_a_tmp_directory_is_not_followed(session: bytes, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("x")
    (tmp_path / "run-tmp").mkdir()
    (tmp_path / "run-tmp/tmp").symlink_to(tmp_path / "other")
    with pytest.raises(NotADirectoryError):
        run_tmp.clear(session)
    run_tmp.remove(session)
    assert (tmp_path / "other/file").read_text() == "x"


def test_a_session_of_very_many_ways_goes_on_and_can_be_emptied(
    session: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_tmp, "_MOST_WAYS_BYTES", 1000)
    places = run_tmp.make(session, [b"/tmp/project"])
    for number in range(300):
        assert run_tmp.make(session, [b"/tmp/project", b"/tmp/of-run-%d" % number]) == places
    for name in (b"project", b"of-run-0", b"of-run-299"):
        os.mkdir(places[b"/tmp"] + b"/" + name)
    run_tmp.clear(session)
    assert sorted(os.listdir(places[b"/tmp"])) == [b"of-run-0", b"project"]
