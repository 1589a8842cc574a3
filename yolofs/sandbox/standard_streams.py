"""What the sandbox gets as stdin, stdout and stderr: never a way to files outside that nobody meant
to open.
"""

from __future__ import annotations

import fcntl
import os
import stat

from yolofs.errors import UsageError

_NAMES = ("stdin", "stdout", "stderr")
_COPY_BYTES = 1 << 20
_MAX_MEMORY_BYTES = 64 << 20


def check_descriptors() -> None:
    """Refuse directories: through a descriptor of one, a program reaches everything around it.

    Raises:
        UsageError: stdin, stdout or stderr is a directory.
    """
    for fd, name in enumerate(_NAMES):
        try:
            mode = os.fstat(fd).st_mode
        except OSError:  # closed
            continue
        if stat.S_ISDIR(mode):
            raise UsageError(
                f"{name} is a directory, through which the command would get out of the view",
                hint=f"start it with another {name}",
            )


class Stdin:
    """The command's stdin: ours, unless that is a real file.

    A file that is open for reading can be opened again for writing through ``/proc/self/fd/0``,
    past the view.  So the command gets a copy of what is left to read in it; how far it has read is
    carried over at the end.  What was opened for writing, or has no name any more, is left as it
    is.
    """

    def __init__(self) -> None:
        self.fd = 0
        self._start = 0
        try:
            st = os.fstat(0)
        except OSError:
            return
        if stat.S_ISREG(st.st_mode) and st.st_nlink and fcntl.fcntl(0, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            self._start = os.lseek(0, 0, os.SEEK_CUR)
            self.fd = _copy_rest(self._start)

    def close(self) -> None:
        """Move our own stdin to where the command has stopped reading."""
        if self.fd:
            os.lseek(0, self._start + os.lseek(self.fd, 0, os.SEEK_CUR), os.SEEK_SET)
            os.close(self.fd)
            self.fd = 0


def _copy_rest(start: int) -> int:
    """Return a new descriptor of a file without a name that holds what stdin has from ``start``
    on.
    """
    if os.fstat(0).st_size - start <= _MAX_MEMORY_BYTES:
        fd = os.memfd_create("stdin", os.MFD_CLOEXEC)
    else:
        import tempfile  # takes long, and few runs have a file as stdin

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    while data := os.pread(0, _COPY_BYTES, start):
        start += len(data)
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
