"""Two indexes of git's: whether they say the same, as git itself writes them, and as somebody may
forge them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolofs.text.git_index_format import OddIndexError, entries, is_same_but_for_caches
from yolofs.text.git_split_index import OddLinkError, read_link

TREE = b"TREE"


def git(directory: Path, *words: str) -> str:
    environment = {**os.environ, "HOME": str(directory.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "n", f"GIT_{role}_EMAIL": "n@example.org"}
    done = subprocess.run(["git", *words], cwd=directory, check=True, capture_output=True, text=True, env=environment)
    return done.stdout


def repository(tmp_path: Path, *options: str, version: int = 2) -> Path:
    """Make a repository with a commit of three files, whose index has the extension TREE."""
    git(tmp_path, "init", *options, "r")
    made = tmp_path / "r"
    (made / "sub").mkdir()
    for name in ("a", "b", "sub/c"):
        (made / name).write_text(name)
    git(made, "add", ".")
    git(made, "update-index", "--index-version", str(version))
    git(made, "commit", "-m", "one")
    return made


def read(made: Path) -> bytes:
    return (made / ".git/index").read_bytes()


def looked_at_again(made: Path) -> bytes:
    """Have ``git status`` write new times and inode numbers into the index, and return it."""
    before = read(made)
    for name in ("a", "sub/c"):
        content = (made / name).read_bytes()
        (made / name).unlink()
        (made / "other").write_bytes(b"takes the number")
        (made / name).write_bytes(content)
        os.utime(made / name, (1, 1))
    (made / "other").unlink()
    git(made, "status")
    assert read(made) != before
    return read(made)


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("options", [[], ["--object-format=sha256"]], ids=["sha1", "sha256"])
def test_an_index_after_git_status_says_the_same(tmp_path: Path, version: int, options: list[str]) -> None:
    made = repository(tmp_path, *options, version=version)
    before = read(made)
    assert TREE in before
    assert is_same_but_for_caches(before, looked_at_again(made))


def test_with_flags_of_version_3_and_an_untracked_cache_it_says_the_same(tmp_path: Path) -> None:
    made = repository(tmp_path)
    (made / "later").write_text("later")
    git(made, "add", "--intent-to-add", "later")
    before = read(made)
    assert before[4:8] == b"\0\0\0\3"
    git(made, "update-index", "--force-untracked-cache")
    after = looked_at_again(made)
    assert b"UNTR" in after
    assert is_same_but_for_caches(before, after)


def test_another_version_and_no_checksum_say_the_same(tmp_path: Path) -> None:
    made = repository(tmp_path)
    before = read(made)
    git(made, "config", "index.skipHash", "true")
    git(made, "update-index", "--index-version", "4")
    after = read(made)
    assert after[4:8] == b"\0\0\0\4"
    assert after.endswith(bytes(20))
    assert is_same_but_for_caches(before, after)


def add_another_content(made: Path) -> None:
    (made / "a").write_text("b")
    git(made, "add", "a")


def add_a_file(made: Path) -> None:
    (made / "new").write_text("new")
    git(made, "add", "new")


def conflict(made: Path) -> None:
    """Leave a file in three stages."""
    blob = git(made, "rev-parse", "HEAD:a").strip()
    subprocess.run(
        ["git", "update-index", "--index-info"],
        cwd=made,
        check=True,
        input=f"0 {'0' * 40}\ta\n100644 {blob} 2\ta\n".encode(),
    )


@pytest.mark.parametrize(
    "change",
    [
        add_another_content,
        add_a_file,
        conflict,
        lambda made: git(made, "rm", "-q", "--cached", "b"),
        lambda made: git(made, "mv", "b", "b2"),
        lambda made: git(made, "update-index", "--chmod=+x", "a"),
        lambda made: git(made, "update-index", "--assume-unchanged", "a"),
        lambda made: git(made, "update-index", "--skip-worktree", "a"),
    ],
)
def test_a_changed_index_is_not_the_same(tmp_path: Path, change: Callable[[Path], object]) -> None:
    made = repository(tmp_path)
    before = read(made)
    change(made)
    assert not is_same_but_for_caches(before, read(made))
    assert not is_same_but_for_caches(read(made), before)


def test_indexes_with_other_extensions_differ(tmp_path: Path) -> None:
    before = read(repository(tmp_path))
    at = before.rindex(TREE)
    assert not is_same_but_for_caches(before, signed(before[:at]))
    assert not is_same_but_for_caches(before, signed(before[:-20] + b"REUC\0\0\0\1x"))
    assert not is_same_but_for_caches(before, signed(before[:at] + b"TREF" + before[at + 4 : -20]))
    assert is_same_but_for_caches(before, signed(before[:-20] + b"EOIE\0\0\0\1x"))


def signed(body: bytes) -> bytes:
    return body + hashlib.sha1(body).digest()


def test_what_does_not_read_to_its_last_byte_says_nothing_not_even_the_same_as_itself(tmp_path: Path) -> None:
    data = read(repository(tmp_path))
    assert is_same_but_for_caches(data, data)
    for odd in (b"", data[:-1], data + b"\0", data[:-1] + bytes([data[-1] ^ 1]), b"DIRC" * 20):
        assert not is_same_but_for_caches(odd, odd)
        assert not is_same_but_for_caches(data, odd)
    body = data[:-20]
    for torn in (body[:40], body[:-3], body + b"EOIE", body + b"EOIE\xff\xff\xff\xff", body + b"x"):
        assert not is_same_but_for_caches(signed(torn), signed(torn))


def test_a_small_file_that_holds_gigabytes_of_names_is_given_up_at_once() -> None:
    """Each name shares all of the one before, as version 4 allows."""
    entry = bytes(40 + 20 + 2) + b"\0" + b"n" * 1000 + b"\0"
    body = b"DIRC\0\0\0\4" + (10_000).to_bytes(4) + entry * 10_000
    with pytest.raises(OddIndexError):
        list(entries(signed(body), 20))
    assert not is_same_but_for_caches(signed(body), signed(body))


@given(st.data())
def test_no_bytes_make_a_comparison_of_indexes_fail(data: st.DataObject) -> None:
    version = data.draw(st.sampled_from([2, 3, 4]))
    count = data.draw(st.integers(0, 5))
    body = b"DIRC" + version.to_bytes(4) + count.to_bytes(4) + data.draw(st.binary(max_size=400))
    content = signed(body)
    is_same_but_for_caches(content, signed(body[: data.draw(st.integers(0, len(body)))]))
    assert is_same_but_for_caches(content, content) == is_same_but_for_caches(signed(body), content)


def shared_of(made: Path) -> Callable[[bytes], bytes]:
    def find(checksum: bytes) -> bytes:
        return (made / f".git/sharedindex.{checksum.hex()}").read_bytes()

    return find


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("options", [[], ["--object-format=sha256"]], ids=["sha1", "sha256"])
def test_a_split_index_says_the_same_as_a_whole_one(tmp_path: Path, version: int, options: list[str]) -> None:
    made = repository(tmp_path, *options, version=version)
    for number in range(300):
        (made / f"file-{number}").write_text(f"{number}\n")
    git(made, "add", ".")
    git(made, "config", "splitIndex.maxPercentChange", "100")
    git(made, "update-index", "--split-index")
    for number in (*range(70, 200), 299):
        (made / f"file-{number}").unlink()
    (made / "a").write_text("other\n")
    (made / "file-2 new").write_text("new\n")
    git(made, "add", "-A")
    split = read(made)
    assert b"link" in split
    assert b"file-290" not in split
    git(made, "update-index", "--no-split-index")
    whole = read(made)
    assert b"link" not in whole
    assert is_same_but_for_caches(split, whole, shared_of(made))
    assert is_same_but_for_caches(whole, split, shared_of(made))
    assert not is_same_but_for_caches(split, whole)
    (made / "b").write_text("other\n")
    git(made, "add", "-A")
    assert not is_same_but_for_caches(split, read(made), shared_of(made))


@given(st.data())
def test_no_link_to_a_shared_part_is_read_without_end(data: st.DataObject) -> None:
    words = data.draw(st.lists(st.integers(0, 2**64 - 1), max_size=4))
    bitmap = struct.pack(f">II{len(words)}QI", 9, len(words), *words, 0)
    with contextlib.suppress(OddLinkError):
        part = read_link(bytes(range(20)) + bitmap + bitmap, 20, 1000)
        assert all(place < 1000 for place in (*part.removed, *part.replaced))
