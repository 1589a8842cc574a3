"""Whoever makes, removes or renames a name waits for the answer without holding others up: the
kernel locks directories.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asking import CREATE, asked_project, reader, wait_for_asks
from tests.support.fault_points import points
from tests.support.program import DEADLINE_S, Program, connected, wait_until
from yolofs.daemon.rpc.ask_messages import AnswerParams

pytestmark = pytest.mark.mount


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    return asked_project(tmp_path)


@pytest.fixture
def view(yolofs: Program) -> Iterator[Path]:
    with yolofs.mounted() as mountpoint:
        yield mountpoint


def is_absent(path: Path) -> bool:
    """Tell whether a process of its own, which may hang, sees nothing at a path."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", STAT, path], timeout=DEADLINE_S, check=False)
    return done.returncode == errno.ENOENT


STAT = """
import os, sys
try:
    os.stat(sys.argv[1])
except OSError as error:
    sys.exit(error.errno)
"""


def test_what_is_hidden_is_gone_while_somebody_waits_to_make_a_name_beside_it(yolofs: Program) -> None:
    """The kernel holds the lock of the directory meanwhile."""
    toml = yolofs.project / ".yolofs.toml"
    toml.write_text(toml.read_text() + "[mount]\nbase_timeout = 3600\n")
    with yolofs.mounted() as view:
        for name in ("secret/a", "secret/deep/7", "free"):
            os.stat(view / name)
        with reader(view / "secret/new", script=CREATE) as waiting, connected(yolofs) as client:
            wait_for_asks(client, 1)
            for name in ("secret/a", "free"):
                yolofs("rule", "hidden", name)
                assert is_absent(view / name)
            assert len(client.asks()) == 1
            yolofs("answer", "1", "deny")
            assert waiting.end()[1].startswith("PermissionError")


def test_a_change_by_the_host_shows_while_somebody_waits_to_make_a_name(yolofs: Program) -> None:
    toml = yolofs.project / ".yolofs.toml"
    toml.write_text(toml.read_text() + "[mount]\nbase_timeout = 3600\n")
    with yolofs.mounted() as view:
        wait_until(lambda: "the project is watched" in yolofs.log, "the watch")
        for name in ("secret/a", "free"):
            os.stat(view / name)
        with reader(view / "secret/new", script=CREATE) as waiting, connected(yolofs) as client:
            wait_for_asks(client, 1)
            (yolofs.project / "secret/a").unlink()  # in the directory that the kernel has locked
            for name in ("one", "two"):  # the second one for sure after the message that gets stuck
                assert not (view / name).exists()
                (yolofs.project / name).touch()
                wait_until((view / name).exists, "the new file")
            yolofs("answer", "1", "deny")
            waiting.end()
        wait_until(lambda: not (view / "secret/a").exists(), "the file to go")


def test_a_directory_that_the_host_has_just_made_keeps_its_path_while_somebody_waits(yolofs: Program) -> None:
    """A process in it learns the path from ``getcwd``, and from the link of a descriptor."""
    toml = yolofs.project / ".yolofs.toml"
    toml.write_text(toml.read_text() + "[mount]\nbase_timeout = 3600\n")
    with yolofs.mounted() as view:
        wait_until(lambda: "the project is watched" in yolofs.log, "the watch")
        os.stat(view / "secret/a")
        with reader(view / "secret/new", script=CREATE) as waiting, connected(yolofs) as client:
            wait_for_asks(client, 1)
            (yolofs.project / "secret/a").unlink()  # in the directory that the kernel has locked
            (yolofs.project / "made").mkdir()
            inside = os.open(view / "made", os.O_PATH)
            try:
                for name in ("one", "two"):  # the second one for sure after the message that gets stuck
                    assert not (view / name).exists()
                    (yolofs.project / name).touch()
                    wait_until((view / name).exists, "the new file")
                assert os.readlink(f"/proc/self/fd/{inside}") == str(view / "made")
            finally:
                os.close(inside)
            yolofs("answer", "1", "deny")
            waiting.end()


WAYS_TO_MAKE_A_NAME = {
    "create": "import sys; open(sys.argv[1], 'x')",
    "mkdir": "import os, sys; os.mkdir(sys.argv[1])",
    "symlink": "import os, sys; os.symlink('target', sys.argv[1])",
    "mkfifo": "import os, sys; os.mkfifo(sys.argv[1])",
    "link": "import os, sys; os.link(os.path.dirname(sys.argv[1]) + '/../free', sys.argv[1])",
    "rename": "import os, sys; os.rename(os.path.dirname(sys.argv[1]) + '/../free', sys.argv[1])",
    "relative": "import os, sys; os.chdir(os.path.dirname(sys.argv[1])); open('new', 'x')",
    "relative mkdir": "import os, sys; os.chdir(os.path.dirname(sys.argv[1])); os.mkdir('new')",
    "relative link": "import os, sys; os.chdir(os.path.dirname(sys.argv[1])); os.link('../free', 'new')",
    "relative rename": "import os, sys; os.chdir(os.path.dirname(sys.argv[1])); os.rename('../free', 'new')",
    "dirfd": "import os, sys; at = os.open(os.path.dirname(sys.argv[1]), os.O_PATH); os.symlink('x', 'new', dir_fd=at)",
    "bind": "import os, socket, sys; os.chdir(os.path.dirname(sys.argv[1])); socket.socket(socket.AF_UNIX).bind('new')",
}


@pytest.mark.parametrize("name", points(list(WAYS_TO_MAKE_A_NAME), "travelling beside an ask", some=3))
def test_travelling_waits_for_no_answer_of_somebody_who_makes_a_name_there(yolofs: Program, name: str) -> None:
    """The kernel locks the directory for as long as it waits for the answer, and has to drop a name
    in there.
    """
    script = WAYS_TO_MAKE_A_NAME[name]
    with (yolofs.project / ".yolofs.toml").open("a") as toml:
        toml.write('"secret/other" = "allow"\n')
    with yolofs.mounted() as view, connected(yolofs) as client:
        yolofs("snapshot", "before")
        (view / "secret/other").write_text("made later\n")
        with reader(view / "secret/new", script=script) as waiting:
            (asked,) = wait_for_asks(client, 1)
            for _ in range(2):
                yolofs("travel", "before")
                yolofs("status")
                if script != WAYS_TO_MAKE_A_NAME["bind"]:  # it keeps the directory locked
                    assert is_absent(view / "secret/other")
                yolofs("travel", "-")
                assert [ask.id for ask in client.asks()] == [asked.id]
                assert waiting.process.poll() is None
            yolofs("answer", str(asked.id), "allow")
            assert waiting.end() == ("", "")
        assert os.path.lexists(view / "secret/new")
        wait_until((view / "secret/other").exists, "the file to be back")


def test_others_use_the_directory_while_names_are_waited_for(yolofs: Program, view: Path) -> None:
    (yolofs.project / "secret/empty").mkdir()
    scripts = {
        **WAYS_TO_MAKE_A_NAME,
        "unlink": "import os, sys; os.unlink(os.path.dirname(sys.argv[1]) + '/a')",
        "relative rmdir": "import os, sys; os.chdir(os.path.dirname(sys.argv[1])); os.rmdir('empty')",
    }
    del scripts["bind"]
    with contextlib.ExitStack() as stack, connected(yolofs) as client:
        for number, script in enumerate(scripts.values()):
            script = script.replace("'new'", f"'by-{number}'")
            stack.enter_context(reader(view / f"secret/by-{number}", script=script))
        asked = wait_for_asks(client, len(scripts))
        listed = subprocess.run(
            ["ls", "-l", view / "secret"], timeout=DEADLINE_S, check=True, capture_output=True, text=True
        )
        assert "deep" in listed.stdout
        assert "by-" not in listed.stdout
        for ask in asked:
            yolofs("answer", str(ask.id), "deny")


@pytest.mark.parametrize("directory", ["sys.argv[1]", "'.'"], ids=["absolute", "relative"])
def test_a_crowd_that_makes_names_in_one_directory_is_asked_about_at_one_go(
    yolofs: Program, view: Path, directory: str
) -> None:
    script = f"""
import os, sys, threading
def make(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
os.chdir(sys.argv[1])
threads = [threading.Thread(target=make, args=({directory} + f"/made-{{number}}",)) for number in range(50)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    with reader(view / "secret", script=script) as waiting, connected(yolofs) as client:
        asked = wait_for_asks(client, 50)
        assert len({ask.group for ask in asked}) == 1
        os.listdir(view / "secret")
        yolofs("answer", str(asked[0].id), "allow", "--only")
        wait_for_asks(client, 49)
        wait_for_asks(client, 49)
        os.listdir(view / "secret")
        yolofs("asks")  # whoever answers for the group has seen it
        yolofs("answer", str(asked[-1].id), "allow")
        assert waiting.end() == ("", "")
    assert len(list((view / "secret").glob("made-*"))) == 50


def test_a_process_that_looks_at_the_directory_all_the_time_does_not_get_in_the_way(
    yolofs: Program, view: Path
) -> None:
    """The kernel must not learn the directory's permissions from others just as somebody was sent
    to ask for them.
    """
    look = "import os, sys\nwhile True: os.stat(sys.argv[1])"
    script = """
import os, sys
for number in range(30):
    if os.fork() == 0:
        os.chdir(sys.argv[1])
        os.close(os.open(f"made-{number}", os.O_CREAT | os.O_WRONLY))
        os._exit(0)
for _ in range(30):
    os.wait()
"""
    with (
        reader(view / "secret", script=look),
        reader(view / "secret", script=look),
        reader(view / "secret", script=script) as waiting,
        connected(yolofs) as client,
    ):
        asked = wait_for_asks(client, 30)
        subprocess.run(["ls", "-l", view / "secret"], timeout=DEADLINE_S, check=True)
        for ask in asked:
            client.answer(AnswerParams(ask.id, "allow"))
        assert waiting.end() == ("", "")


@pytest.mark.parametrize("name", ["relative rename", "rename"])
def test_a_rename_waits_for_both_answers_with_nothing_locked(yolofs: Program, view: Path, name: str) -> None:
    script = WAYS_TO_MAKE_A_NAME[name].replace("../free", "a")
    with reader(view / "secret/new", script=script) as waiting, connected(yolofs) as client:
        (first,) = wait_for_asks(client, 1)
        yolofs("answer", str(first.id), "allow")
        wait_until(lambda: [ask.id for ask in client.asks()] not in ([], [first.id]), "the other ask")
        (second,) = client.asks()
        assert second.path != first.path
        subprocess.run(["ls", "-l", view / "secret"], timeout=DEADLINE_S, check=True)
        yolofs("answer", str(second.id), "allow")
        assert waiting.end() == ("", "")
    assert (view / "secret/new").exists()


def test_allowing_one_name_of_a_rename_does_not_allow_the_other(yolofs: Program, view: Path) -> None:
    """A rename asks about both names."""
    script = WAYS_TO_MAKE_A_NAME["rename"].replace("/../free", "/a")
    with reader(view / "secret/new", script=script) as waiting, connected(yolofs) as client:
        (first,) = wait_for_asks(client, 1)
        yolofs("answer", str(first.id), "allow")
        wait_until(lambda: [ask.id for ask in client.asks()] not in ([], [first.id]), "the other ask")
        (second,) = client.asks()
        yolofs("answer", str(second.id), "deny")
        assert waiting.end()[1].startswith("PermissionError")
    assert (view / "secret/a").exists()


def test_a_rule_that_comes_with_the_first_answer_makes_the_second_question_moot(yolofs: Program, view: Path) -> None:
    script = WAYS_TO_MAKE_A_NAME["rename"].replace("/../free", "/a")
    with reader(view / "secret/new", script=script) as waiting, connected(yolofs) as client:
        (first,) = wait_for_asks(client, 1)
        yolofs("answer", str(first.id), "allow", "--session", "--scope", "secret")
        assert waiting.end() == ("", "")
        assert client.asks() == []


@pytest.mark.parametrize("name", ["relative rename", "rename"])
def test_an_access_denied_at_its_first_name_asks_about_no_other(yolofs: Program, view: Path, name: str) -> None:
    script = WAYS_TO_MAKE_A_NAME[name].replace("../free", "a")
    with reader(view / "secret/new", script=script) as waiting, connected(yolofs) as client:
        (first,) = wait_for_asks(client, 1)
        yolofs("answer", str(first.id), "deny")
        assert waiting.end()[1].startswith("PermissionError")
        assert client.asks() == []
    assert (view / "secret/a").exists()


THEN_REMOVED = {
    "mkdir": ("os.mkdir('new')", "os.rmdir('new')"),
    "open": ("os.open('new', os.O_CREAT | os.O_EXCL)", "os.unlink('new')"),
    "symlink": ("os.symlink('target', 'new')", "os.rename('new', '../elsewhere')"),
}


@pytest.mark.parametrize(("making", "removing"), THEN_REMOVED.values(), ids=THEN_REMOVED)
def test_leave_to_make_a_name_that_others_made_meanwhile_is_no_leave_to_remove_it(
    yolofs: Program, view: Path, making: str, removing: str
) -> None:
    """The kernel sees by itself that it is there: nothing comes to us for which the answer was."""
    script = f"""
import os, sys
os.chdir(sys.argv[1])
try:
    {making}
except FileExistsError:
    {removing}
"""
    with reader(view / "secret", script=script) as waiting, connected(yolofs) as client:
        (first,) = wait_for_asks(client, 1)
        made = yolofs.project / "secret/new"
        made.mkdir() if "mkdir" in making else made.write_text("precious\n")
        yolofs("answer", str(first.id), "allow")
        wait_until(lambda: [ask.id for ask in client.asks()] not in ([], [first.id]), "the other ask")
        (second,) = client.asks()
        assert second.operation in ("delete", "rename")
        subprocess.run(["ls", "-l", view / "secret"], timeout=DEADLINE_S, check=True)
        yolofs("answer", str(second.id), "deny")
        assert waiting.end()[1].startswith("PermissionError")
    assert (view / "secret/new").exists()


def test_committing_and_aborting_wait_for_no_answer_either(yolofs: Program, view: Path) -> None:
    with (yolofs.project / ".yolofs.toml").open("a") as toml:
        toml.write('"secret/other" = "allow"\n')
    with connected(yolofs) as client:
        wait_until(lambda: (view / "secret/other").write_text("made\n") and True, "the rule")
        with reader(view / "secret/new", script=CREATE) as waiting:
            (asked,) = wait_for_asks(client, 1)
            yolofs("abort", "--yes")
            assert is_absent(view / "secret/other")
            (view / "free").write_text("changed\n")
            yolofs("commit", "--yes")
            assert [ask.id for ask in client.asks()] == [asked.id]
            yolofs("answer", str(asked.id), "deny")
            assert waiting.end()[1].startswith("PermissionError")


def test_whoever_waits_to_make_a_name_may_find_it_made_by_a_travel(yolofs: Program) -> None:
    with yolofs.mounted() as view, connected(yolofs) as client:
        yolofs("rule", "allow", "secret")
        (view / "secret/new").write_text("there\n")
        (view / "secret/other").write_text("there\n")
        yolofs("snapshot", "there")
        yolofs("travel", "0")
        yolofs("rule", "ask", "secret")
        assert is_absent(view / "secret/other")
        with reader(view / "secret/new", script=CREATE) as waiting:
            (asked,) = wait_for_asks(client, 1)
            yolofs("travel", "there")
            assert (view / "secret/other").exists()
            yolofs("answer", str(asked.id), "allow")
            assert waiting.end()[1].startswith("FileExistsError")
