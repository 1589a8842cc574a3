"""What fusermount3 sends is looked at: another program by that name may stand before it on the
``PATH``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from yolofs.fuse.direct import mounting

HELPER = """#!{python}
import array, os, socket
with socket.socket(fileno=int(os.environ["_FUSE_COMMFD"])) as ours:
    for path in {paths}:
        fd = os.open(path, os.O_RDWR)
        ours.sendmsg([b"\\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
"""


@pytest.mark.parametrize("sent", [(), ("/dev/null",), ("file",)], ids=["nothing", "another device", "a file"])
def test_descriptors_other_than_the_device_are_refused_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: tuple[str, ...]
) -> None:
    (tmp_path / "file").touch()
    helper = tmp_path / "fusermount3"
    helper.write_text(HELPER.format(python=sys.executable, paths=[str(tmp_path / path) for path in sent]))
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    fds = set(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="fusermount3 sent no device"):
        mounting._by_helper(os.fsencode(tmp_path), allow_other=False)
    assert set(os.listdir("/proc/self/fd")) == fds
