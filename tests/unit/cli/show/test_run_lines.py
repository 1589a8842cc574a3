"""A run in words."""

from __future__ import annotations

import subprocess

import pytest

from yolofs.cli.show.run_lines import command_line


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([b"make", b"-j2"], "make -j2"),
        ([b"sh", b"-c", b'echo "$1" > a.txt', b""], """sh -c 'echo "$1" > a.txt' ''"""),
        ([b"echo", b"it's", b"na\xc3\xafve"], """echo 'it'"'"'s' 'na\u00efve'"""),
        ([b"touch", b"a\nb", b"\xff\x1b[31m"], r"touch $'a\nb' $'\377\033[31m'"),
    ],
)
def test_a_command_is_shown_as_a_shell_takes_it(words: list[bytes], shown: str) -> None:
    assert command_line(words) == shown
    said = subprocess.run(["bash", "-c", f"printf '%s\\0' {shown}"], capture_output=True, check=True).stdout
    assert said.split(b"\0")[:-1] == words
