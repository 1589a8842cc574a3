"""Agreeing to the waiting lines of a tree's settings: they are shown and asked about, and
remembered until they change.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.security.trust.clones import EXIT, SECRET, reads, settings, waiting
from tests.support.program import Program
from tests.support.terminal import Terminal

pytestmark = pytest.mark.mount


def test_at_a_terminal_the_lines_are_shown_and_asked(clone: Program, home: Path) -> None:
    settings(clone, '[run]\nkeep_env = ["A_TOKEN"]\n\n[rules]\n"a.txt" = "deny"\n"~/.ssh" = "allow"\n')
    with Terminal(clone.project, ["trust"]) as terminal:
        terminal.wait_for("agree to these 2 lines? [y/N] ")
        assert '.yolofs.toml:2  run.keep_env = ["A_TOKEN"]' in terminal.text
        assert '.yolofs.toml:6  "~/.ssh" = "allow"' in terminal.text
        assert f"{home}/.ssh may be read and changed: hidden without it" in " ".join(terminal.text.split())
        assert "a.txt" not in terminal.text
        terminal.type("n\n")
        assert terminal.wait() == 1
    assert len(waiting(clone)) == 2
    with Terminal(clone.project, ["trust"]) as terminal:
        terminal.wait_for("agree to these 2 lines? [y/N] ")
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert waiting(clone) == []


def test_trust_agrees_to_the_lines_that_it_has_shown_alone(clone: Program) -> None:
    settings(clone, '[run]\nkeep_env = ["A"]\n')
    with Terminal(clone.project, ["trust"]) as terminal:
        terminal.wait_for("agree to this line? [y/N] ")
        settings(clone, '[run]\nkeep_env = ["A", "*"]\n')
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert waiting(clone) == ['run.keep_env = ["*"]']


def test_without_a_terminal_trust_is_refused_with_the_line_to_run(clone: Program) -> None:
    settings(clone, '[run]\nkeep_env = ["A"]\n')
    done = clone("trust", code=EXIT)
    assert 'run.keep_env = ["A"]' in done.out
    found = re.search(r"hint: read what they open, then: yolofs (trust --digest [0-9a-f]{32})\n", done.err)
    assert found
    assert len(waiting(clone)) == 1
    clone("trust", "--digest", "0" * 32, code=EXIT)
    settings(clone, '[run]\nkeep_env = ["A", "B"]\n')
    assert "the file, or what it opens, has changed" in clone(*found[1].split(), code=EXIT).err
    settings(clone, '[run]\nkeep_env = ["A"]\n# a comment\n')
    clone(*found[1].split())
    assert waiting(clone) == []


def test_a_digest_is_one_of_its_project_alone(clone: Program, home: Path) -> None:
    settings(clone, '[run]\nkeep_env = ["A"]\n')
    other = Program(home / "src/other")
    other.project.mkdir()
    other.start_session()
    shutil.copy(clone.project / ".yolofs.toml", other.project)
    digest = clone("trust", "--json").json["digest"]
    other("trust", "--digest", digest, code=EXIT)


def test_after_a_change_only_the_difference_is_asked(clone: Program, home: Path) -> None:
    settings(clone, 'scratch = ["build"]\n[run]\nkeep_env = ["A", "B"]\n[rules]\n"~/.ssh" = "read-only"\n')
    clone.trust()
    settings(
        clone,
        '# moved\n[rules]\n"~/notes" = "allow"\n"~/./.ssh/" = "read-only"\n[run]\nkeep_env = ["B", "C"]\n',
    )
    assert waiting(clone) == ['"~/notes" = "allow"', 'run.keep_env = ["C"]']
    assert reads(clone, home / ".ssh/key") == SECRET
    said = clone("trust", code=EXIT)
    assert "the file has changed since you agreed" in said.err
    assert '"B"' not in said.out
    settings(clone, '[rules]\n"~/.ssh" = "allow"\n')
    assert waiting(clone) == ['"~/.ssh" = "allow"']


def test_a_line_waits_again_when_the_exception_from_it_has_gone(clone: Program, home: Path) -> None:
    (home / "notes").mkdir()
    (home / "notes/private").write_text(SECRET)
    settings(clone, 'ask_timeout = 0\n[rules]\n"~/notes" = "allow"\n"~/notes/private" = "deny"\n')
    clone.trust()
    assert waiting(clone) == []
    settings(clone, 'ask_timeout = 0\n[rules]\n"~/notes" = "allow"\n')
    assert waiting(clone) == ['"~/notes" = "allow"']
    assert reads(clone, home / "notes/private") == ""


def test_agreements_can_be_taken_back(clone: Program, home: Path) -> None:
    settings(clone, '[rules]\n"~/.ssh" = "read-only"\n')
    with clone.mounted("--root", "/") as view:
        clone.trust()
        key = Path(f"{view}{home}/.ssh/key")
        assert key.read_text() == SECRET
        clone("trust", "--forget")
        assert not key.exists()
    assert waiting(clone) == ['"~/.ssh" = "read-only"']
    assert "nothing was agreed to" in clone("trust", "--forget").err


def test_a_copy_or_a_new_clone_elsewhere_inherits_nothing(clone: Program, home: Path) -> None:
    settings(clone, '[rules]\n"~/.ssh" = "read-only"\n')
    clone.trust()
    for name, command in (("copy", ["cp", "-a"]), ("clone2", ["cp", "-r"])):
        subprocess.run([*command, clone.project, home / "src" / name], check=True)
        shutil.rmtree(home / "src" / name / ".yolofs", ignore_errors=True)
        copy = Program(home / "src" / name)
        copy.start_session()
        assert waiting(copy) == ['"~/.ssh" = "read-only"'], name
    assert waiting(clone) == []


def test_agreements_lie_where_only_the_user_can_write(clone: Program) -> None:
    settings(clone, '[run]\nkeep_env = ["A"]\n')
    clone.trust()
    directory = Path(os.environ["XDG_STATE_HOME"]) / "yolofs/trust"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert not [path for path in clone.project.rglob("*") if path.is_file() and b"keep_env" in path.read_bytes()][1:]


def test_agreements_count_for_nothing_where_others_could_write_them(
    clone: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(clone, '[rules]\n"~/.ssh" = "read-only"\n')
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    monkeypatch.setenv("YOLOFS_STATE", str(state))
    clone.start_session()
    digest = clone("trust", "--json").json["digest"]
    clone("trust", "--digest", digest)
    assert clone("status", "--json").json["waiting"] == []
    (agreed,) = (state / "trust").iterdir()
    agreed.chmod(0o666)
    assert clone("status", "--json").json["waiting"]
    agreed.chmod(0o600)
    state.chmod(0o777)
    assert f"others may write to {state}" in clone.refused("status", code=EXIT)
    state.chmod(0o700)
    agreed.write_bytes(b"nonsense")
    done = clone("trust", code=EXIT)
    assert "what you agreed to does not count: the file in the state directory is damaged" in done.err


def test_of_two_trusts_at_once_the_second_is_told_and_none_is_lost(clone: Program) -> None:
    settings(clone, '[run]\nkeep_env = ["A"]\n')
    with Terminal(clone.project, ["trust"]) as terminal:
        terminal.wait_for("agree to this line? [y/N] ")
        settings(clone, '[run]\nkeep_env = ["B"]\n')
        clone.trust()
        terminal.type("y\n")
        assert terminal.wait() == EXIT
        assert "another yolofs trust has changed what is agreed to" in " ".join(terminal.text.split())
    assert waiting(clone) == []
    settings(clone, '[run]\nkeep_env = ["A"]\n')
    assert waiting(clone) == ['run.keep_env = ["A"]']


def test_when_nothing_can_wait_any_more_agreeing_forgets_what_has_gone(clone: Program) -> None:
    settings(clone, '[run]\nkeep_env = ["A"]\n')
    clone.trust()
    settings(clone, "# nothing\n")
    assert "1 setting" in clone("trust").err
    settings(clone, '[run]\nkeep_env = ["A"]\n')
    assert waiting(clone) == ['run.keep_env = ["A"]']
