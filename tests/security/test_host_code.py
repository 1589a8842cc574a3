"""What becomes code on the host stands apart, and is committed by name or with ``--trusted``
alone.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

UNNAMED = 16
TITLE = "what the host would run or trust:\n"


def git(*words: str | Path, cwd: Path) -> None:
    environment = os.environ | {"GIT_CONFIG_NOSYSTEM": "1"}
    options = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *options, *words], cwd=cwd, env=environment, check=True, capture_output=True)


@pytest.fixture
def yolofs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A repository in which an agent has done ordinary work, with git too, and what is none; the
    mount is gone.
    """
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    project = tmp_path / "project"
    (tmp_path / "home/dotfiles").mkdir(parents=True)
    (tmp_path / "home/dotfiles/bashrc").write_text("# mine\n")
    (tmp_path / "home/.bashrc").symlink_to("dotfiles/bashrc")
    project.mkdir()
    git("init", cwd=project)
    (project / "Makefile").write_text("all:\n")
    git("add", ".", cwd=project)
    git("commit", "-m", "x", cwd=project)
    program = Program(project)
    (project / ".yolofs.toml").write_text(
        'scratch = []\n[rules]\n"/" = "allow"\n"~" = "allow"\n"~/.bashrc" = "allow"\n'
    )
    program.start_session()
    program.trust()
    with program.mounted("--root", "/") as mountpoint:
        view = mountpoint / str(project)[1:]
        (view / "Makefile").write_text("all: evil\n")
        git("remote", "add", "up", "https://example.org/x.git", cwd=view)
        git("clone", view, view / "clone", cwd=view)
        (view / "clone/.git/hooks/post-checkout").write_text("evil\n")
        (view / ".git/x").mkdir()
        (view / ".git/x/pre-commit").write_text("evil\n")
        (view / ".git/hooks").rename(view / ".git/old")
        (view / ".git/x").rename(view / ".git/hooks")
        (view / ".envrc").write_text("evil\n")
        (view / "deploy.sh").write_text("x\n")
        (mountpoint / str(tmp_path)[1:] / "home/dotfiles/bashrc").write_text("evil\n")
    return program


def host_code(yolofs: Program) -> dict[str, list[str]]:
    above = f"{yolofs.project.parent}/"
    return {one["path"].removeprefix(above): one["marks"] for one in yolofs("status", "--json").json["host_code"]}


CODE = {
    "home/dotfiles/bashrc": ["shell"],
    "project/.envrc": ["directory"],
    "project/.git/hooks/pre-commit": ["git"],
    "project/clone/.git/hooks/post-checkout": ["git"],
}


def test_host_code_is_listed_apart_and_stays_until_it_is_named(yolofs: Program) -> None:
    project = yolofs.project
    assert host_code(yolofs) == CODE
    status = yolofs("status")
    assert status.out.partition(TITLE)[2].split("\n\n")[0].splitlines() == [
        f"M  {project.parent}/home/dotfiles/bashrc  [run by shells]",
        "A  .envrc  [run on entering the directory]",
        "A  .git/hooks/pre-commit  [run by git]",
        "A  clone/.git/hooks/post-checkout  [run by git]",
    ]
    assert "4 are what the host would run or trust; a commit takes these by name or with --trusted" in status.err

    with Terminal(project, ["commit"]) as terminal:  # before the question: what stays, and why
        terminal.wait_for("[y/N] ")
        shown = " ".join(terminal.text.split())
        assert f"{project}/.envrc: it has to be named (run on entering the directory)" in shown
        terminal.type("n\r")
        assert terminal.wait() == 1

    done = yolofs("commit", "--yes", "--outside", code=UNNAMED)
    assert "yolofs: 4 files stay staged, as they have to be named (or --trusted)" in done.err
    assert f"{project}/.envrc" in done.err.partition("hint: yolofs commit ")[2]
    assert (project / "Makefile").read_text() == "all: evil\n"
    assert "example.org" in (project / ".git/config").read_text()
    git("status", cwd=project / "clone")
    assert not (project / ".envrc").exists()
    assert not (project / ".git/hooks/pre-commit").exists()
    assert not (project / "clone/.git/hooks/post-checkout").exists()
    assert (project.parent / "home/dotfiles/bashrc").read_text() == "# mine\n"
    assert host_code(yolofs) == CODE

    yolofs("commit", "--yes", ".envrc")
    assert (project / ".envrc").read_text() == "evil\n"
    document = yolofs("commit", "--yes", "--json", code=UNNAMED).json
    assert (document["changes"], {held["has_to_be_named"] for held in document["held"]}) == ([], {True})
    document = yolofs("commit", "--yes", "--json", "--trusted", "--outside").json
    assert len(document["host_code"]) == len(CODE) - 1
    assert (project.parent / "home/dotfiles/bashrc").read_text() == "evil\n"
    assert yolofs("status").out.endswith("no changes\n")


def test_a_tree_may_name_more_files_but_take_none_away(yolofs: Program) -> None:
    """What `.yolofs.toml` says of this holds without being agreed to, as it can only add."""
    settings = yolofs.project / ".yolofs.toml"
    settings.write_text(settings.read_text().replace("[rules]", 'host_code = ["deploy.sh"]\n[rules]'))
    assert host_code(yolofs) == {**CODE, "project/deploy.sh": ["listed"]}
    settings.write_text(settings.read_text().replace('["deploy.sh"]', '["!**/.envrc", "-.envrc"]'))
    assert host_code(yolofs) == CODE
    own = Path(os.environ["HOME"]) / ".config/yolofs/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('host_code = ["Makefile"]\n')
    assert host_code(yolofs) == {**CODE, "project/Makefile": ["listed"]}
    own.write_text("broken")
    assert host_code(yolofs) == CODE
    yolofs("commit", "--yes", code=3)  # who commits has to know all that is to be named


def test_an_index_does_not_bring_a_hook_to_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git checks the names in an index as it puts them there, and not as it writes files by it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    project.mkdir()
    git("init", cwd=project)
    (project / "an-evil-hook-as-long-as").write_text("#!/bin/sh\n")
    git("add", ".", cwd=project)
    git("commit", "-m", "x", cwd=project)
    yolofs = Program(project)
    yolofs.start_session()
    with yolofs.mounted() as view:
        index = view / ".git/index"
        changed = index.read_bytes()[:-20].replace(b"an-evil-hook-as-long-as", b".git/hooks/post-checkou")
        index.write_bytes(changed + hashlib.sha1(changed).digest())
        (view / "an-evil-hook-as-long-as").unlink()
    done = yolofs("commit", "--yes", code=UNNAMED)
    assert f"{project}/.git/index: it has to be named (run by git)" in done.err
    git("checkout", "--", ".", cwd=project)
    assert not (project / ".git/hooks/post-checkou").exists()
