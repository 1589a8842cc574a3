"""Files in a store, made and read."""

from __future__ import annotations

import errno
import os

from tests.support.required import do_without
from yolofs.store.store import Store


def read_fd(fd: int) -> bytes:
    with open(fd, "rb") as file:
        return file.read()


def set_xattr(path: bytes, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            do_without(f"{name} is not supported here")
        raise


def add_file(store: Store, data: bytes = b"", mode: int = 0o644) -> int:
    ino, fd, _ = store.create_file(mode)
    os.write(fd, data)
    os.close(fd)
    return ino
