"""git's binary literals: decoded again they give what went in, in lines as git writes them."""

from __future__ import annotations

import base64
import os
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from yolofs.text import git_binary
from yolofs.text.git_binary import hash_blob, hash_blob_of, is_binary, literal, read_chunks

LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def decode(hunk: bytes) -> bytes:
    head, *lines, empty, end = hunk.split(b"\n")
    assert (empty, end) == (b"", b"")
    parts = []
    for line in lines:
        count = LETTERS.index(line[:1]) + 1
        assert len(line) - 1 == (count + 3) // 4 * 5
        parts.append(base64.b85decode(line[1:])[:count])
    assert all(line[:1] == b"z" for line in lines[:-1])
    data = zlib.decompress(b"".join(parts))
    assert head == b"literal %d" % len(data)
    return data


@given(st.lists(st.binary(max_size=200), max_size=5))
@example([os.urandom(3000), b"", os.urandom(1)])
def test_a_literal_holds_the_bytes(chunks: list[bytes]) -> None:
    data = b"".join(chunks)
    assert decode(b"".join(literal(len(data), iter(chunks)))) == data


def test_the_name_of_a_blob_is_gits() -> None:
    assert hash_blob(b"") == b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    done = subprocess.run(["git", "hash-object", "--stdin"], input=b"a\0b\n", capture_output=True, check=True)
    assert hash_blob(b"a\0b\n") == done.stdout.strip()


def test_a_name_is_the_same_with_and_without_openssl(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [b"", b"a\n", b"x" * 40_000]
    found = []
    for left in (1 << 20, 0):
        monkeypatch.setattr(git_binary, "_left_without_openssl", [left])
        found.append([hash_blob(text) for text in texts])
    assert found[0] == found[1]


def test_an_open_file_is_hashed_without_moving_its_position(tmp_path: Path) -> None:
    data = b"x" * 3_000_000
    (tmp_path / "f").write_bytes(data)
    with open(tmp_path / "f", "rb") as file:
        assert hash_blob_of(file.fileno(), len(data)) == hash_blob(data)
        assert file.tell() == 0


def test_a_file_that_became_shorter_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345")
    with open(tmp_path / "f", "rb") as file, pytest.raises(OSError, match="ended after 5 of 6 bytes"):
        list(read_chunks(file.fileno(), 6))


def test_binary_is_what_has_a_nul_near_its_start() -> None:
    assert is_binary(b"a\0")
    assert is_binary(b"a" * 7999 + b"\0")
    assert not is_binary(b"a" * 8000 + b"\0")
    assert not is_binary(b"\xff\xfe\x01")
