"""Ordinary work in a project, in a view of the whole machine and under the built-in rules: nothing
asks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.program import Program, connected, wait_until
from tests.support.required import do_without, is_required
from yolofs.audit.audit import AskNote, Note, RefusalNote, read_audit

pytestmark = [
    pytest.mark.mount,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bwrap") is None and not is_required(), reason="bubblewrap is not installed"),
]

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WORK = {
    "bash": "bash -ic 'echo $MARK' | grep from-bashrc",
    "python3": "python3 -c 'import ssl, json, sqlite3; assert ssl.create_default_context().get_ca_certs()'",
    "git": "git init -q . && git add -A && git commit -qm one && git branch fix.key && git log",
    "gcc": "echo 'int main(void){return 0;}' > a.c && gcc -o a a.c && ./a",
    "make": "printf 'out: a.txt\\n\\tcp a.txt out\\n' > Makefile && make -s && cat out",
    "node": 'node -e \'require("fs").writeFileSync("x.js", "1"); require("https")\'',
    "npm": "npm init -y && npm install --offline --no-audit --no-fund && npm ls",
    "python3 -m venv": "python3 -m venv --without-pip .venv && .venv/bin/python -c 'import ssl, venv'",
    "pip3": "python3 -m venv .venv && .venv/bin/pip list && .venv/bin/python -c 'import pip._vendor.certifi as c;"
    " assert open(c.where()).read()'",
}

BY_SETUP = ("bash", "git", "gcc", "make")
"""What the set-up installs, so that it has to be there."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home directory with settings, credentials and notes."""
    home = tmp_path / "home"
    for name, text in {
        ".bashrc": "MARK=from-bashrc\n",
        ".gitconfig": "[user]\n\tname = Somebody\n\temail = a@b\n",
        ".ssh/id_ed25519": "secret",
        ".npmrc": "//registry.npmjs.org/:_authToken=secret\n",
        ".netrc": "secret",
        "package.json": '{"name": "above"}',
        "work/package.json": '{"name": "above"}',
        "notes.txt": "note",
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.fixture
def view(home: Path) -> Iterator[tuple[Program, Path]]:
    """Mount the whole machine for a project below ``home``."""
    project = home / "work/project"
    project.mkdir(parents=True)
    (project / "a.txt").write_text("one\n")
    (project / ".env").write_text("TOKEN=secret\n")
    (project / ".yolofs.toml").write_text("ask_timeout = 0.1\n")
    program = Program(project)
    program.start_session()
    with program.mounted("--root", "/") as mountpoint:
        yield program, mountpoint


def run(view: tuple[Program, Path], home: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script with the view as its only files."""
    program, mountpoint = view
    command: list[str | Path] = [
        "bwrap",
        "--bind",
        mountpoint,
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--die-with-parent",
    ]
    command += ["--setenv", "HOME", home, "--setenv", "PATH", PATH, "--chdir", program.project, "sh", "-ec", script]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


def noted(yolofs: Program) -> list[Note]:
    """Return what the audit says; a refusal is noted by another thread than tells it, so all are
    awaited.
    """
    with connected(yolofs) as client:
        client.flush()
    return list(read_audit(os.fsencode(yolofs.session)))


@pytest.mark.parametrize(
    "tool",
    [
        *points([tool for tool in WORK if tool != "pip3"], "ordinary work", some=2),
        pytest.param("pip3", marks=pytest.mark.nightly),
    ],
)
def test_ordinary_tools_in_a_project_ask_nothing(view: tuple[Program, Path], home: Path, tool: str) -> None:
    program = tool.partition(" ")[0]
    if shutil.which(program, path=PATH) is None:
        if program in BY_SETUP:
            do_without(f"{program} is not installed")
        pytest.skip(f"{program} is not installed, which setup sees to by night alone, or not at all")
    done = run(view, home, WORK[tool])
    assert done.returncode == 0, done.stdout + done.stderr
    notes = noted(view[0])
    assert [note for note in notes if isinstance(note, AskNote)] == []


def test_a_commit_in_a_local_clone_asks_nothing(view: tuple[Program, Path], home: Path) -> None:
    """The clone has the objects of a repository outside of the project as hard links, and git sets
    their times.
    """
    subprocess.run(
        "git init -q origin && cd origin && mkdir d && echo 1 > d/f && echo 1 > g && git add . && git commit -qm one"
        " && git repack -adq && cd ../project && git init -q . && git pull -q ../origin HEAD"
        " && rm -r .git/objects && cp -rl ../origin/.git/objects .git/",
        shell=True,
        check=True,
        cwd=home / "work",
        env={"HOME": str(home), "PATH": PATH},
    )
    done = run(view, home, "echo 2 > g && git commit -qam two && echo 1 > g && git commit -qam three && git fsck")
    assert done.returncode == 0, done.stderr
    assert [note for note in noted(view[0]) if isinstance(note, AskNote | RefusalNote)] == []


def test_credentials_are_out_of_reach_and_the_rest_of_home_is_asked(view: tuple[Program, Path], home: Path) -> None:
    for path in (home / ".ssh/id_ed25519", home / ".ssh", home / ".npmrc", home / ".netrc", ".env"):
        done = run(view, home, f"cat {path} || ls -d {path}")
        assert done.returncode != 0
        assert done.stderr.count("No such file or directory") == 2, done.stderr
    assert "Permission denied" in run(view, home, f"cat {home}/notes.txt").stderr
    assert "Permission denied" in run(view, home, "touch /usr/bin/new").stderr
    notes = noted(view[0])
    assert [note.path for note in notes if isinstance(note, AskNote)] == [f"{home}/notes.txt"]
    refused = {note.path for note in notes if isinstance(note, RefusalNote)}
    assert refused == {"/usr/bin/new"}


def test_git_says_at_once_that_it_may_not_change_the_users_settings(view: tuple[Program, Path], home: Path) -> None:
    """A question could only lead to a refusal: the file whose place the lock takes is read-only."""
    done = run(view, home, "git config --global user.name x")
    assert "could not lock config file" in done.stderr
    notes = noted(view[0])
    assert [note for note in notes if isinstance(note, AskNote)] == []
    assert {note.path for note in notes if isinstance(note, RefusalNote)} == {f"{home}/.gitconfig.lock"}
    for name in (".gitconfig", ".gitconfig.lock"):
        view[0]("rule", "allow", home / name)
    done = run(view, home, "git config --global user.name x && git config user.name")
    assert done.stdout == "x\n"
    assert "Somebody" in (home / ".gitconfig").read_text()


def test_a_directory_that_leads_to_built_in_rules_is_made_without_a_question(
    view: tuple[Program, Path], home: Path
) -> None:
    """As by ``pip install --user`` in a new home: it is refused where it would install, at once."""
    done = run(view, home, "mkdir -p ~/.local/lib/python3 || stat -c %a ~/.local")
    assert done.stdout == "755\n", done.stderr
    notes = noted(view[0])
    assert [note for note in notes if isinstance(note, AskNote)] == []
    assert {note.path for note in notes if isinstance(note, RefusalNote)} == {f"{home}/.local/lib"}


def test_an_editor_starts_and_stages_what_it_keeps_without_a_question(view: tuple[Program, Path], home: Path) -> None:
    """As Emacs does before it opens a file; its own program stays as it is."""
    program, _ = view
    script = "mkdir -p ~/.emacs.d/eln-cache && echo > ~/.emacs.d/eln-cache/a.eln && head -c 1 /var/log/wtmp > b"
    done = run(view, home, f"{script}; ls -d ~/.emacs.d/eln-cache/a.eln; ! echo > ~/.emacs.d/init.el")
    assert done.stdout == f"{home}/.emacs.d/eln-cache/a.eln\n", done.stderr
    assert [note for note in noted(program) if isinstance(note, AskNote)] == []
    assert "a.eln  [run by editors]" in program("status", "--scratch").out


def test_what_nano_makes_at_its_start_is_made_without_a_question(view: tuple[Program, Path], home: Path) -> None:
    """What was looked for in it is no more to be read than the histories of other programs."""
    (home / ".local/share/nano").mkdir(parents=True)
    (home / ".local/share/nano/search_history").write_text("secret\n")
    done = run(view, home, "ls -A ~/.local/share/nano; cd ~/.local/share/nano; echo 'a 1 1' > filepos_history; ls")
    assert done.stdout == "filepos_history\n", done.stderr
    (home / ".local/share/nano/search_history").unlink()
    (home / ".local/share/nano").rmdir()
    done = run(view, home, "mkdir -p ~/.local/share/nano")
    assert done.returncode == 0, done.stderr
    assert [note for note in noted(view[0]) if isinstance(note, AskNote)] == []


def test_other_directories_at_home_are_asked_about(view: tuple[Program, Path], home: Path) -> None:
    program, _ = view
    settings = program.project / ".yolofs.toml"
    settings.write_text(settings.read_text() + '[rules]\n"~/tree/below" = "deny"\n')
    wait_until(lambda: f"{home}/tree/below" in program("rule", "list").out, "the tree's rule is in force")
    program("rule", "ask", home / ".cargo")
    program("rule", "read-only", home / "mine/below")
    scripts = (
        "mkdir ~/unknown",
        "mkdir ~/tree",  # what is below is no built-in rule
        "mkdir ~/mine",
        "mkdir ~/.cargo",  # the user says so
        "umask 0; mkdir ~/.config",  # others could put into it what they like
        "touch ~/.config",
    )
    for script in scripts:
        assert "Permission denied" in run(view, home, script).stderr, script
    assert run(view, home, "ln -s /tmp ~/.local").returncode != 0
    asked = [note.path for note in noted(program) if isinstance(note, AskNote)]
    assert asked == [f"{home}/{name}" for name in ("unknown", "tree", "mine", ".cargo", ".config", ".config")]
