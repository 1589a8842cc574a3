"""What a run leaves: a generation, and a summary of what it did."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.program import Program, wait_until
from tests.support.started import start

pytestmark = pytest.mark.mount


def test_what_is_changed_is_staged_and_a_generation_named_after_the_command(yolofs: Program) -> None:
    before = sorted(os.listdir(yolofs.project))
    yolofs("run", "sh", "-c", "echo new > made-by-run")
    assert sorted(os.listdir(yolofs.project)) == before
    timeline = yolofs("timeline", "--json").json["generations"]
    assert timeline[-1]["name"] == "echo new > made-by-run"
    assert yolofs("run", "cat", "made-by-run").out == "new\n"


def test_a_command_that_changes_nothing_leaves_no_generation_and_says_nothing(yolofs: Program) -> None:
    before = yolofs("timeline", "--json").json["generations"]
    done = yolofs("run", "cat", "/etc/passwd")
    assert done.err == ""
    assert yolofs("timeline", "--json").json["generations"] == before


def test_the_summary_names_deletions_and_what_is_outside_first_and_one_command_undoes_it_all(
    yolofs: Program, elsewhere: Path
) -> None:
    (elsewhere / "theirs").write_text("theirs")
    (yolofs.project / "kept.txt").write_text("kept")
    (yolofs.project / "old").mkdir()
    (yolofs.project / "old/one").write_text("1")
    script = f"echo 2 > added; echo more >> kept.txt; rm -r old; rm {elsewhere}/theirs; echo x > {elsewhere}/mine"
    done = yolofs("run", "sh", "-c", script)
    lines = done.err.splitlines()
    assert lines[0].startswith("yolofs: run ")
    assert lines[1:-1] == [
        "deleted:",
        "  D  old/  (and 1 in it)",
        "outside the project:",
        f"  D  {elsewhere}/theirs",
        f"  A  {elsewhere}/mine",
        "in the project:",
        "  M  kept.txt",
        "  A  added",
    ]
    undo = lines[-1].partition("undo it: yolofs ")[2].split()
    yolofs(*undo)
    shown = yolofs("run", "sh", "-c", f"cat kept.txt old/one {elsewhere}/theirs; ls {elsewhere}; [ ! -e added ]").out
    assert shown == "kept1theirstheirs\n"


def test_of_many_changes_the_number_that_is_not_shown_is_told(yolofs: Program) -> None:
    done = yolofs("run", "sh", "-c", "for i in $(seq 100); do echo > f$i; done")
    assert "  … and 90 more lines (90 added): yolofs diff " in done.err


def test_files_in_directories_that_the_summary_does_not_show_are_counted_too(yolofs: Program) -> None:
    done = yolofs("run", "sh", "-c", "for i in $(seq 12); do mkdir d$i; echo > d$i/a; echo > d$i/b; done")
    assert "36 changes: 36 added" in done.err
    assert "  … and 2 more lines (6 added): yolofs diff " in done.err


def test_the_json_is_the_last_line_of_stderr(yolofs: Program) -> None:
    done = yolofs("run", "--json", "sh", "-c", "echo talk >&2; echo 1 > one; exit 4", code=4)
    talk, document = done.err.splitlines()
    said = json.loads(document)
    assert talk == "talk"
    assert said["code"] == 4
    assert said["command"] == ["sh", "-c", "echo talk >&2; echo 1 > one; exit 4"]
    assert [change["path"] for change in said["changes"]] == [str(yolofs.project / "one")]
    assert said["undo"] == f"yolofs travel {said['before']}"


def test_a_run_with_no_review_prints_no_summary(yolofs: Program) -> None:
    assert yolofs("run", "--no-review", "sh", "-c", "echo 1 > one").err == ""


def test_without_snapshot_there_is_no_generation_but_a_summary(yolofs: Program) -> None:
    before = len(yolofs("timeline", "--json").json["generations"])
    done = yolofs("run", "--no-snapshot", "sh", "-c", "echo 1 > unsnapshotted")
    assert "  A  unsnapshotted" in done.err
    assert len(yolofs("timeline", "--json").json["generations"]) == before


def test_the_generation_can_be_given_a_name(yolofs: Program) -> None:
    yolofs("run", "--name", "my name", "sh", "-c", "echo 1 > one")
    assert yolofs("timeline", "--json").json["generations"][-1]["name"] == "my name"


def test_a_name_that_no_generation_can_have_is_refused_before_the_command_runs(yolofs: Program) -> None:
    said = yolofs.refused("run", "--name", "run 3", "sh", "-c", "echo 1 > named", code=2)
    assert "a snapshot cannot be named run 3" in said
    assert "named" not in yolofs("status").out


def test_changes_staged_before_a_run_are_not_in_its_summary(yolofs: Program) -> None:
    yolofs("run", "--no-snapshot", "--no-review", "sh", "-c", "echo 1 > earlier")
    done = yolofs("run", "sh", "-c", "echo 1 > later")
    assert "later" in done.err
    assert "earlier" not in done.err


def test_the_exit_code_is_passed_on_also_if_there_can_be_no_summary(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".yolofs.toml").write_text("scratch = []\n")
    yolofs = Program(project)
    yolofs.start_session()
    yolofs("mount")
    try:
        script = "echo 1 > made; until [ -e go ]; do sleep 0.05; done; exit 3"
        with start(["run", "sh", "-c", script], project) as process:
            made = yolofs.session / "files/00/1"
            wait_until(lambda: made.exists() and made.read_text() == "1\n", "the file")
            made.unlink()
            (project / "go").touch()
            _, said = process.communicate(timeout=60)
        assert process.returncode == 3
        assert "cannot tell what run 1 changed: store inode 1, shown as " in said.decode()
    finally:
        yolofs("unmount", "--force")


def test_the_summary_tells_what_the_rules_refused(yolofs: Program) -> None:
    (yolofs.project / "closed").write_text("x")
    yolofs("rule", "deny", "closed")
    try:
        done = yolofs("run", "sh", "-c", "cat closed; true")
        said = yolofs("run", "--json", "sh", "-c", "echo x > closed; true").err.splitlines()[-1]
    finally:
        yolofs("rule", "unset", "closed")
    assert "asked or refused:" in done.err
    assert f"{yolofs.project}/closed" in done.err.split("asked or refused:")[1]
    assert [note["path"] for note in json.loads(said)["notes"]] == [f"{yolofs.project}/closed"]


def test_a_history_that_could_not_be_kept_is_in_the_log_and_the_json_alone(yolofs: Program) -> None:
    """vim and every shell try that each time."""
    history = Path.home() / ".viminfo"
    script = f"echo x > {history}; true"
    assert "refus" not in yolofs("run", "sh", "-c", script).err
    done = yolofs("run", "sh", "-c", f"{script}; echo x > {Path.home()}/.netrc; true")
    assert ".viminfo" not in done.err.split("asked or refused:")[1]
    assert ".netrc" in done.err.split("asked or refused:")[1]
    said = json.loads(yolofs("run", "--json", "sh", "-c", script).err.splitlines()[-1])
    assert [note["path"] for note in said["notes"]] == [str(history)]
    assert str(history) in yolofs("log", "-v").out


def test_the_summary_tells_of_scratch_directories_only_how_many_changes_there_are(yolofs: Program) -> None:
    config = yolofs.project / ".yolofs.toml"
    before = config.read_text()
    config.write_text('scratch = ["build"]\n')
    yolofs.trust()
    (yolofs.project / "build").mkdir()
    try:
        done = yolofs("run", "sh", "-c", "echo > build/more; echo >> beside")
        assert "\nand 1 in scratch directories: yolofs diff " in done.err
        assert "build/more" not in done.err
        assert "beside\n" in done.err
        assert yolofs("run", "sh", "-c", "echo > build/another").err == ""
        told = json.loads(yolofs("run", "--json", "sh", "-c", "echo > build/third").err)
    finally:
        config.write_text(before)
    assert [change["region"] for change in told["changes"]] == ["scratch"]
    assert told["outside"] == 0


@pytest.mark.root_only
def test_root_is_told_of_files_of_others_after_a_command_that_failed(yolofs: Program) -> None:
    others = yolofs.project / "others"
    others.mkdir()
    (others / "file").write_text("theirs\n")
    try:
        for path in (others / "file", others):
            os.chown(path, 54321, 54321)
        done = yolofs("run", "sh", "-c", "echo mine >> others/file", code=2)
        assert "Permission denied" in done.err
        told = "yolofs: root in a run is an ordinary user, and may not write what others own: others (54321)\n"
        assert told in done.err
        command = done.err.splitlines()[-1].partition("trust what is in there: ")[2].removesuffix(", outside of a run")
        assert "54321" not in yolofs("run", "true").err  # nothing failed
        subprocess.run(command.split(), check=True)
        yolofs("run", "sh", "-c", "echo mine >> others/file")
        assert "54321" not in yolofs("run", "false", code=1).err
    finally:
        shutil.rmtree(others)


@pytest.mark.root_only
def test_what_another_user_has_mounted_is_not_asked_for_files(yolofs: Program) -> None:
    place = yolofs.project / "mounted"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "uid=54321,mode=755", "theirs", str(place)], check=True)
    try:
        assert "54321" not in yolofs("run", "false", code=1).err
    finally:
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()
