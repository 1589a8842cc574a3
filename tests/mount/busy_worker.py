"""One of several processes that work in the same view.  It is started in the view's root as
``busy_worker.py NUMBER SEED SECONDS``.

It performs random operations in a directory of its own and, under names of its own, in directories
that all share, and looks at once whether each did what it should.  In the shared ones it also
competes: all append to one file, try to be the first to make the same files and directories, and
rename over the same names.  At the end it prints as JSON what has to be there: its own tree, the
lines it appended, what it won.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SHARED = "shared/a", "shared/b", "shared/c"


@dataclass
class File:
    """What has to be in a file; hard links share one."""

    data: bytearray = field(default_factory=bytearray)
    mode: int = 0o644


class Worker:
    """Knows what it did.  ``nodes``: path to file, to the target of a symbolic link, or to None for
    a directory.
    """

    def __init__(self, number: int, seed: int) -> None:
        self.number = number
        self.dice = random.Random(f"{seed}.{number}")
        self.own = f"own-{number}"
        self.nodes: dict[str, File | str | None] = {self.own: None}
        self.lines = 0
        self.won: list[str] = []
        self.put: dict[str, list[str]] = {}
        self.names = 0

    def run(self, seconds: float) -> None:
        """Work until the time is over."""
        os.mkdir(self.own)
        operations: list[Callable[[], None]] = [
            self.create, self.create, self.write, self.write, self.append, self.truncate, self.read, self.read,
            self.move, self.move, self.replace, self.remove, self.make_directory, self.move_directory,
            self.remove_directory, self.link, self.link_symbolically, self.chmod, self.list, self.walk,
            self.append_to_log, self.append_to_log, self.be_first, self.be_first_directory, self.put_over,
            self.read_what_others_put, self.meet_others, self.write_and_unlink,
        ]  # fmt: skip
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline or not self.lines:  # on a slow machine it may take that long to append one
            self.dice.choice(operations)()
        self.check_all()

    def report(self) -> dict[str, Any]:
        """Return what has to be there."""
        return {
            "nodes": {path: describe(node) for path, node in self.nodes.items()},
            "lines": self.lines,
            "won": self.won,
            "put": self.put,
        }

    # ---- choosing

    def directory(self) -> str:
        """Return a directory to work in."""
        own = [path for path, node in self.nodes.items() if node is None]
        return self.dice.choice([*own, *SHARED])

    def new(self, directory: str) -> str:
        """Return a name that nobody else uses."""
        self.names += 1
        return f"{directory}/{self.number}-{self.names}"

    def one(self, kind: type | None = File) -> str:
        """Return a path of a kind, an empty string if there is none."""
        found = [
            path
            for path, node in self.nodes.items()
            if (node is None and path != self.own if kind is None else isinstance(node, kind))
        ]
        return self.dice.choice(found) if found else ""

    def below(self, directory: str) -> list[str]:
        """Return what lies in a directory, at any depth."""
        return [path for path in self.nodes if path.startswith(directory + "/")]

    # ---- with names of its own

    def create(self) -> None:
        if len(self.nodes) > 150:
            self.remove()
            return
        path = self.new(self.directory())
        data = self.dice.randbytes(self.dice.choice((0, 1, 100, 5000, 40_000)))
        with open(path, "xb") as file:
            file.write(data)
        self.nodes[path] = File(bytearray(data))

    def write(self) -> None:
        path = self.one()
        if path:
            node = self.nodes[path]
            assert isinstance(node, File)
            offset = self.dice.choice((0, 10, 4096, 30_000))
            data = self.dice.randbytes(self.dice.choice((1, 50, 9000)))
            fd = os.open(path, os.O_WRONLY)
            assert os.pwrite(fd, data, offset) == len(data)
            os.close(fd)
            node.data.extend(bytes(max(0, offset - len(node.data))))
            node.data[offset : offset + len(data)] = data

    def append(self) -> None:
        path = self.one()
        if path:
            node = self.nodes[path]
            assert isinstance(node, File)
            data = self.dice.randbytes(37)
            with open(path, "ab") as file:
                file.write(data)
            node.data += data

    def truncate(self) -> None:
        path = self.one()
        if path:
            node = self.nodes[path]
            assert isinstance(node, File)
            size = self.dice.choice((0, 5, 4000, 20_000))
            os.truncate(path, size)
            del node.data[size:]
            node.data.extend(bytes(size - len(node.data)))

    def read(self) -> None:
        path = self.one()
        if path:
            self.check(path)

    def move(self) -> None:
        path = self.one() or self.one(str)
        if path:
            to = self.new(self.directory())
            os.rename(path, to)
            self.nodes[to] = self.nodes.pop(path)
            assert not os.path.lexists(path)

    def replace(self) -> None:
        path, to = self.one(), self.one()
        if path and self.nodes[path] is not self.nodes[to]:
            os.rename(path, to)
            self.nodes[to] = self.nodes.pop(path)

    def remove(self) -> None:
        path = self.one() or self.one(str)
        if path:
            os.unlink(path)
            del self.nodes[path]

    def make_directory(self) -> None:
        path = self.new(self.directory())
        if path.count("/") < 6:
            os.mkdir(path)
            self.nodes[path] = None

    def move_directory(self) -> None:
        path = self.one(None)
        to = self.new(self.directory())
        if path and not to.startswith(path + "/") and to.count("/") < 6:
            os.rename(path, to)
            for inner in [path, *self.below(path)]:
                self.nodes[to + inner[len(path) :]] = self.nodes.pop(inner)

    def remove_directory(self) -> None:
        path = self.one(None)
        if path and len(self.below(path)) < 10:
            shutil.rmtree(path)
            for inner in [path, *self.below(path)]:
                del self.nodes[inner]

    def link(self) -> None:
        path = self.one()
        if path:
            to = self.new(self.directory())
            os.link(path, to)
            self.nodes[to] = self.nodes[path]

    def link_symbolically(self) -> None:
        path = self.new(self.directory())
        os.symlink(target := f"target {self.names}", path)
        self.nodes[path] = target

    def chmod(self) -> None:
        path = self.one()
        if path:
            node = self.nodes[path]
            assert isinstance(node, File)
            node.mode = self.dice.choice((0o600, 0o640, 0o755))
            os.chmod(path, node.mode)

    def list(self) -> None:
        directory = self.directory()
        mine = {path.rpartition("/")[2] for path in self.nodes if path.rpartition("/")[0] == directory}
        found = os.listdir(directory)
        assert len(found) == len(set(found)), f"{directory} lists a name twice"
        assert {name for name in found if name.startswith(f"{self.number}-")} == mine, directory

    def walk(self) -> None:
        found = {os.path.join(at, name) for at, below, files in os.walk(self.own) for name in below + files}
        assert found == set(self.below(self.own))

    def write_and_unlink(self) -> None:
        path = self.new(self.directory())
        with open(path, "x+b") as file:
            os.unlink(path)
            file.write(data := self.dice.randbytes(3000))
            file.seek(0)
            assert file.read() == data
            assert os.fstat(file.fileno()).st_nlink == 0

    # ---- against others

    def append_to_log(self) -> None:
        fd = os.open("shared/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        line = f"{self.number} {self.lines} {'.' * self.dice.randrange(200)}\n".encode()
        assert os.write(fd, line) == len(line)
        os.close(fd)
        self.lines += 1

    def be_first(self) -> None:
        path = f"shared/race/file-{self.dice.randrange(300)}"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return
        os.write(fd, b"%d" % self.number)
        os.close(fd)
        self.won.append(path)

    def be_first_directory(self) -> None:
        path = f"shared/race/dir-{self.dice.randrange(300)}"
        try:
            os.mkdir(path)
        except FileExistsError:
            return
        os.mkdir(f"{path}/{self.number}")
        self.won.append(path)

    def put_over(self) -> None:
        """Rename over a name that all rename over: nobody ever sees it missing or half written."""
        path = f"shared/put/{self.dice.randrange(5)}"
        self.names += 1
        text = f"{self.number}-{self.names} " * 200
        with open(f"shared/put/new-{self.number}", "w") as file:
            file.write(text)
        os.rename(f"shared/put/new-{self.number}", path)
        self.put.setdefault(path, []).append(text.split()[0])

    def read_what_others_put(self) -> None:
        path = f"shared/put/{self.dice.randrange(5)}"
        try:
            with open(path) as file:
                words = file.read().split()
        except FileNotFoundError:
            assert path not in self.put, f"{path} was put there, and never removed"
            return
        assert len(words) == 200, f"{path} is half written"
        assert len(set(words)) == 1, f"{path} is mixed"

    def meet_others(self) -> None:
        """Make, fill, empty and remove what others make and remove too; whatever comes of it,
        nothing is left.
        """
        directory = f"shared/meet/{self.dice.randrange(3)}"
        operations: list[Callable[[], None]] = [
            lambda: os.mkdir(directory),
            lambda: os.mkdir(f"{directory}/below"),
            lambda: os.rename(directory, f"shared/meet/{self.dice.randrange(3)}"),
            lambda: os.rmdir(f"{directory}/below"),
            lambda: os.rmdir(directory),
        ]
        for operation in operations:
            try:
                operation()
            except (FileNotFoundError, FileExistsError):
                continue
            except OSError as error:
                if error.errno not in (22, 39):  # EINVAL: into itself; ENOTEMPTY
                    raise

    # ---- looking

    def check(self, path: str) -> None:
        node = self.nodes[path]
        if isinstance(node, File):
            with open(path, "rb") as file:
                assert file.read() == node.data, f"{path} has other content"
            st = os.stat(path)
            names = sum(1 for other in self.nodes.values() if other is node)
            assert (st.st_size, st.st_nlink, stat.S_IMODE(st.st_mode)) == (len(node.data), names, node.mode), path
        elif isinstance(node, str):
            assert os.readlink(path) == node
        else:
            assert stat.S_ISDIR(os.lstat(path).st_mode)

    def check_all(self) -> None:
        for path in self.nodes:
            self.check(path)


def describe(node: File | str | None) -> list[Any]:
    """Return what JSON can hold of it."""
    if isinstance(node, File):
        return ["file", node.mode, hashlib.sha256(node.data).hexdigest()]
    return ["link", node] if node is not None else ["directory"]


if __name__ == "__main__":
    worker = Worker(int(sys.argv[1]), int(sys.argv[2]))
    worker.run(float(sys.argv[3]))
    print(json.dumps(worker.report()))  # noqa: T201 - what the test reads
