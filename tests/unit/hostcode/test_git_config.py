"""Git's settings are read as git reads them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from yolofs.hostcode.git_config import MOST_BYTES, ConfigLine, parse_config

CLONED = b"""\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[remote "origin"]
\turl = https://example.org/x.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
"""


@pytest.mark.parametrize(
    "text",
    [
        b"",
        CLONED,
        CLONED.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf[a]\nb=c\n",
        b'[a] b = c ; d\n# x\n;y\n[A "S\\"p\\\\q"]\nKey-1="q ; #" r  \n',
        b'[a]\nb\nc =\nd = x\\ny\\t\\"z\\\\\n',
        b"[a]\nb = one \\\n   two\n",
        b'[a]\nb = "one \\\n   two"   \n',
        b"[a]b=c",
        b"[a.Sub]\nb = 1\n",
        b'[a]\nb = a "" \n',
        b"[a]\nb = x\\\n",
        b"[ a]\nb=c\n",
        b"[a]\nb c\n",
        b"[a]\nb # c\n",
        b"[a]\n1b = c\n",
        b'[a]\nb = "open\n',
        b"[a]\nb = \\x\n",
        b"[a\n",
        b'[a "b]\n',
        b'[a "b" ]\nc=d\n',
        b"[a]\n\x0cb = c\n",
        b"[a]\nb = c\x0c\n",
        b"[a]\nb = c\rd\n",
    ],
)
def test_a_config_is_read_as_git_reads_it(tmp_path: Path, text: bytes) -> None:
    """What git refuses, and a little more than that, is None."""
    (tmp_path / "config").write_bytes(text)
    environment = {**os.environ, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "config", "--file", tmp_path / "config", "--null", "--list"], capture_output=True, env=environment
    )
    entries = parse_config(text)
    if done.returncode:
        assert entries is None
        return
    listed = [one.decode("utf-8", "surrogateescape").partition("\n") for one in done.stdout.split(b"\0") if one]
    assert entries is not None
    assert [_line(entry) for entry in entries] == [(name, value if has else None) for name, has, value in listed]


def _line(entry: ConfigLine) -> tuple[str, str | None]:
    parts = (entry.section, entry.subsection, entry.key)
    return ".".join(part for part in parts if part is not None), entry.value


@pytest.mark.parametrize("text", [b"b = c\n", b"[a]\nb = \0\n", b"#" * (MOST_BYTES + 1)])
def test_a_config_with_anything_unusual_is_not_read(text: bytes) -> None:
    assert parse_config(text) is None
