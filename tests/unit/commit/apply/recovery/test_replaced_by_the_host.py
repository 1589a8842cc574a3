"""The host replaces a file between a commit's last look and its step: the host's file keeps its
content and its mode.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commit_model import CommitScribe
from yolofs.commit import execute
from yolofs.commit.apply.steps import Steps
from yolofs.commit.plan.plan import Create, FinishDirectory, MakeDirectory, Rewrite, SetMetadata, Step
from yolofs.errors import RolledBackError


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path / "base"
    (base / "d").mkdir(parents=True)
    for name in ("changed", "linked"):
        (base / "d" / name).write_bytes(b"base " + name.encode())
    os.link(base / "d/linked", base / "other")
    return base


@pytest.fixture
def scribe(base: Path) -> CommitScribe:
    return CommitScribe(os.fsencode(base), os.fsencode(base.parent / "store"))


@pytest.fixture
def secret(base: Path) -> Path:
    """A file outside of base, which nobody else may read."""
    secret = base.parent / "secret"
    secret.write_bytes(b"secret")
    secret.chmod(0o600)
    os.utime(secret, ns=(1, 1))
    return secret


def looks(path: Path) -> tuple[int, ...]:
    st = path.stat()
    return st.st_mode, st.st_uid, st.st_gid, st.st_size, st.st_mtime_ns


def commit_while(
    scribe: CommitScribe, monkeypatch: pytest.MonkeyPatch, acts: Callable[[Step], bool], act: Callable[[], object]
) -> None:
    """Commit, while the host does something before the step for which ``acts`` holds."""
    really = Steps.do
    left = [act]

    def do(steps: Steps, step: Step) -> None:
        if left and acts(step):
            left.pop()()
        really(steps, step)

    monkeypatch.setattr(Steps, "do", do)
    execute(scribe.plan(), scribe.store, parking=os.fsencode(Path(os.fsdecode(scribe.base.root)).parent / "commits/1"))


def replace_by(path: Path, other: Path) -> None:
    path.unlink()
    path.hardlink_to(other)


def test_a_link_in_the_place_of_a_file_gets_no_metadata(
    scribe: CommitScribe, base: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = looks(secret)
    scribe.chmod(b"d/changed", 0o644)
    scribe.utime(b"d/changed", 5)
    with pytest.raises(RolledBackError, match="it was replaced while the commit ran"):
        commit_while(
            scribe,
            monkeypatch,
            lambda step: isinstance(step, SetMetadata),
            lambda: replace_by(base / "d/changed", secret),
        )
    assert looks(secret) == before


def test_a_link_in_the_place_of_a_file_with_several_names_is_not_written_to(
    scribe: CommitScribe, base: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = looks(secret)
    scribe.write(b"d/linked", b"staged")
    with pytest.raises(RolledBackError, match="it was replaced while the commit ran"):
        commit_while(
            scribe, monkeypatch, lambda step: isinstance(step, Rewrite), lambda: replace_by(base / "d/linked", secret)
        )
    assert (looks(secret), secret.read_bytes()) == (before, b"secret")
    assert (base / "other").read_bytes() == b"base linked"


def test_taking_a_commit_back_does_not_open_a_file_that_happens_to_have_the_mode_that_was_staged(
    scribe: CommitScribe, base: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = looks(secret)
    scribe.chmod(b"d/changed", 0o600)
    scribe.mkdir(b"new", 0o755)
    scribe.write(b"d/fails", b"")

    def host() -> None:
        replace_by(base / "d/changed", secret)
        (base / "d/fails").write_bytes(b"of the host")

    with pytest.raises(RolledBackError):
        commit_while(scribe, monkeypatch, lambda step: isinstance(step, Create | MakeDirectory), host)
    assert looks(secret) == before


def test_taking_a_commit_back_does_not_open_a_directory_of_the_host(
    scribe: CommitScribe, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe.chmod(b"d", 0o700)

    def host() -> None:
        (base / "d").rename(base.parent / "moved away")
        (base / "d").mkdir(0o700)
        os.chmod(base, 0o500)
        raise OSError(5, "the disk fails")

    with pytest.raises(RolledBackError):
        commit_while(scribe, monkeypatch, lambda step: isinstance(step, FinishDirectory), host)
    assert stat.S_IMODE((base / "d").stat().st_mode) == 0o700


def test_a_directory_in_the_place_of_one_gets_no_metadata(
    scribe: CommitScribe, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe.chmod(b"d", 0o755)
    scribe.utime(b"d", 5)

    def host() -> None:
        (base / "d").rename(base.parent / "moved away")
        (base / "d").mkdir(0o700)

    with pytest.raises(RolledBackError, match="it was replaced while the commit ran"):
        commit_while(scribe, monkeypatch, lambda step: isinstance(step, FinishDirectory), host)
    assert stat.S_IMODE((base / "d").stat().st_mode) == 0o700
