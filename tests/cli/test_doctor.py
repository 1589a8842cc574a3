"""The findings of doctor, its advice, and its repairs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, kill
from tests.support.terminal import Terminal
from yolofs.compiled import is_compiled

pytestmark = pytest.mark.mount


def findings(yolofs: Program, code: int = 0, path: str | None = None) -> dict[str, dict[str, Any]]:
    document = yolofs("doctor", "--json", code=code, PATH=path or os.environ["PATH"]).json
    assert list(document) == ["findings", "ok"]
    assert document["ok"] is (code == 0)
    assert {tuple(finding) for finding in document["findings"]} == {("check", "level", "message", "advice")}
    return {finding["check"]: finding for finding in document["findings"]}


def damage(yolofs: Program) -> bytes:
    """Add a good record, a bad line and a good record; return the journal as it should be after a
    repair.
    """
    yolofs("snapshot", "good")
    journal = yolofs.session / "journal"
    good = journal.read_bytes()
    record = good.splitlines(keepends=True)[-1]
    journal.write_bytes(good + b"nonsense\n" + record)
    return good


def test_all_is_well_in_a_new_session(yolofs: Program) -> None:
    found = findings(yolofs)
    assert {finding["level"] for finding in found.values()} == {"ok"}
    assert found["core"]["message"].startswith("compiled" if is_compiled() else "pure Python")
    assert {"python", "kernel", "/dev/fuse", "fusermount3", "transport", "pyfuse3", "bubblewrap"} <= set(found)
    assert {"permissions", "config", "journal", "lock", "mount", "commits", "space"} <= set(found)
    lines = yolofs("doctor").out.splitlines()  # one that is indented says what to do: set up again, for a stale core
    assert len([line for line in lines if not line.startswith(" ")]) == len(found)


def test_without_a_session_the_machine_alone_is_checked(tmp_path: Path) -> None:
    done = Program(tmp_path)("doctor")
    assert "there is no session here" in done.err
    assert "journal" not in done.out
    assert "yolofs init" in Program(tmp_path)("doctor", "--repair", code=4).err


def test_a_transport_that_the_project_chose_and_that_is_not_there_is_found(yolofs: Program, tmp_path: Path) -> None:
    """The next mount would fail, whatever the machine has."""
    with (yolofs.project / ".yolofs.toml").open("a") as settings:
        settings.write('[mount]\ntransport = "pyfuse3"\n')
    assert "mount.transport" not in findings(yolofs)  # waits until somebody agrees to it
    yolofs.trust()
    found = findings(yolofs)
    assert found["transport"]["message"] == 'direct, for mount.transport = "auto"'
    assert found["mount.transport"]["message"] == "the next mount gets pyfuse3"
    (tmp_path / "pyfuse3.py").write_text("raise ImportError('it is not there')\n")
    command = [sys.executable, "-m", "yolofs.cli.main"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *words], cwd=yolofs.project, env=environment, capture_output=True, text=True, check=False
        )

    found = {finding["check"]: finding for finding in json.loads(run("doctor", "--json").stdout)["findings"]}
    assert found["mount.transport"]["level"] == "fail"
    said = run("mount", "--root", ".").stderr
    assert found["mount.transport"]["message"] in said
    assert found["mount.transport"]["advice"] in said


def test_a_mount_is_named_with_its_process(yolofs: Program) -> None:
    with yolofs.mounted():
        assert findings(yolofs)["daemon"]["message"] == f"process {yolofs.daemon['pid']} serves the mount"


def test_the_mount_of_a_dead_daemon_is_found(yolofs: Program) -> None:
    yolofs("mount", "--root", ".")
    kill(yolofs.daemon["pid"])
    found = findings(yolofs, code=1)
    assert (found["mount"]["level"], found["mount"]["advice"]) == ("fail", "yolofs unmount")
    yolofs("unmount")
    assert findings(yolofs)["mount"]["level"] == "ok"


def test_a_session_that_others_can_look_into_is_found(yolofs: Program) -> None:
    yolofs.session.chmod(0o755)
    found = findings(yolofs, code=1)["permissions"]
    assert found["advice"] == f"chmod 700 {yolofs.session}"


def test_a_broken_config_is_found(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text("nonsense = 1\n")
    assert findings(yolofs, code=1)["config"]["message"].startswith(".yolofs.toml:1: nonsense: unknown key")


def test_an_interrupted_commit_is_found(yolofs: Program) -> None:
    (yolofs.session / "commits/1").mkdir(parents=True)
    (yolofs.session / "commits/1/plan.json").write_text("{}")
    assert "was interrupted" in findings(yolofs, code=1)["commits"]["message"]


def test_doctor_finds_a_file_that_the_store_has_lost(yolofs: Program) -> None:
    assert findings(yolofs, code=0)["store"]["message"] == "nothing is staged"
    with yolofs.mounted() as view:
        for name in ("lost", "kept", "other"):
            (view / name).write_text(name)
        os.link(view / "lost", view / "lost too")
        assert findings(yolofs, code=0)["store"]["message"] == "all 3 staged files are there"
        (lost,) = (path for path in (yolofs.session / "files").glob("*/*") if path.read_text() == "lost")
        lost.unlink()
        for _ in range(2):
            found = findings(yolofs, code=1)["store"]
            assert found["message"] == "the content of lost, lost too is missing from the store"
            assert "yolofs timeline" in found["advice"]
            assert "hint: yolofs doctor" in yolofs("status", code=21).err


def test_missing_programs_are_found_with_the_package_to_install(yolofs: Program) -> None:
    found = findings(yolofs, code=0 if os.geteuid() == 0 else 1, path="/nowhere")
    assert found["bubblewrap"] == {
        "check": "bubblewrap",
        "level": "warn",
        "message": "is not there: no sandbox",
        "advice": "install the package bubblewrap",
    }


def test_a_damaged_journal_is_found_and_cut_after_asking(yolofs: Program) -> None:
    good = damage(yolofs)
    found = findings(yolofs, code=1)["journal"]
    assert found["message"].startswith("line 3 (byte ")
    assert found["advice"].startswith("yolofs doctor --repair --keep-rest ")
    assert "yolofs doctor --repair cuts 2 records off, from there on" in found["advice"]
    with Terminal(yolofs.project, ["doctor", "--repair"]) as terminal:
        terminal.wait_for("[y/N] ")
        terminal.type("n\n")
        assert terminal.wait() == 1
    assert (yolofs.session / "journal").read_bytes() != good
    with Terminal(yolofs.project, ["doctor", "--repair"]) as terminal:
        terminal.wait_for("[y/N] ")
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert (yolofs.session / "journal").read_bytes() == good
    assert (yolofs.session / "journal.torn").read_text().splitlines()[1] == "nonsense"
    assert "good" in yolofs("timeline").out


def test_a_repair_without_a_terminal_needs_yes(yolofs: Program) -> None:
    good = damage(yolofs)
    assert "hint: yolofs doctor --repair --yes" in yolofs("doctor", "--repair", code=2).err
    assert (yolofs.session / "journal").read_bytes() != good
    yolofs("doctor", "--repair", "--yes")
    assert (yolofs.session / "journal").read_bytes() == good
    assert "nothing to repair" in yolofs("doctor", "--repair").err


def test_a_journal_in_use_is_not_repaired(yolofs: Program) -> None:
    with yolofs.mounted():
        assert "in use by a mount" in yolofs.refused("doctor", "--repair", "--yes", code=2)
