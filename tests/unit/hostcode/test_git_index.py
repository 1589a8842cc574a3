"""Git's index: what git itself writes is harmless, and what would have it write elsewhere is
not.
"""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
from pathlib import Path

import pytest

from tests.support.git_indexes import index
from yolofs.hostcode.git_index import MOST_BYTES, is_harmless, names

OUT = [
    ".git/hooks/post-checkout",
    "sub/.git",
    "sub/.git/config",
    "../x",
    "a/../../x",
    "/etc/x",
    "a//b",
    "./x",
    ".GIT/config",
]
IN = [".gitignore", "a.git/x", "..x/y...", ".github/z", "x/.git-blame-ignore-revs", "git/x", "dir/"]


def git(directory: Path, *words: str) -> str:
    environment = {**os.environ, "HOME": str(directory.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *words], cwd=directory, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("hash_bytes", [20, 32])
def test_an_index_with_a_path_out_of_the_work_tree_is_not_harmless(version: int, hash_bytes: int) -> None:
    assert is_harmless(index(*IN, version=version, hash_bytes=hash_bytes), hash_bytes)
    for name in OUT:
        data = index(".gitignore", name, "z", version=version, hash_bytes=hash_bytes)
        assert not is_harmless(data, hash_bytes), name


@pytest.mark.parametrize("cut", [0, 3, 12, 60, 90])
def test_a_damaged_index_is_not_harmless(cut: int) -> None:
    data = index(".gitignore", "b")
    assert not is_harmless(data[:cut], 20)
    assert not is_harmless(b"X" + data[1:], 20)
    assert not is_harmless(data.replace(b"\0\0\0\2", b"\0\0\0\5", 1), 20)
    assert not is_harmless(index(".git\0"), 20)


def test_an_index_with_a_name_that_no_file_can_have_tells_no_names() -> None:
    assert names(index("a", "b")) == [b"a", b"b"]
    assert names(index("a", "x\0y", "z")) is None


def test_a_small_index_that_tells_more_names_than_memory_should_hold_tells_none() -> None:
    """In version 4 a name is told by what it shares with the one before."""
    long = "a" * 4000
    count = MOST_BYTES // len(long) + 1
    data = index(long, version=4)
    first, entry = data[12:-20], bytes(24) + struct.pack(">I", 0o100755) + bytes(32) + struct.pack(">H", 0xFFF)
    bomb = struct.pack(">4sII", b"DIRC", 4, count) + first + (entry + b"\1b\0") * (count - 1) + bytes(20)
    assert len(bomb) < 1 << 22
    assert names(bomb) is None


def test_git_writes_a_hook_that_an_index_names(tmp_path: Path) -> None:
    """Why it is looked at; git may forbid it one day."""
    git(tmp_path, "init", "r")
    repository = tmp_path / "r"
    (repository / "x").write_text("#!/bin/sh\n")
    blob = bytes.fromhex(git(repository, "hash-object", "-w", "x").strip())
    head = index("x")[:12] + bytes(24) + struct.pack(">I", 0o100755) + bytes(12) + blob + struct.pack(">H", 24)
    content = head + b".git/hooks/post-checkout" + bytes(8 - (62 + 24) % 8)
    data = content + hashlib.sha1(content).digest()
    (repository / ".git/index").write_bytes(data)
    git(repository, "checkout", "--", ".")
    assert (repository / ".git/hooks/post-checkout").exists()
    assert not is_harmless(data, 20)


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_what_git_itself_writes_is_harmless(tmp_path: Path, version: str, kind: str) -> None:
    """Long names, names that look like others, conflicts, a split index, a sparse one."""
    git(tmp_path, "init", f"--object-format={kind}", "r")
    repository = tmp_path / "r"
    for name in (*IN[:-1], "/".join(["l" * 200] * 18) + "/z", *(f"d{n % 7}/{'x' * n}/.f" for n in range(200))):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("x")
    git(repository, "update-index", "--index-version", version)
    git(repository, "add", ".")
    git(repository, "update-index", "--skip-worktree", ".gitignore")
    (repository / "later").write_text("x")
    size = 20 if kind == "sha1" else 32

    def written() -> list[bytes]:
        return [path.read_bytes() for path in (repository / ".git").glob("*index*")]

    assert [is_harmless(data, size) for data in written()] == [True]
    git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-m", "x")
    git(repository, "update-index", "--split-index")
    git(repository, "add", ".")
    git(repository, "update-index", "--force-remove", "..x/y...")
    assert [is_harmless(data, size) for data in written()] == [True, True]
    git(repository, "update-index", "--no-split-index")
    git(repository, "sparse-checkout", "set", "--cone", "--sparse-index", "d1")
    assert all(is_harmless(data, size) for data in written())
