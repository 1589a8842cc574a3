from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.system import host_programs
from yolofs.system.host_programs import find_program


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a program and a file that is none in directories of their own."""
    for directory, mode in (("one", 0o755), ("two", 0o755), ("plain", 0o644)):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "tool").write_text("#!/bin/sh\n")
        (tmp_path / directory / "tool").chmod(mode)
    (tmp_path / "directory/tool").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def mount_at(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Where views are said to be."""
    mounts: list[Path] = []
    monkeypatch.setattr(host_programs, "_views", lambda: {os.fsencode(mount) for mount in mounts})
    return mounts


def search_path(*directories: object) -> str:
    return ":".join(map(str, directories))


def test_the_first_program_of_that_name_is_found(place: Path) -> None:
    words = (place / "missing", place / "plain", place / "directory", place / "two", place / "one")
    assert find_program("tool", search_path(*words)) == str(place / "two/tool")


def test_relative_directories_are_passed_over(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place / "one")
    assert find_program("tool", search_path("", ".", "../one")) is None
    assert find_program("tool", search_path("", ".", place / "two")) == str(place / "two/tool")


def test_the_path_of_the_environment_counts_where_none_is_given(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", search_path(place / "one"))
    assert find_program("tool") == str(place / "one/tool")


def test_a_program_in_a_view_is_passed_over(place: Path, mount_at: list[Path]) -> None:
    mount_at.append(place / "one")
    assert find_program("tool", search_path(place / "one", place / "two")) == str(place / "two/tool")


@pytest.mark.parametrize("link", ["file", "directory", "relative", "twice"])
def test_a_program_in_a_view_that_a_link_leads_to_is_passed_over(place: Path, mount_at: list[Path], link: str) -> None:
    mount_at.append(place / "one")
    (place / "links").mkdir()
    at = place / "links"
    match link:
        case "file":
            (at / "tool").symlink_to(place / "one/tool")
        case "directory":
            at = place / "led"
            at.symlink_to(place / "one")
        case "relative":
            (at / "tool").symlink_to("../one/tool")
        case _:
            (place / "led").symlink_to("links")
            (at / "tool").symlink_to("../led/../one/tool")
            at = place / "led"
    assert find_program("tool", search_path(at)) is None
    assert find_program("tool", search_path(at, place / "two")) == str(place / "two/tool")


def test_a_directory_that_only_has_a_name_like_a_view_is_searched(place: Path, mount_at: list[Path]) -> None:
    mount_at.append(place / "on")
    assert find_program("tool", search_path(place / "one")) == str(place / "one/tool")


def test_where_all_is_a_view_its_programs_are_found(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_programs, "mounted_paths", lambda _: [(b"/", b"fuse.yolofs"), (b"/proc", b"proc")])
    assert find_program("tool", search_path(place / "one")) == str(place / "one/tool")
