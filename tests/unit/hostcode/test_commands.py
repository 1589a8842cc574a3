"""Where commands lie, as PATH has it: links, what is not there yet, the mount."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.hostcode.commands import SearchPath
from yolofs.store.base import Base


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    return tmp_path


def search_path(top: Path, *paths: str, mountpoint: Path | None = None) -> SearchPath:
    base = Base(os.fsencode(top))
    return SearchPath(
        base, [os.fsencode(top / path) for path in paths], os.fsencode(mountpoint) if mountpoint is not None else None
    )


def test_links_lead_to_the_directory_and_are_on_the_way(top: Path) -> None:
    found = search_path(top, "bin")
    assert b"usr/bin" in found.directories
    assert {b"bin", b"usr", b"usr/bin"} <= found.ways


def test_a_directory_that_would_take_the_place_of_a_link_in_path_counts(top: Path) -> None:
    (top / "tools").symlink_to("usr")
    assert {b"usr/bin", b"tools/bin"} <= search_path(top, "tools/bin").directories


def test_a_directory_of_path_that_is_not_there_yet_counts(top: Path) -> None:
    assert search_path(top, "home/.local/bin").directories == {b"home/.local/bin"}


def test_a_circle_of_links_leads_nowhere_and_ends(top: Path) -> None:
    (top / "a").symlink_to("b")
    (top / "b").symlink_to("a")
    assert {b"a", b"b"} <= search_path(top, "a").ways


def test_more_links_than_the_kernel_follows_lead_nowhere(top: Path) -> None:
    (top / "link1").symlink_to("usr/bin")
    for number in range(2, 42):
        (top / f"link{number}").symlink_to(f"link{number - 1}")
    assert os.path.exists(top / "link40")
    assert b"usr/bin" in search_path(top, "link40").directories
    assert not os.path.exists(top / "link41")
    assert b"usr/bin" not in search_path(top, "link41").directories


def test_dots_and_slashes_are_resolved_and_what_lies_outside_of_base_is_left_out(top: Path) -> None:
    found = search_path(top, "usr//./bin/", "usr/bin/../lib", "../../elsewhere")
    assert found.directories == {b"usr/bin", b"usr/lib"}


def test_a_path_in_the_mount_stands_for_the_same_in_base_and_the_mount_is_not_touched(top: Path) -> None:
    mountpoint = top / "mnt"  # nothing is there: looking into it would find no link
    (top / "view").symlink_to(mountpoint)
    assert b"usr/bin" in search_path(top, "mnt/bin", mountpoint=mountpoint).directories
    assert b"usr/bin" in search_path(top, "view/bin", mountpoint=mountpoint).directories


def test_an_entry_that_can_be_no_path_does_no_harm(top: Path) -> None:
    assert search_path(top, "n" * 300).directories == set()


def test_empty_and_relative_entries_are_meant_from_the_current_directory(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(top / "usr")
    monkeypatch.setenv("PATH", ":bin:~/x")
    found = SearchPath.of_environment(Base(os.fsencode(top)), None)
    assert found.directories == {b"usr", b"usr/bin", b"usr/~/x"}


def test_where_the_links_in_a_directory_lead_counts_and_what_they_come_by(top: Path) -> None:
    (top / "project/out").mkdir(parents=True)
    (top / "usr/bin/tool").symlink_to("../../project/current/tool.sh")
    (top / "project/current").symlink_to("out")
    (top / "usr/bin/not-there-yet").symlink_to(top / "project/new/made")
    (top / "usr/bin/elsewhere").symlink_to("/nowhere/at/all")
    found = search_path(top, "bin").linked
    assert {b"project/out/tool.sh", b"project/current/tool.sh", b"project/current", b"project/new/made"} <= found
    assert b"project/other" not in found


def test_links_in_a_directory_of_the_mount_are_those_of_base(top: Path) -> None:
    (top / "usr/bin/tool").symlink_to("/mnt/project/tool")
    mountpoint = Path("/mnt")
    assert b"project/tool" in search_path(top, "bin", mountpoint=mountpoint).linked


def test_a_directory_that_cannot_be_read_and_a_circle_in_one_do_no_harm(top: Path) -> None:
    (top / "usr/bin/a").symlink_to("b")
    (top / "usr/bin/b").symlink_to("a")
    assert b"usr/bin/a" in search_path(top, "bin", "not/there").linked
