"""``yolofs completion``: what a shell offers while one types."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asking import reader
from tests.support.fault_points import points
from tests.support.program import Program, wait_until
from tests.support.terminal import Terminal


@pytest.fixture
def staged(yolofs: Program) -> Program:
    """A session with a named generation, and a path in a directory that is staged."""
    with yolofs.mounted() as view:
        (view / "dir/new file").parent.mkdir(exist_ok=True)
        (view / "dir/new file").write_text("new\n")
        yolofs("snapshot", "before it")
        (view / "a.txt").unlink()
    return yolofs


def offered(yolofs: Program, *words: str, cwd: Path | None = None, shell: str = "zsh") -> list[str]:
    """Return the words that are offered at the end of a command line, as zsh and fish ask for
    them.
    """
    done = yolofs(
        cwd=cwd,
        _YOLOFS_COMPLETE=f"{shell}_complete",
        COMP_WORDS=" ".join(words),
        COMP_CWORD=words[-1],
    )
    assert not done.err
    if shell == "fish":
        return [line.partition(",")[2].partition("\t")[0] for line in done.out.splitlines() if line]
    return [word.replace("\\:", ":") for word in done.out.split("\n")[1::3] if word]


@pytest.mark.mount
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_generations_and_names_of_snapshots_are_offered(staged: Program, shell: str) -> None:
    for command in ("travel", "diff", "log"):
        assert {"base", "1", "before it"} <= set(offered(staged, "yolofs", command, "", shell=shell))
    assert offered(staged, "yolofs", "travel", "be", shell=shell) == ["before it"]
    assert "1:" in offered(staged, "yolofs", "cat", "", shell=shell)
    assert "before it" in offered(staged, "yolofs", "restore", "--from", "", shell=shell)


def test_a_name_is_offered_once_with_the_generation_that_it_means(yolofs: Program) -> None:
    for name in ("tea", "lunch", "tea"):
        yolofs("snapshot", name)
    for name in ("lunch", "base"):
        yolofs("travel", name)
    found = offered(yolofs, "yolofs", "travel", "")
    assert [word for word in found if not word.isdigit()] == ["lunch", "tea", "base", "-"]


@pytest.mark.mount
def test_hunks_are_offered_by_their_ids_with_what_they_are(staged: Program) -> None:
    ids = {hunk["path"].rpartition("/")[2]: hunk["id"] for hunk in staged("hunks", "--json").json["hunks"]}
    name = ids["new file"]
    assert set(offered(staged, "yolofs", "commit", "--hunk", "")) == set(ids.values())
    assert offered(staged, "yolofs", "restore", "--hunk", name[:5]) == [name]
    assert offered(staged, "yolofs", "hunks", "--edit", name[:5], shell="fish") == [name]
    (gone,) = staged("hunks", "before it..", "--json").json["hunks"]
    assert offered(staged, "yolofs", "restore", "--from", "1", "--hunk", "") == [gone["id"]]


@pytest.mark.mount
def test_staged_paths_are_offered_in_the_form_that_was_begun(staged: Program) -> None:
    assert set(offered(staged, "yolofs", "commit", "")) == {"dir/new file", "a.txt"}
    assert offered(staged, "yolofs", "commit", "dir/") == ["dir/new file"]
    assert offered(staged, "yolofs", "diff", "--", "a") == ["a.txt"]
    assert sorted(offered(staged, "yolofs", "restore", "", cwd=staged.project / "dir")) == ["../a.txt", "new file"]
    assert offered(staged, "yolofs", "commit", "./") == ["./a.txt", "./dir/new file"]
    assert offered(staged, "yolofs", "commit", "dir/../a") == ["dir/../a.txt"]
    assert offered(staged, "yolofs", "restore", "../dir/n", cwd=staged.project / "dir") == ["../dir/new file"]
    assert offered(staged, "yolofs", "commit", f"{staged.project}/a") == [f"{staged.project}/a.txt"]
    assert offered(staged, "yolofs", "-C", str(staged.project), "blame", "a", cwd=Path("/")) != []


@pytest.mark.mount
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_paths_of_a_generation_are_offered_after_its_colon(staged: Program, shell: str) -> None:
    """Also of base, where the view has nothing any more."""
    assert offered(staged, "yolofs", "cat", "base:a", shell=shell) == ["base:a.txt"]
    assert offered(staged, "yolofs", "cat", ":a", shell=shell) == []
    assert offered(staged, "yolofs", "ls", ":di", shell=shell) == [":dir/"]
    assert offered(staged, "yolofs", "diff", "1:dir/n", shell=shell) == ["1:dir/new file"]
    assert offered(staged, "yolofs", "cat", f":{staged.project}/dir/n", shell=shell) == [
        f":{staged.project}/dir/new file"
    ]
    assert offered(staged, "yolofs", "cat", "base:dir/n", shell=shell) == []
    assert offered(staged, "yolofs", "cat", "nothing:a", shell=shell) == []


@pytest.mark.mount
def test_numbers_of_runs_and_commits_are_offered(yolofs: Program) -> None:
    with yolofs.mounted("--root", "/"):
        yolofs("run", "sh", "-c", "echo > one; echo > two")
        for words in (["log", "--run", ""], ["diff", "--run", ""], ["restore", "--from", "run", ""]):
            assert offered(yolofs, "yolofs", *words) == ["1"]
        assert offered(yolofs, "yolofs", "restore", "--from", "r") == ["run"]
        assert "1" in offered(yolofs, "yolofs", "commit", "--up-to", "")
        yolofs("commit", "--yes", "one")
        yolofs("commit", "--yes")
    for words in (["undo", ""], ["restore", "--from", "commit", ""]):
        assert offered(yolofs, "yolofs", *words) == ["2", "1"]
    assert offered(yolofs, "yolofs", "undo", "1", "") == ["one"]


def test_ids_of_sessions_and_names_of_agents_are_offered(yolofs: Program) -> None:
    name = yolofs.session.name
    for words in (["unmount", name[:4]], ["sessions", "--forget", name[:4]]):
        assert offered(yolofs, "yolofs", *words) == [name]
        assert offered(yolofs, "yolofs", *words, cwd=Path("/")) == [name]
    assert offered(yolofs, "yolofs", "init", "--agents", "cl") == ["claude"]
    assert offered(yolofs, "yolofs", "init", "--agents", "codex,co") == ["codex,copilot"]


@pytest.mark.mount
def test_numbers_of_asks_are_offered(yolofs: Program) -> None:
    assert offered(yolofs, "yolofs", "answer", "") == []
    yolofs("rule", "ask", "a.txt")
    with yolofs.mounted() as view, reader(view / "a.txt") as asking:
        wait_until(lambda: yolofs("asks", "--json").json["asks"], "an ask")
        assert offered(yolofs, "yolofs", "answer", "") == ["1"]
        assert offered(yolofs, "yolofs", "answer", "1", "") == ["allow", "deny"]
        yolofs("answer", "1", "allow")
        assert "one" in asking.end()[0]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_after_yolofs_run_files_are_offered(yolofs: Program, shell: str) -> None:
    environment = os.environ | {"_YOLOFS_COMPLETE": f"{shell}_complete", "COMP_WORDS": "yolofs run -- cat "}
    environment["COMP_CWORD"] = "" if shell == "fish" else "4"
    done = subprocess.run(yolofs.command, cwd=yolofs.project, env=environment, stdout=subprocess.PIPE, check=True)
    assert done.stdout.startswith(b"file")


@pytest.mark.mount
def test_the_steps_of_a_commit_of_hunks_are_not_offered(yolofs: Program) -> None:
    """`timeline` and `log` do not show them either."""
    with yolofs.mounted() as view:
        (view / "one").write_text("new\n")
        (view / "two").write_text("new\n")
        (hunk,) = yolofs("hunks", "--json", "one").json["hunks"]
        yolofs("snapshot", "half")
        yolofs("commit", "--yes", "--hunk", hunk["id"])
        assert offered(yolofs, "yolofs", "restore", "--from", "h") == ["half"]


def test_commands_and_options_are_offered(yolofs: Program) -> None:
    assert {"restore", "status"} <= set(offered(yolofs, "yolofs", ""))
    assert "--up-to" in offered(yolofs, "yolofs", "commit", "--u")


def test_without_a_session_nothing_is_offered_and_nothing_is_printed(yolofs: Program, tmp_path: Path) -> None:
    assert offered(yolofs, "yolofs", "travel", "", cwd=tmp_path) == []


@pytest.mark.mount
def test_bash_completes_generations(staged: Program) -> None:
    script = staged("completion", "bash").out
    program = staged.project / "yolofs"
    program.write_text(f'#!/bin/sh\nexec {" ".join(staged.command)} "$@"\n')
    program.chmod(0o755)
    words = f"COMP_WORDS=({program} travel be)\nCOMP_CWORD=2\n_yolofs_completion {program}"
    words = f"COMP_LINE='{program} travel be'\nCOMP_POINT=${{#COMP_LINE}}\n{words}"
    asks = f'{script}\n{words}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", asks], cwd=staged.project, capture_output=True, text=True, check=True
    )
    assert done.stdout == "before\\ it\n"


@pytest.mark.mount
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_value_of_an_option_with_an_equals_sign_is_offered_with_the_option(staged: Program, shell: str) -> None:
    assert offered(staged, "yolofs", "restore", "--from=be", shell=shell) == ["--from=before it"]
    assert "--from=base" in offered(staged, "yolofs", "restore", "--from=", shell=shell)


@pytest.mark.mount
@pytest.mark.parametrize(("piece", "found"), [("ba", "base"), ("=", "base")])
def test_bash_is_offered_the_value_after_an_equals_sign_alone(staged: Program, piece: str, found: str) -> None:
    line = f"yolofs restore --from={piece.strip('=')}"
    done = staged(_YOLOFS_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=piece)
    assert f"plain,{found}" in done.out.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(yolofs: Program, shell: str) -> None:
    script = yolofs("completion", shell).out
    assert f"_YOLOFS_COMPLETE={shell}_complete" in script
    assert "_yolofs_completion" in script


def completed_by_bash(yolofs: Program, *words: str, last: str = "") -> list[str]:
    """Return what bash puts into the command line: just so, as no shell quotes it."""
    script = yolofs("completion", "bash").out
    program = yolofs.project / "yolofs"
    program.write_text(f'#!/bin/sh\nexec {" ".join(yolofs.command)} "$@"\n')
    program.chmod(0o755)
    line = (
        f"COMP_WORDS=({program} {' '.join(words)} '{last}')\nCOMP_CWORD={len(words) + 1}\n_yolofs_completion {program}"
    )
    line = f"COMP_LINE='{program} {' '.join(words)} {last}'\nCOMP_POINT=${{#COMP_LINE}}\n{line}"
    asks = f'{script}\n{line}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", asks], cwd=yolofs.project, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.mount
def test_bash_gets_names_quoted_so_that_nothing_of_them_is_run_or_expanded(yolofs: Program) -> None:
    names = (
        "$(touch ran)",
        "`touch ran`",
        "a;touch ran",
        "a|b",
        "a&b",
        ">b",
        "*",
        "{a,b}",
        "~root",
        "!1",
        "#x",
        "a'b,",
    )
    with yolofs.mounted() as view:
        for name in names:
            (view / name).write_text("new\n")
            yolofs("snapshot", "--", name)
    words = {name for name in completed_by_bash(yolofs, "travel") if not name.isdigit()}
    for found in (completed_by_bash(yolofs, "commit"), words - {"base", "-"}):
        assert len(found) == len(names)
        line = f"printf '%s\\0' {' '.join(found)}"
        done = subprocess.run(["bash", "--norc", "-c", line], cwd=yolofs.project, capture_output=True, check=True)
        assert sorted(done.stdout.decode().split("\0")[:-1]) == sorted(names)
    assert not (yolofs.project / "ran").exists()


@pytest.mark.mount
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_staged_path_is_not_offered_as_an_option(yolofs: Program, shell: str) -> None:
    with yolofs.mounted() as view:
        (view / "--trusted").write_text("new\n")
        yolofs("snapshot", "--", "--force")
    assert "--trusted" not in offered(yolofs, "yolofs", "commit", "", shell=shell)
    assert offered(yolofs, "yolofs", "diff", "--", "", shell=shell) == ["--trusted"]
    assert "--force" not in offered(yolofs, "yolofs", "travel", "", shell=shell)
    for command in ("commit", "restore", "blame", "review", "log"):
        assert offered(yolofs, "yolofs", command, "--", "--t", shell=shell) == ["--trusted"]
    assert offered(yolofs, "yolofs", "travel", "--", "--f", shell=shell) == ["--force"]


@pytest.mark.mount
def test_bash_gets_generations_where_no_staged_path_begins_so(staged: Program) -> None:
    """Files, which bash would offer instead of them, are offered where there is nothing else."""
    for command in points(("diff", "log", "review", "hunks"), "commands with a range", some=2):
        assert completed_by_bash(staged, command, last="be") == ["before\\ it"]
        assert completed_by_bash(staged, command, last="xx") == [""]


@pytest.mark.mount
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_end_of_a_range_is_offered(staged: Program, shell: str) -> None:
    for command in ("diff", "log", "review", "hunks"):
        assert offered(staged, "yolofs", command, "base..be", shell=shell) == ["base..before it"]
        assert "..1" in offered(staged, "yolofs", command, "..", shell=shell)


HOSTILE = """$(touch ran) `touch ran`;touch ran|&><*?[x]{y,z}~!1#'",\\:=%n -n"""
SHELLS = {
    "bash": ".bashrc",
    "zsh": ".zshrc",
    "fish": ".config/fish/config.fish",
}


@contextlib.contextmanager
def at_a_prompt(yolofs: Program, shell: str, home: Path, programs: Path) -> Iterator[Terminal]:
    """Start a shell in the project, with nothing set up but what the help says."""
    start = home / SHELLS[shell]
    for directory in (start.parent, programs):
        directory.mkdir(parents=True, exist_ok=True)
    (programs / "yolofs").write_text(f'#!/bin/sh\nexec {" ".join(yolofs.command)} "$@"\n')
    (programs / "yolofs").chmod(0o755)
    evaluate = "yolofs completion fish | source" if shell == "fish" else f'eval "$(yolofs completion {shell})"'
    prompt = "set fish_greeting; function fish_prompt; echo 'ready> '; end" if shell == "fish" else "PS1='ready> '"
    start.write_text(f"{evaluate}\n{prompt}\n")
    command = ["setsid", "--ctty", "--wait", found(shell), "-i"]
    path = f"{programs}:{os.environ['PATH']}"
    with Terminal(
        yolofs.project,
        [],
        command=command,
        size=(200, 24),
        PATH=path,
        HOME=str(home),
        ZDOTDIR=str(home),
        XDG_CONFIG_HOME=str(home / ".config"),
    ) as terminal:
        terminal.wait_for("ready> ")
        yield terminal


@pytest.mark.mount
@pytest.mark.parametrize("shell", points(list(SHELLS), "shells", some=1))
def test_a_shell_completes_whatever_a_name_holds_and_runs_nothing_of_it(
    yolofs: Program, shell: str, tmp_path: Path
) -> None:
    """In a terminal."""
    with yolofs.mounted() as view:
        (view / "d").mkdir()
        (view / f"d/{HOSTILE}").touch()
        (view / "d/\x1b]0;title\x07").touch()  # is not offered at all
        yolofs("snapshot", "before it")
        yolofs("snapshot", "--", f"s{HOSTILE}")
    home = tmp_path / "home"
    home.mkdir()
    (home / "way off").touch()
    with at_a_prompt(yolofs, shell, home, tmp_path / "bin") as terminal:
        for begin, end, rest in (
            ("travel be", "before\\ it", "travel|before it"),
            ("commit d/", "-n", f"commit|d/{HOSTILE}"),
            ("cat base:dir/b", "base:dir/b.txt", "cat|base:dir/b.txt"),
            ("travel s", "-n", f"travel|s{HOSTILE}"),
            ("cat bef", "before\\ it:", "cat|before it:"),  # what ends so goes on without a space
            ("cat bef\tdi\tb", "before\\ it:dir/b.txt", "cat|before it:dir/b.txt"),
            ("blame ~/wa", "~/way\\ off", f"blame|{home}/way off"),
        ):
            terminal.type(f"yolofs {begin}\t")
            terminal.wait_for_screen(end)
            terminal.type("\x01printf '<%s|%s|%s>\\n' \r")  # the shell that has quoted it reads it again
            terminal.wait_for_screen(f"<yolofs|{rest}>")
            terminal.type_until_gone("\x0c", f"<yolofs|{rest}>")
        assert "title" not in terminal.seen
    assert not (yolofs.project / "ran").exists()


@pytest.mark.mount
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.some(1)
def test_a_path_that_begins_with_a_tilde_is_completed_by_what_is_staged(
    yolofs: Program, shell: str, tmp_path: Path
) -> None:
    """The shell itself completes files there; a name that begins with a tilde stays one."""
    project = yolofs.project
    with yolofs.mounted() as view:
        (view / "new file").touch()
        (view / "~").mkdir()
        (view / "~/odd").touch()
    (project / "not staged").touch()
    home = project.parent
    with at_a_prompt(yolofs, shell, home, tmp_path / "bin") as terminal:
        for begin, end, rest in (
            (f"commit ~/{project.name}/n", f"~/{project.name}/new\\ file", f"commit|{project}/new file"),
            (f"-C ~/{project.name} commit n", "commit new\\ file", f"-C|{project}|commit|new file"),
            ("commit '~/o", "~/odd", "commit|~/odd"),
        ):
            terminal.type(f"yolofs {begin}\t")
            terminal.wait_for_screen(end)
            terminal.type("\x01printf '<%s|%s|%s|%s|%s>\\n' \r")
            terminal.wait_for_screen(f"<yolofs|{rest}")
            terminal.type_until_gone("\x0c", f"<yolofs|{rest}")


@pytest.mark.mount
@pytest.mark.parametrize(
    ("begin", "name"),
    [
        ("'d/s", HOSTILE),
        ("'d/t", "two words"),
        ("'d/i", "it's"),
        ('"d/i', "it's"),
        ('"d/t', "two words"),
        ('"d/q', 'q "a" $(touch ran) `touch ran` \\ b'),
        ('"d/s', None),
    ],
)
@pytest.mark.some(3)
def test_bash_completes_within_quotes_that_were_begun(
    yolofs: Program, begin: str, name: str | None, tmp_path: Path
) -> None:
    """What cannot stand between double quotes, an exclamation mark, is not offered there."""
    with yolofs.mounted() as view:
        (view / "d").mkdir()
        for each in (f"s{HOSTILE}", "two words", "it's", 'q "a" $(touch ran) `touch ran` \\ b'):
            (view / f"d/{each}").touch()
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "yolofs").write_text(f'#!/bin/sh\nexec {" ".join(yolofs.command)} "$@"\n')
    (programs / "yolofs").chmod(0o755)
    start = tmp_path / "bashrc"
    start.write_text("eval \"$(yolofs completion bash)\"\nPS1='ready> '\n")
    command = ["setsid", "--ctty", "--wait", found("bash"), "--rcfile", str(start), "-i"]
    path = f"{programs}:{os.environ['PATH']}"
    with Terminal(yolofs.project, [], command=command, size=(200, 24), PATH=path) as terminal:
        terminal.wait_for("ready> ")
        terminal.type(f"yolofs commit {begin}\t")
        whole = f"d/{'s' if name == HOSTILE else ''}{name}" if name is not None else begin[1:]
        if name is None:
            terminal.type(begin[0])
        else:
            terminal.wait_for_line(f"ready> yolofs commit .+{begin[0]}$")
        terminal.type("\x01printf '<%s|%s|%s>\\n' \r")
        terminal.wait_for_screen(f"<yolofs|commit|{whole}>")
    assert not (yolofs.project / "ran").exists()


@pytest.mark.mount
def test_names_that_a_commit_has_ended_are_offered_where_they_mean_something(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "new").write_text("new\n")
        yolofs("snapshot", "before lunch")
        yolofs("commit", "--yes")
        (view / "newer").write_text("newer\n")
        yolofs("snapshot", "before tea")
    assert offered(yolofs, "yolofs", "restore", "--from", "be") == ["before tea", "before lunch"]
    assert offered(yolofs, "yolofs", "cat", "be") == ["before tea:", "before lunch:"]
    assert offered(yolofs, "yolofs", "ls", "before\\ lunch:n") == ["before lunch:new"]
    assert offered(yolofs, "yolofs", "travel", "be") == ["before tea"]


def found(program: str) -> str:
    path = shutil.which(program)
    assert path is not None, f"{program} is missing: scripts/setup.sh installs it"
    return path
