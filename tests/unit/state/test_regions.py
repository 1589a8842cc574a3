"""Which part of base a path lies in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolofs.paths import RelPath
from yolofs.state.regions import Region, Regions
from yolofs.store.base import Base

REGIONS = Regions(RelPath(b"home/u/p"), (RelPath(b"home/u/.cache"), RelPath(b"home/u/p/build"), RelPath(b"tmp")))


@pytest.mark.parametrize(
    ("path", "region"),
    [
        (b"home/u/p", Region.PROJECT),
        (b"home/u/p/a", Region.PROJECT),
        (b"home/u/p/build", Region.SCRATCH),
        (b"home/u/p/build/x", Region.SCRATCH),
        (b"home/u/p/builds", Region.PROJECT),
        (b"home/u/.cache/pip", Region.SCRATCH),
        (b"home/u", Region.OUTSIDE),
        (b"tmpfile", Region.OUTSIDE),
        (b"", Region.OUTSIDE),
    ],
)
def test_the_nearest_directory_decides(path: bytes, region: Region) -> None:
    assert REGIONS.of(path) is region


def test_a_project_in_a_scratch_directory_is_no_scratch() -> None:
    regions = Regions(RelPath(b"tmp/p"), (RelPath(b"tmp"),))
    assert regions.of(b"tmp/p/a") is Region.PROJECT
    assert regions.of(b"tmp/a") is Region.SCRATCH


def test_a_project_that_is_a_scratch_directory_counts_as_the_project() -> None:
    assert Regions(RelPath(b"tmp"), (RelPath(b"tmp"),)).of(b"tmp/a") is Region.PROJECT


def test_a_change_with_paths_in_two_regions_counts_as_outside() -> None:
    assert REGIONS.of_all((b"home/u/p/a", b"tmp/a")) is Region.OUTSIDE
    assert REGIONS.of_all((b"tmp/a", b"tmp/b")) is Region.SCRATCH


def test_regions_are_found_from_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home/p").mkdir(parents=True)
    (tmp_path / "link").symlink_to("home")
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    base = Base(os.fsencode(tmp_path))
    project = os.fsencode(tmp_path / "home/p")
    regions = Regions.find(base, project, ["~/.cache", "out", "/nowhere/at/all"])
    assert regions == Regions(RelPath(b"home/p"), (RelPath(b"home/.cache"), RelPath(b"home/p/out")))


def test_in_a_base_without_the_project_nothing_is_outside(tmp_path: Path) -> None:
    regions = Regions.find(Base(os.fsencode(tmp_path)), b"/elsewhere", [str(tmp_path / "t")])
    assert regions.of(b"a") is Region.PROJECT
    assert regions.of(b"t/a") is Region.SCRATCH
