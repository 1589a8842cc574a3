"""The directories that are shown, and how to tell that one has not changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

STAMP_BYTES = 16


def content(number: int, size: int) -> bytes:
    """Return what ``micro`` writes into file ``number``."""
    return f"f{number:<{STAMP_BYTES - 1}}".encode() * (size // STAMP_BYTES)


def make_files(directory: Path, count: int, size: int) -> None:
    """Make a directory of the files f0, f1, … as ``micro`` expects them."""
    directory.mkdir(parents=True)
    for number in range(count):
        (directory / f"f{number}").write_bytes(content(number, size))


def make_directories(directory: Path, count: int, names: int) -> None:
    """Make d0, d1, … with ``names`` empty files each."""
    for number in range(count):
        (directory / f"d{number}").mkdir(parents=True)
        for name in range(names):
            (directory / f"d{number}/name{name}").touch()


def copy(source: Path, target: Path) -> None:
    """Copy a directory with all that can be seen of it."""
    subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)


def fingerprint(directory: Path) -> str:
    """Return a digest that changes with any change below a directory: names, and every inode with
    its ctime.

    The kernel sets a ctime on each change of content or attributes, and nobody can set it back.
    """
    digest = hashlib.sha256()
    stack = [os.fsencode(directory)]
    while stack:
        path = stack.pop()
        with os.scandir(path) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                st = entry.stat(follow_symlinks=False)
                facts = (st.st_ino, st.st_mode, st.st_nlink, st.st_uid, st.st_size, st.st_mtime_ns, st.st_ctime_ns)
                digest.update(b"%s\0%r\n" % (entry.path, facts))
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
    return digest.hexdigest()


def digest(path: Path) -> str:
    """Return the digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def listing(directory: Path) -> dict[str, str]:
    """Return every file below a directory with its content's digest; a link's is that of its
    target's name.
    """
    found = {}
    for where, _, names in os.walk(directory):
        for name in names:
            path = Path(where, name)
            is_link = path.is_symlink()
            found[str(path.relative_to(directory))] = f"-> {path.readlink()}" if is_link else digest(path)
    return found


def remove(path: Path) -> None:
    """Remove a directory, but nothing that is mounted in it."""
    subprocess.run(["rm", "-rf", "--one-file-system", path], check=True)
    if path.exists():
        shutil.rmtree(path)
