"""The rows of the table of what becomes code on the host, with real files: a plain commit leaves
them staged.

The machine is a child's root directory, so that rows about ``/etc`` and homes mean what they say.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import stat
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

import yolofs
from tests.support.core_driver import CoreDriver
from tests.support.model_steps import how_many
from tests.support.seed import sample
from yolofs.cli import main
from yolofs.hostcode.table import GIT_ROWS, rows

pytestmark = [pytest.mark.root_only, pytest.mark.slow, pytest.mark.timeout(600)]  # chroot(2) is root's

for _name in ("encodings.idna", *(one.name for one in pkgutil.walk_packages(yolofs.__path__, "yolofs."))):
    importlib.import_module(_name)  # there is no Python in the child's root

UNNAMED = 16
_BY_DAY = 40
"""So many rows are tried in each way; by night all."""
HOME, PROJECT = "/home/u", "/home/u/p"
EVIL = b"[core]\n\tfsmonitor = ./x\n"
"""Also git's settings count with that, by their content."""
PATTERNS = [row.pattern for row in (*GIT_ROWS, *rows())]


class Sample(NamedTuple):
    """A file that a row is about, and files beside it whose names are similar, as absolute
    paths.
    """

    pattern: str
    path: str
    near: tuple[str, ...]


def sample_of(number: int, pattern: str) -> Sample:
    """Make up a file for a row; no other row has it."""
    unique = f"r{number}"
    top, _, rest = pattern.partition("/")
    above = {"~": HOME, "**": f"{PROJECT}/{unique}"}.get(top, "")
    names = rest.split("/")
    last = len(names) - 1 - (names[-1] in ("*", "**"))

    def spelled(changed: str) -> str:
        words = [*names[:last], changed, *names[last + 1 :]]
        return f"{above}/" + "/".join(word.replace("**", "*").replace("*", unique) for word in words)

    return Sample(pattern, spelled(names[last]), tuple(spelled(name) for name in similar(names[last])))


def similar(name: str) -> Iterator[str]:
    """Yield names that are nearly what a name of a pattern fits."""
    if name == "rc.d":  # another row names /etc/rc*.d
        name = "rc"
    literal = max(name.split("*"), key=len)
    if len(literal) > 2:
        yield name.replace(literal, literal[:2] + "x" + literal[2:])
    if not name.startswith("*"):
        yield f"x{name}"
    if not name.endswith("*"):
        yield f"{name}x"


BY_CONTENT = {row.pattern for row in GIT_ROWS if row.pattern.rpartition("/")[2] != "**"}
"""git's own files are known by their content, so a change of mode makes no difference."""
SAMPLES = [sample_of(number, pattern) for number, pattern in enumerate(PATTERNS)]


class Ran(NamedTuple):
    """A command that has ended."""

    code: int
    json: Any


class Machine:
    """A directory that is the root of those who work in it."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "root"
        self._told = directory / "told"
        program = Path(yolofs.__file__).parent  # which the rules look for
        for name in ("proc", "tmp", "srv", PROJECT[1:], str(program)[1:]):
            (self.root / name).mkdir(parents=True)

    def at(self, path: str) -> Path:
        """Return where a path of the machine is."""
        return self.root / path[1:]

    def has(self, path: str, content: bytes, mode: int) -> None:
        """Put a file there."""
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).write_bytes(content)
        self.at(path).chmod(mode)

    def run(self, *words: str) -> Ran:
        """Run a command of the program in the project; what it prints is JSON."""
        code = self.within(lambda: main.main([*words, "--json"]))
        return Ran(code, json.loads(self._told.read_bytes()))

    def within(self, act: Callable[[], int]) -> int:
        """Do something in a child on the machine; return what that returns."""
        child = os.fork()
        if not child:
            self._be(act)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def _be(self, act: Callable[[], int]) -> NoReturn:
        try:
            os.dup2(os.open(self._told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
            sys.stdout = open(1, "w")  # noqa: SIM115 - for the whole process
            enter(self.root)
            os.environ.clear()
            os.environ.update({"HOME": HOME, "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": "/tmp"})
            os.chdir(PROJECT)
            code = act()
            sys.stdout.flush()
            os._exit(code)
        except BaseException:  # noqa: BLE001 - the child must end here
            traceback.print_exc()
            os._exit(99)


def enter(root: Path) -> None:
    """Make a directory this process's root, with ``/proc`` in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_namespace, bind, recursive, private = 0x20000, 0x1000, 0x4000, 1 << 18
    assert libc.unshare(new_namespace) == 0
    assert libc.mount(b"none", b"/", None, recursive | private, None) == 0
    assert libc.mount(b"/proc", bytes(root / "proc"), None, bind | recursive, None) == 0
    os.chroot(root)


def make_directories(view: CoreDriver, path: bytes) -> None:
    """Make those in the view that a path needs and that are not there."""
    above = b""
    for name in path.split(b"/")[:-1]:
        above = os.path.join(above, name)
        with contextlib.suppress(FileExistsError):
            view.mkdir(above, 0o755)


def create(view: CoreDriver, path: bytes) -> None:
    make_directories(view, path)
    view.create(path, EVIL, 0o644)


def change(view: CoreDriver, path: bytes) -> None:
    view.overwrite(path, EVIL)


def source_of(path: str) -> str:
    """Return where lies what is to be renamed to a path."""
    return "/srv/" + path.strip("/").replace("/", "|")


def rename(view: CoreDriver, path: bytes) -> None:
    make_directories(view, path)
    view.rename(source_of(os.fsdecode(path))[1:].encode(), path)


def allow_execution(view: CoreDriver, path: bytes) -> None:
    view.chmod(path, 0o755)


WAYS: dict[str, tuple[Callable[[CoreDriver, bytes], None], bytes | None]] = {
    "created": (create, None),
    "changed": (change, b"before"),
    "renamed": (rename, None),
    "executable": (allow_execution, EVIL),
}
"""Ways for a file to come about: the operation, and the file's content in base before, None without
one.
"""
FOUND = tuple[bytes, int] | None


def found_at(machine: Machine, path: str) -> FOUND:
    """Return what base has at a path."""
    try:
        return machine.at(path).read_bytes(), stat.S_IMODE(machine.at(path).stat().st_mode)
    except FileNotFoundError:
        return None


def chunks(paths: list[str]) -> Iterable[list[str]]:
    return (paths[start : start + 100] for start in range(0, len(paths), 100))


@pytest.mark.parametrize("way", WAYS)
def test_a_file_of_a_row_stays_staged_until_it_is_named_and_its_neighbours_do_not(tmp_path: Path, way: str) -> None:
    machine = Machine(tmp_path)
    act, before = WAYS[way]
    found = [one for one in SAMPLES if way != "executable" or one.pattern not in BY_CONTENT]
    samples = sample(found, how_many(ci=_BY_DAY, nightly=len(found)), "host code", way)
    named = [one.path for one in samples]
    near = list(dict.fromkeys(path for one in samples for path in one.near))
    sources = [source_of(path) for path in [*named, *near]] if way == "renamed" else []
    for path in [*named, *near] if before is not None else sources:
        machine.has(path, before or EVIL, 0o644)

    def work() -> int:
        view = CoreDriver(b"/", PROJECT.encode())
        for path in [*named, *near]:
            act(view, path[1:].encode())
            view.look(os.path.dirname(path[1:]).encode())  # and holds it, as the kernel does
        view.close()
        return 0

    assert machine.within(work) == 0
    old = None if before is None else (before, 0o644)
    new = EVIL, 0o755 if way == "executable" else 0o644
    assert old != new

    status = machine.run("status", "--hidden", "--scratch")
    assert {one["path"] for one in status.json["host_code"]} == set(named)
    plain = machine.run("commit", "--yes", "--outside", "--scratch")
    assert plain.code == UNNAMED
    held = [one for one in plain.json["held"] if one["has_to_be_named"]]
    assert {path["path"] for one in held for path in one["paths"]} - set(sources) == set(named)
    assert {path: found_at(machine, path) for path in named} == dict.fromkeys(named, old)
    assert {path: found_at(machine, path) for path in near} == dict.fromkeys(near, new)

    some, rest = named[::2], named[1::2]
    for paths in chunks(some):
        both = [source_of(path) for path in paths if way == "renamed"]  # ends of a rename go together
        assert machine.run("commit", "--yes", *paths, *both).code == 0
    assert {path: found_at(machine, path) for path in some} == dict.fromkeys(some, new)
    assert {path: found_at(machine, path) for path in rest} == dict.fromkeys(rest, old)
    assert machine.run("commit", "--yes", "--outside", "--scratch", "--trusted").code == 0
    assert {path: found_at(machine, path) for path in rest} == dict.fromkeys(rest, new)


def hard_link(view: CoreDriver, path: bytes) -> None:
    make_directories(view, path)
    view.link(source_of(os.fsdecode(path))[1:].encode(), path)


def rename_onto(view: CoreDriver, path: bytes) -> None:
    view.rename(source_of(os.fsdecode(path))[1:].encode(), path)


def exchange(view: CoreDriver, path: bytes) -> None:
    view.rename(source_of(os.fsdecode(path))[1:].encode(), path, 2)


def symlink(view: CoreDriver, path: bytes) -> None:
    make_directories(view, path)
    view.symlink(source_of(os.fsdecode(path)).encode(), path)


def symlink_above(view: CoreDriver, path: bytes) -> None:
    """Make the directory that a path lies in a link to one in which such a file lies."""
    symlink(view, os.path.dirname(path))


def samples_below_a_directory() -> list[Sample]:
    """Return the samples that lie in a directory of their row, in which no other row has a
    directory.

    Rows are left out in which that is any directory: a link may have any name there.
    """
    tops = ("/", "/etc", HOME, PROJECT)
    above = Counter(one.path.rpartition("/")[0] for one in SAMPLES)
    return [
        one
        for one in SAMPLES
        if (directory := one.path.rpartition("/")[0]) not in tops
        and one.pattern.removeprefix("**/").count("/")
        and "/**/" not in one.pattern[1:]
        and not any(other.startswith(f"{directory}/") for other in above)
    ]


OTHER_WAYS: dict[str, tuple[Callable[[CoreDriver, bytes], None], bool]] = {
    "by a hard link": (hard_link, False),
    "renamed onto": (rename_onto, True),
    "exchanged": (exchange, True),
    "by a symlink": (symlink, False),
    "by a symlink above": (symlink_above, False),
}
"""By each other way in which a file may come: what is done, and whether base has a file there."""


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_host_code_stays_staged_however_it_came_there(tmp_path: Path, way: str) -> None:
    machine = Machine(tmp_path)
    act, is_there = OTHER_WAYS[way]
    is_above = act is symlink_above
    found = samples_below_a_directory() if is_above else SAMPLES
    samples = sample(found, how_many(ci=_BY_DAY, nightly=len(found)), "host code", way)
    paths = list(dict.fromkeys(one.path for one in samples))
    for path in paths:
        if is_there:
            machine.has(path, b"before", 0o644)
        source = source_of(os.path.dirname(path)) + "/" + os.path.basename(path) if is_above else source_of(path)
        machine.has(source, EVIL, 0o644)

    def work() -> int:
        view = CoreDriver(b"/", PROJECT.encode())
        for path in paths:
            with contextlib.suppress(FileExistsError):  # two rows about one directory
                act(view, path[1:].encode())
        view.close()
        return 0

    assert machine.within(work) == 0
    assert machine.run("commit", "--yes", "--outside", "--scratch").code == UNNAMED
    assert {path: found_at(machine, path) for path in paths} == dict.fromkeys(
        paths, (b"before", 0o644) if is_there else None
    )
    assert [path for path in paths if os.path.lexists(machine.at(path))] == (paths if is_there else [])
    if is_above:
        assert not [path for path in paths if machine.at(path).parent.is_symlink()]
    assert machine.run("commit", "--yes", "--outside", "--scratch", "--trusted").code == 0
    assert [
        path for path in paths if not os.path.lexists(machine.at(os.path.dirname(path) if is_above else path))
    ] == []
