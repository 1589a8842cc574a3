"""Little projects whose ordinary command does damage that nobody sees: all of it is told, and one
command undoes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.program import Program

pytestmark = pytest.mark.mount


@dataclass(frozen=True, slots=True)
class Trap:
    """A project, what its user runs, and the lines that must be in the summary."""

    files: dict[str, str]
    command: str
    damage: tuple[str, ...]
    harmless: tuple[str, ...] = field(default=())


TRAPS = {
    "a cleaner that deletes READMEs": Trap(
        {
            "Makefile": "clean:\n\trm -f *.o; find . -name 'README*' -delete\n",
            "a.o": "",
            "README": "r",
            "docs/README.md": "d",
        },
        "make clean",
        ("D  README", "D  docs/README.md", "D  a.o"),
    ),
    "a formatter that rewrites what it should not": Trap(
        {
            "format.sh": "sed -i 's/ *$//' src/*.py vendor/*.txt\n",
            "src/a.py": "x = 1  \n",
            "vendor/sums.txt": "abc  \n",
        },
        "sh format.sh",
        ("M  src/a.py", "M  vendor/sums.txt"),
    ),
    "a lint that deletes sources": Trap(
        {
            "lint.py": "import os\nfor n in ('bad.py', 'old.py'): os.remove(n)\nprint('ok')\n",
            "bad.py": "1",
            "old.py": "2",
        },
        "python3 lint.py",
        ("D  bad.py", "D  old.py"),
    ),
    "a config fixer that resets secrets": Trap(
        {"fix.sh": "cp settings.example settings.ini\n", "settings.example": "key=\n", "settings.ini": "key=s3cr3t\n"},
        "sh fix.sh",
        ("M  settings.ini",),
    ),
    "a test teardown that wipes fixtures": Trap(
        {
            "test.py": "import shutil\nprint('1 passed')\nshutil.rmtree('fixtures')\n",
            "fixtures/a.json": "{}",
            "fixtures/b/c": "c",
        },
        "python3 test.py",
        ("D  fixtures/  (and 3 in it)",),
    ),
    "a build that empties a directory beside the project": Trap(
        {"build.sh": "mkdir -p out; cp a out/; rm -rf ../neighbour/*\n", "a": "a", "../neighbour/work": "precious"},
        "sh build.sh",
        ("D  {parent}/neighbour/work",),
        ("A  out/  (and 1 in it)",),
    ),
    "an installer that edits the shell's start file": Trap(
        {"install.sh": "echo 'alias ls=rm' >> $HOME/.profile\n", "../home/.profile": "export A=1\n"},
        "HOME={parent}/home sh install.sh",
        ("M  {parent}/home/.profile",),
    ),
    "a script that opens what was closed": Trap(
        {"deploy.sh": "chmod -R go+rwX keys\n", "keys/id": "private"},
        "sh deploy.sh",
        ("X  keys/id  (mode 600 -> 666)",),
    ),
    "a migration that renames what others look for": Trap(
        {"migrate.sh": "mv data data.bak; mkdir data\n", "data/db": "rows"},
        "sh migrate.sh",
        ("A  data/",),
        ("R  data/ -> data.bak/",),
    ),
    "a hook that is replaced": Trap(
        {"setup.sh": "printf 'curl evil' > .git/hooks/pre-commit\n", ".git/hooks/pre-commit": "#!/bin/sh\nmake lint\n"},
        "sh setup.sh",
        ("M  .git/hooks/pre-commit  [run by git]",),
    ),
    "a program that puts links where files were": Trap(
        {"dedup.sh": "rm b; ln -s a b; truncate -s 0 a\n", "a": "same\n", "b": "same\n"},
        "sh dedup.sh",
        ("M  a", "T  b  (file -> symlink)"),
    ),
    "a report that empties its own input": Trap(
        {
            "report.sh": "for n in $(seq 30); do sed -i s/a/b/ src/$n; touch new$n; done; sort data/rows > data/rows\n",
            "data/rows": "b\na\n",
            **{f"src/{number}": "a\n" for number in range(1, 31)},
        },
        "sh report.sh",
        ("M  data/rows",),
    ),
    "a script that puts a link where a directory was": Trap(
        {
            "link.sh": "rm -r data; ln -s .. data; for n in $(seq 30); do touch new$n; done\n",
            **{f"data/{number}": "rows\n" for number in range(60)},
        },
        "sh link.sh",
        ("T  data  (directory -> symlink)  (and 60 deleted in it)",),
    ),
    "a deployment that opens one file among many new ones": Trap(
        {"deploy.sh": "for n in $(seq 30); do touch new$n; done; chmod 666 keys/id\n", "keys/id": "private"},
        "sh deploy.sh",
        ("X  keys/id  (mode 600 -> 666)",),
    ),
}


TITLES = ("deleted:", "emptied:", "outside the project:", "in the project:")


def content_of(top: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of all that lies below, but what yolofs itself keeps."""
    found = {}
    for path in sorted(top.rglob("*")):
        if ".yolofs" not in path.parts:
            data = (
                path.readlink().__fspath__().encode()
                if path.is_symlink()
                else path.read_bytes()
                if path.is_file()
                else b""
            )
            found[str(path.relative_to(top))] = (path.lstat().st_mode, data)
    return found


def laid_out(trap: Trap, parent: Path) -> Program:
    """Make the project of a trap in ``parent``, with a session."""
    project = parent / "project"
    project.mkdir(parents=True)
    for path, content in trap.files.items():
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.resolve().write_text(content)
        file.chmod(0o600 if "keys/" in path else 0o644)
    yolofs = Program(project)
    (project / ".yolofs.toml").write_text("scratch = []\n")
    yolofs.start_session()
    return yolofs


@pytest.mark.parametrize("name", points(list(TRAPS), "hidden damage", some=3))
def test_the_summary_names_all_the_damage_and_one_command_undoes_it(name: str, elsewhere: Path) -> None:
    trap = TRAPS[name]
    parent = elsewhere / "work"
    yolofs = laid_out(trap, parent)
    before = content_of(parent)
    with yolofs.mounted("--root", "/") as mountpoint:
        done = yolofs("run", "sh", "-c", trap.command.format(parent=parent))
        told = [line.strip() for line in done.err.splitlines()]
        for line in (*trap.damage, *trap.harmless):
            assert line.format(parent=parent) in told
        titles = [line for line in told if line.endswith(":")]
        assert titles == [title for title in TITLES if title in titles]
        assert content_of(parent) == before
        undo = told[-1].partition("undo it: yolofs ")[2].split()
        yolofs(*undo)
        assert content_of(mountpoint / str(parent)[1:]) == before
        assert yolofs("status", "--json").json["changes"] == []
