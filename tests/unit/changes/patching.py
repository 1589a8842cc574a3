"""A view, its patch, and the real git that the patch is given to."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.scribe import Scribe, develop
from yolofs.changes.changes import compare
from yolofs.changes.patch import write_patch
from yolofs.paths import RelPath
from yolofs.state.tree import Tree

TEXT = b"".join(b"line %d\n" % number for number in range(12))
BINARY = bytes(range(256)) * 300


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    """A view of a base with text, binary, executable and empty files, a symlink and a directory."""
    base = tmp_path / "base"
    (base / "d" / "sub").mkdir(parents=True)
    for name in ("text", "d/x", "d/sub/z", "other"):
        (base / name).write_bytes(name.encode() + b"\n" + TEXT)
    (base / "binary").write_bytes(BINARY)
    (base / "tool").write_bytes(b"#!/bin/sh\n")
    (base / "none").write_bytes(b"")
    (base / "link").symlink_to("text")
    for path in base.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.name == "tool" else 0o644)
    return Scribe(bytes(base), bytes(tmp_path / "store"))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository's own directory, to be copied."""
    directory = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", "--template=", str(directory)], check=True)
    return directory / ".git"


@pytest.fixture(params=["in a repository", "outside"])
def target(
    request: pytest.FixtureRequest, scribe: Scribe, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A copy of base for the patch to be applied to."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    directory = tmp_path / "target"
    shutil.copytree(os.fsdecode(scribe.base.root), directory, symlinks=True)
    if request.param == "in a repository":
        shutil.copytree(repository, directory / ".git")
    return directory


def patch_of(scribe: Scribe, *, prefix: bytes = b"", max_text_bytes: int = 1 << 20) -> tuple[bytes, list[str]]:
    parts: list[bytes] = []
    found = compare(Tree(), scribe.tree, scribe.base, scribe.store, expand_renames=True)
    notes = write_patch(found, parts.append, prefix=RelPath(prefix), max_text_bytes=max_text_bytes, store=scribe.store)
    return b"".join(parts), notes


def git_apply(directory: Path, patch: bytes, *options: str) -> None:
    command = ["git", "apply", "--whitespace=nowarn", *options]
    done = subprocess.run(command, input=patch, cwd=directory, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace") + patch.decode(errors="replace")[:5000]


def files(directory: Path) -> dict[bytes, tuple[bytes, bytes]]:
    """Return all files but git's own as mode (as git has it) and content."""
    found = {}
    for parent, directories, names in os.walk(bytes(directory)):
        if b".git" in directories:
            directories.remove(b".git")
        for name in (*directories, *names):
            path = os.path.join(parent, name)
            st = os.lstat(path)
            if stat.S_ISLNK(st.st_mode):
                found[os.path.relpath(path, bytes(directory))] = (b"120000", os.readlink(path))
            elif stat.S_ISREG(st.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
                mode = b"100755" if st.st_mode & 0o100 else b"100644"
                found[os.path.relpath(path, bytes(directory))] = (mode, content)
    return found


def view_files(scribe: Scribe) -> dict[bytes, tuple[bytes, bytes]]:
    shots = develop(scribe.tree, scribe.base, scribe.store)
    modes = {stat.S_IFREG: (b"100644", b"100755"), stat.S_IFLNK: (b"120000", b"120000")}
    return {
        path: (modes[shot.kind][bool(shot.mode & 0o100)], shot.content)
        for path, shot in shots.items()
        if shot.kind in modes
    }


def check(scribe: Scribe, target: Path, *, max_text_bytes: int = 1 << 20) -> bytes:
    """Check that the patch applies and makes the view's files, with nothing to note; return it."""
    patch, notes = patch_of(scribe, max_text_bytes=max_text_bytes)
    assert notes == []
    git_apply(target, patch)  # checks all of it before it does any of it
    assert files(target) == view_files(scribe)
    return patch


def make(scribe: Scribe, path: bytes) -> None:
    """Make a file, and its directory if need be."""
    directory = os.path.dirname(path)
    if directory and not scribe.kind(directory):
        scribe.mkdir(directory)
    scribe.write(path, b"x\n")
