"""The summary of a working agent's changes is short, so that a person sees what matters."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from tests.support.program import Program
from tests.support.repositories import git
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount

LINES_OF_A_TERMINAL = 24


def wheel(directory: Path) -> Path:
    """Make a package that pip installs without a network."""
    path = directory / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(30):
            archive.writestr(f"demo/part{number}.py", "x = 1\n")
        archive.writestr("demo/__init__.py", "def main(): pass\n")
        archive.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        archive.writestr(
            "demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("demo-1.0.dist-info/entry_points.txt", "[console_scripts]\ndemo=demo:main\n")
        archive.writestr("demo-1.0.dist-info/RECORD", "")
    return path


def test_after_a_commit_of_git_two_installs_and_an_edit_the_edit_is_seen_on_one_screen(
    repository: Program, elsewhere: Path
) -> None:
    with tempfile.TemporaryDirectory(prefix="yolofs-user.", dir=elsewhere) as user:
        script = f"""set -e
            echo 'one = 2' > src/one.py
            {sys.executable} -m compileall -q src
            git add src/one.py; git commit -q -m second
            {sys.executable} -m venv --without-pip .venv
            pip="{sys.executable} -m pip --python .venv/bin/python install -q --no-index"
            $pip {wheel(elsewhere)}
            $pip --target {user}/lib/site-packages {wheel(elsewhere)}
            mkdir build; echo > build/a.o; echo > a.log
            echo 'two = 3' > src/two.py
            touch src/three.py
        """
        done = repository("run", "sh", "-c", script)
        lines = done.err[done.err.index("yolofs: run ") :].splitlines()
        assert len(lines) < LINES_OF_A_TERMINAL
        assert "  M  src/one.py" in lines
        assert "  M  src/two.py" in lines
        (outside,) = (line for line in lines if user in line)
        assert outside.startswith(f"  A  {user}/lib/  (and ")
        assert [line.partition("  (")[0] for line in lines if line.startswith("  -")] == [
            "  -  git: 1 commit on main, index",
            "  -  ignored by git: .venv/, a.log, build/",
            "  -  bytecode: src/__pycache__/",
            "  -  times alone: src/three.py",
        ]
        see = lines[-1].partition("see it: yolofs ")[2].partition("   ")[0]
        assert all(f"; yolofs {see} --list)" in line for line in lines if line.startswith("  -"))
        listed = repository(*see.split(), "--list").out
        assert "\nA  build/a.o\n" in listed
        assert "\nX  src/three.py  (time)\n" in listed
        check_that_status_and_commit_say_the_same(repository)


def test_a_repository_that_is_made_outside_of_the_project_is_one_line(repository: Program, elsewhere: Path) -> None:
    """As any other new directory; its hooks and what else the host would run have their own."""
    new = elsewhere / "new"
    script = f"git init -q {new}; cd {new}; echo a > a; git add a; git commit -q -m first; echo : > .git/hooks/pre-push"
    done = repository("run", "sh", "-c", script)
    hook, directory = lines = [line for line in done.err.splitlines() if str(elsewhere) in line]
    assert hook.startswith(f"  A  {new}/.git/hooks/pre-push  [")
    assert directory.startswith(f"  A  {new}/  (and ")
    told = [line for line in repository("status").out.splitlines() if line.startswith(f"A  {elsewhere}")]
    assert len(told) == len(lines), told


def test_an_edit_is_seen_however_much_was_asked_and_refused(repository: Program) -> None:
    """Each refusal is by a rule of its own, so none of them folds."""
    names = [f"closed{number}" for number in range(8)]
    settings = "".join(f'"{name}" = "read-only"\n"asked/{name}" = "ask"\n' for name in names)
    (repository.project / ".yolofs.toml").write_text(f"scratch = []\nask_unattended = 0.01\n[rules]\n{settings}")
    repository.trust()
    script = "mkdir asked; for i; do echo > $i; echo > asked/$i; done; echo 'one = 2' > src/one.py; git commit -qam two"
    said = repository("run", "sh", "-c", script, "sh", *names, code=None).err
    lines = said[said.index("yolofs: run ") :].splitlines()
    assert len(lines) < LINES_OF_A_TERMINAL, said
    assert "  M  src/one.py" in lines
    assert "  -  git: 1 commit on main, index" in said
    more = [line for line in lines if line.startswith("  … and ")]
    assert len(more) == 3, said
    assert more[0].endswith(" more: yolofs log --run 1")
    assert "to allow next time what was refused:" in lines
    assert "nobody watches, so 8 asks had no answer; to allow them next time:" in lines


def test_an_edit_is_seen_where_the_lines_are_wider_than_the_terminal(repository: Program) -> None:
    name = "a-directory-with-a-name-that-takes-more-than-one-row-of-a-small-terminal"
    script = f"""for i in 1 2 3 4 5 6 7 8 9; do mkdir {name}-$i; echo > {name}-$i/file; done
        echo 'one = 2' > src/one.py; git commit -qam two; echo no > .yolofs.toml
    """
    words = ["run", "sh", "-c", script]
    with Terminal(repository.project, words, size=(60, LINES_OF_A_TERMINAL), COLUMNS="60") as terminal:
        terminal.wait_for_screen("yolofs rule explain")
        terminal.process.wait()
        assert "M  src/one.py" in terminal.screen
        assert "\n  … and " in terminal.screen


def test_an_edit_is_seen_beside_a_rebase_that_has_stopped(repository: Program) -> None:
    """Nearly all files of that are marked, as git goes on by them: they have one line."""
    script = """set -e
        git checkout -q -b side; echo side > src/one.py; git commit -q -a -m side
        git checkout -q main; echo main > src/one.py; git commit -q -a -m main
        ! git rebase -q side
    """
    lines = repository("run", "sh", "-c", script).err.splitlines()
    assert "  M  src/one.py" in lines
    (rebase,) = (line for line in lines if ".git/rebase-merge/" in line)
    assert re.fullmatch(r"  A  \.git/rebase-merge/  \(and (\d+) in it; .*\)  \[\1 of them run by git\]", rebase)
    assert len(lines) < LINES_OF_A_TERMINAL


@pytest.fixture
def tools(repository: Program, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where a run has installed a tool at the user's home, as `uv tool install` does, and
    edited a file in the project.
    """
    monkeypatch.setenv("HOME", str(elsewhere))
    tools, commands = elsewhere / ".local/share/uv/tools", elsewhere / ".local/bin"
    commands.mkdir(parents=True)
    (elsewhere / ".local/share").mkdir()
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    repository("rule", "allow", str(tools.parent), str(commands))
    script = f"""set -e
        mkdir -p {tools}/demo/bin {tools}/demo/lib/demo
        for i in $(seq 30); do echo > {tools}/demo/lib/demo/part$i.py; done
        echo > {tools}/demo/pyvenv.cfg
        echo '#!/bin/sh' > {tools}/demo/bin/demo; chmod 755 {tools}/demo/bin/demo
        echo '#!/bin/sh' > {tools}/demo/bin/helper; chmod 4755 {tools}/demo/bin/helper
        ln -s {tools}/demo/bin/demo {commands}/demo
        echo 'one = 2' > src/one.py
    """
    repository("run", "--no-review", "sh", "-c", script)
    return tools


def test_an_edit_is_seen_beside_a_tool_that_was_installed_at_home(repository: Program, tools: Path) -> None:
    with Terminal(repository.project, ["status"], size=(100, LINES_OF_A_TERMINAL)) as terminal:
        assert terminal.wait() == 0
        assert "\nM  src/one.py\n" in terminal.screen
    lines = repository("status").out.splitlines()
    marked = lines[lines.index("what the host would run or trust:") + 1 :][:3]
    assert marked == [
        f"A  {tools.parent.parent.parent}/bin/demo  [command on PATH]",
        f"A  {tools}/demo/  (and 35 in it; --unfold)  [32 of them run by tools]",
        f"A  {tools}/demo/bin/helper  [setuid, run by tools]",
    ]
    assert f"A  {tools.parent}/  (and 1 in it)" in lines
    unfolded = repository("status", "--unfold").out
    assert f"\nA  {tools}/demo/lib/demo/part7.py  [run by tools]\n" in unfolded


def test_an_edit_is_seen_beside_many_files_of_which_each_has_a_mark_of_its_own(repository: Program) -> None:
    """These are listed before it then, and each of them still has a line."""
    names = [".dir-locals.el", ".envrc", ".exrc", ".gdbinit", ".lldbinit", ".mise.toml", ".nvimrc", ".vimrc"]
    names += [".claude/settings.json", ".git/hooks/pre-push", ".git/hooks/pre-commit", ".pre-commit-config.yaml"]
    names += [".idea/workspace.xml", ".vscode/tasks.json", ".zed/tasks.json", "rust-toolchain.toml"]
    script = "echo 'one = 2' > src/one.py; mkdir .claude .idea .vscode .zed; for i; do echo x > $i; done"
    said = repository("run", "sh", "-c", script, "sh", *names).err
    assert "\n  M  src/one.py\n" in said[-LINES_OF_A_TERMINAL * 40 :]
    for words in (["status"], ["commit", "--trusted"]):
        with Terminal(repository.project, words, size=(100, LINES_OF_A_TERMINAL), NO_COLOR="1") as terminal:
            if words == ["commit", "--trusted"]:
                terminal.wait_for("[y/N")
                terminal.type("n\r")
            terminal.wait()
            assert "\nM  src/one.py\n" in terminal.screen
            assert [name for name in names if f"A  {name}  [" not in terminal.text] == []


def test_what_one_line_tells_of_many_marked_files_has_to_be_named_all_the_same(
    repository: Program, tools: Path
) -> None:
    refused = repository("commit", "--yes", "--outside", code=16)
    assert "34 files stay staged" in refused.err
    assert not list(tools.rglob("*.py"))
    named = repository("commit", "--yes", str(tools / "demo"), code=16)
    assert "33 files stay staged" in named.err
    assert not list(tools.rglob("*.py"))
    repository("commit", "--yes", "--outside", "--trusted")
    assert len(list(tools.rglob("*.py"))) == 30


def check_that_status_and_commit_say_the_same(repository: Program) -> None:
    status = repository("status").out
    assert "\nM  src/one.py\n" in status
    assert "\n-  git: 1 commit on main, index  (" in status
    assert "; --unfold)\n" in status
    assert len(status.splitlines()) < LINES_OF_A_TERMINAL
    assert "\nA  build/a.o\n" in repository("status", "--unfold").out
    kept = repository("status", "--json").json["changes"]
    assert {change["path"] for change in kept} >= {str(repository.project / "build/a.o")}
    unfolded = repository("commit", "--yes", "--unfold", "build").out
    assert unfolded.startswith("A  build/\nA  build/a.o\n")
    committed = repository("commit", "--yes").out
    assert "-  ignored by git: .venv/, a.log  (" in committed
    assert (repository.project / "src/one.py").read_text() == "one = 2\n"


def test_the_lists_of_abort_and_undo_are_as_short_as_that_of_status(repository: Program) -> None:
    script = """set -e
        echo 'one = 2' > src/one.py; git add src/one.py; git commit -q -m second; git gc -q
        mkdir build; echo > build/a.o; touch src/three.py
        rm .git/hooks/pre-commit
    """
    hook = repository.project / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    repository("run", "--no-review", "sh", "-c", script)
    folded = ["-  git: 1 commit on main, index", "-  ignored by git: build/", "-  times alone: src/three.py"]
    with Terminal(repository.project, ["abort"]) as terminal:
        terminal.wait_for("[y/N] ")
        check_is_short(terminal.seen, folded)
        terminal.type("n\n")
        assert terminal.wait() == 1
    with Terminal(repository.project, ["abort", "--unfold"]) as terminal:
        terminal.wait_for("[y/N] ")
        assert "build/a.o" in terminal.seen
        terminal.type("n\n")
        assert terminal.wait() == 1
    repository("commit", "--yes", "--trusted")
    with Terminal(repository.project, ["undo"]) as terminal:
        terminal.wait_for("[y/N] ")
        check_is_short(terminal.seen, ["-  git: main moved, index", *folded[1:]])
        assert "what the host would run or trust:\r\n" in terminal.seen  # the hook comes back
        terminal.type("n\n")
        assert terminal.wait() == 1
    assert "build/a.o" in repository("undo", "--dry-run", "--unfold").out


def check_is_short(seen: str, folded: list[str]) -> None:
    lines = [plain(line) for line in seen.splitlines()]
    assert len(lines) < LINES_OF_A_TERMINAL
    assert "M  src/one.py" in lines
    groups = [line for line in lines if line.startswith("-")]
    assert all(line.startswith(begin) for line, begin in zip(groups, folded, strict=True))


def plain(line: str) -> str:
    """Return a line without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", line).strip()


def test_ignore_rules_and_an_index_that_are_staged_hide_nothing(repository: Program) -> None:
    script = """set -e
        echo '*' > .gitignore; echo '*' > .git/info/exclude
        git config core.excludesFile /etc/passwd
        git rm -q --cached src/two.py; rm src/two.py
        echo x > src/new.py
        echo '*' > src/.gitignore
    """
    done = repository("run", "sh", "-c", script)
    lines = done.err.splitlines()
    for line in ("  D  src/two.py", "  A  src/new.py", "  A  src/.gitignore", "  M  .gitignore"):
        assert line in lines
    assert [line for line in lines if ".git/config" in line]  # it makes git go by another file
    (told,) = (line for line in lines if line.startswith("  -  git: "))
    assert told.startswith("  -  git: index, info/exclude  (")


def test_a_deletion_of_what_git_tracks_is_seen_though_it_is_ignored_or_bytecode(repository: Program) -> None:
    project = repository.project
    (project / "build").mkdir()
    (project / "build/kept.o").write_text("kept")
    (project / "build/lost.o").write_text("lost")
    (project / "old.pyc").write_text("compiled")
    git(project, "add", "-f", "build/kept.o", "old.pyc")
    repository("run", "--no-review", "sh", "-c", "rm build/kept.o build/lost.o old.pyc")
    assert repository("status").out.splitlines()[4:] == [
        "D  build/kept.o",
        "D  old.pyc",
        "-  ignored by git: build/lost.o  (1 change, 1 of them deleted; --unfold)",
        "",
        "3 changes: 3 deleted",
    ]


def test_no_program_that_a_repository_names_is_started(repository: Program, tmp_path: Path) -> None:
    project, trap = repository.project, tmp_path / "trap"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {trap}\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "core.hooksPath", "core.pager", "core.sshCommand", "filter.x.clean"):
        git(project, "config", name, str(program))
    (project / ".git/info/attributes").write_text("* filter=x\n")
    trap.unlink(missing_ok=True)
    repository("run", "sh", "-c", "echo > a.log")
    assert "-  ignored by git: a.log  (1 change; --unfold)\n" in repository("status").out
    assert not trap.exists()


def test_names_that_git_takes_for_patterns_are_names(repository: Program) -> None:
    repository("run", "--no-review", "sh", "-c", "echo > ':!x.log'; echo > ':(glob)b'; echo > '*.c'; echo > '[a].log'")
    out = repository("status").out
    assert "\nA  *.c\nA  :(glob)b\n-  ignored by git: :!x.log, [a].log  (2 changes; --unfold)\n" in out


def test_the_summary_tells_what_happened_to_refs(repository: Program) -> None:
    project = repository.project
    for name in ("gone", "moved"):
        git(project, "branch", name)
    git(project, "pack-refs", "--all")
    script = """set -e
        git branch -q -D gone; git tag v1; git checkout -q -b new
        echo > f; git add f; git commit -q -m 2; echo 2 > f; git commit -q -a -m 3
        git checkout -q main; echo > g; git add g; git commit -q -m 4; git commit -q --amend -m 5
        git branch -f moved HEAD~1; git checkout -q --detach
        echo evil > .git/stashed-away
    """
    repository("run", "--no-review", "sh", "-c", script)
    (told,) = (line for line in repository("status").out.splitlines() if line.startswith("-  git"))
    assert told.startswith(
        "-  git: branch gone deleted, 1 commit on main, new branch new with 2 commits, "
        "tag v1 added, HEAD on no branch, index, stashed-away  ("
    )


def told_of_git(repository: Program) -> list[str]:
    lines = (line for line in repository("status").out.splitlines() if line.startswith("-  git"))
    return [line.partition("  (")[0] for line in lines]


def test_what_git_is_in_the_middle_of_is_told_in_a_word(repository: Program) -> None:
    git(repository.project, "branch", "other")
    script = """
        echo 1 > f; git add f; git commit -q -m 1; git checkout -q other
        echo 2 > f; git add f; git commit -q -m 2; git checkout -q main
    """
    repository("run", "--no-review", "sh", "-c", script)
    assert told_of_git(repository) == ["-  git: 1 commit on main, 1 commit on other, index"]
    for begin, end, told in (
        ("git merge -q other", "git merge --abort", "merge"),
        ("git cherry-pick other", "git cherry-pick --abort", "cherry-pick"),
        ("git bisect start", "git bisect reset", "bisect"),
    ):
        repository("run", "--no-review", "sh", "-c", f"{begin} > /dev/null 2>&1 || true")
        assert told_of_git(repository)[0].endswith(f", index, {told} begun")
        repository("run", "--no-review", "sh", "-c", f"{end} > /dev/null 2>&1")
        assert told_of_git(repository) == ["-  git: 1 commit on main, 1 commit on other, index"]


def test_stashes_are_told_by_what_became_of_them(repository: Program) -> None:
    repository("run", "--no-review", "sh", "-c", "echo > f; git add f; git stash -q; git checkout -q --detach")
    assert told_of_git(repository) == ["-  git: stash added, HEAD on no branch"]
    repository("run", "--no-review", "sh", "-c", "echo > f; git add f; git stash -q")
    out = repository("run", "git", "stash", "clear").err
    assert "-  git: stash deleted, refs/stash" not in out
    assert "-  git: stash deleted" in out


def test_worktrees_and_submodules_are_told_by_their_names(repository: Program, tmp_path: Path) -> None:
    project = repository.project
    git(project, "worktree", "add", "-q", "old")
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(project), "lib/sub")
    git(project, "commit", "-q", "-m", "with a submodule")
    script = """set -e
        git worktree add -q new
        (cd old; echo > f; git add f; git commit -q -m f)
        cd lib/sub; git config user.name a; git config user.email a@b; git commit -q --allow-empty -m g
    """
    repository("run", "--no-review", "sh", "-c", script)
    assert told_of_git(repository) == [
        "-  git: new branch new, 1 commit on old, new worktree new, index of worktree old",
        "-  git, submodule lib/sub: 1 commit on main, config",
    ]
    repository("run", "--no-review", "sh", "-c", "git worktree remove --force old; cd new; git checkout -q --detach")
    assert "worktree old removed" in told_of_git(repository)[0]
    repository("run", "--no-review", "sh", "-c", "echo elsewhere > .git/worktrees/new/commondir")
    assert "worktrees/new/commondir" in repository("status").out


def test_a_bare_repository_is_one_line_too(repository: Program) -> None:
    """Also one beside its work trees, as the project's own may be."""
    project = repository.project
    git(project, "clone", "-q", "--bare", ".", "pub.git")
    git(project, "clone", "-q", "--bare", ".", "apart/.bare")
    (project / "apart/.git").write_text("gitdir: ./.bare\n")
    git(project / "apart", "worktree", "add", "-q", "-b", "side", "side")
    script = """set -e
        echo 'one = 2' > src/one.py; git commit -q -a -m second; git push -q ./pub.git main
        cd apart/side; echo 2 > src/two.py; git commit -q -a -m other
    """
    lines = repository("run", "sh", "-c", script).err.splitlines()
    assert [line.partition("  (")[0] for line in lines if line.startswith("  ")] == [
        "  M  apart/side/src/two.py",
        "  M  src/one.py",
        "  -  git: 1 commit on main, index",
        "  -  git in apart/.bare: 1 commit on side, index of worktree side",
        "  -  git in pub.git: 1 commit on main",
    ]


def test_a_rewritten_branch_and_removed_objects_are_told(repository: Program) -> None:
    script = "git commit -q --amend -m other; rm -f .git/objects/$(git rev-parse HEAD@{1} | sed 's,^..,&/,')"
    repository("run", "--no-review", "sh", "-c", script)
    (told,) = (line for line in repository("status").out.splitlines() if line.startswith("-  git"))
    assert told.startswith("-  git: main rewritten, with 1 new commit, 1 object file removed  (")


def test_an_agent_is_told_of_refs_only_what_it_may_read(repository: Program) -> None:
    repository("run", "--no-review", "git", "tag", "planned-secret")
    assert "-  git: tag planned-secret added  (" in repository("status").out
    inside = repository("run", sys.executable, "-P", "-m", "yolofs.cli.main", "status").out
    assert "-  git: tag planned-secret added  (" in inside
    repository("rule", "deny", ".git/packed-refs")
    inside = repository("run", sys.executable, "-P", "-m", "yolofs.cli.main", "status").out
    assert "-  git: .git/refs/tags/planned-secret  (" in inside
