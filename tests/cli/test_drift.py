"""Base changes under staged files: ``status`` shows it, and ``commit`` follows its options."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.program import Program
from tests.support.terminal import Terminal

TEN = "".join(f"{number}\n" for number in range(1, 11))
OURS, THEIRS = TEN.replace("2\n", "two\n"), TEN.replace("9\n", "nine\n")
BOTH = OURS.replace("9\n", "nine\n")
CLASH = "<<<<<<< staged\nfive\n=======\nFIVE\n>>>>>>> base\n"
MERGE = ("text", "replaced", "truncated", "mode", "mode-there", "touched", "hard", "moved")
"""What merges."""
MARKED = ("clash", "anew")
REFUSED = ("gone-here", "gone-there", "binary", "link", "type", "-rf\nx")
NAMES = (*MERGE, *MARKED, *REFUSED)


def work(project: Path) -> None:
    """Change something of every kind in the view, without a mount."""
    view = CoreDriver(os.fsencode(project))
    for name in ("text", "truncated", "mode-there", "hard"):
        view.overwrite(name.encode(), OURS.encode())
    view.create(b"temporary", OURS.encode(), 0o644)
    view.rename(b"temporary", b"replaced")
    view.chmod(b"mode", 0o600)
    view.utimes(b"touched", 10**18)
    view.overwrite(b"moved", OURS.encode())
    view.rename(b"moved", b"moved-here")
    view.overwrite(b"clash", TEN.replace("5", "five").encode())
    view.create(b"anew", b"five\n", 0o644)
    view.unlink(b"gone-here")
    view.append(b"gone-there", b"more\n")
    view.append(b"binary", b"more\0")
    view.unlink(b"link")
    view.symlink(b"here", b"link")
    view.append(b"type", b"more\n")
    view.append(b"-rf\nx", b"more\0")
    view.append(b"alone", b"more\n")
    view.close()


def drift(project: Path) -> None:
    """Change the same on the host."""
    for name in ("text", "replaced", "truncated", "mode", "hard", "moved"):
        (project / name).write_text(THEIRS)
    (project / "mode-there").write_text(THEIRS)
    (project / "mode-there").chmod(0o755)
    (project / "touched").write_text(THEIRS)
    (project / "clash").write_text(TEN.replace("5", "FIVE"))
    (project / "anew").write_text("FIVE\n")
    (project / "gone-here").write_text(THEIRS)
    (project / "gone-there").unlink()
    (project / "binary").write_bytes(b"\0host")
    (project / "link").unlink()
    (project / "link").symlink_to("there")
    (project / "type").unlink()
    (project / "type").mkdir()
    (project / "-rf\nx").write_bytes(b"\0host")


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    project = tmp_path / "project"
    project.mkdir()
    for name in (*NAMES, "alone"):
        if name not in ("anew", "link"):
            (project / name).write_text(TEN)
    (project / "binary").write_bytes(b"\0")
    (project / "link").symlink_to("before")
    (project / "hard2").hardlink_to(project / "hard")
    program = Program(project)
    program.start_session()
    work(project)
    drift(project)
    return program


def left(document: dict[str, list[dict[str, str]]], key: str) -> set[str]:
    return {os.path.basename(item["path"]) for item in document[key]}


def test_status_shows_where_base_changed_too(yolofs: Program) -> None:
    done = yolofs("status")
    lines = [line for line in done.out.splitlines() if line.startswith("!")]
    assert {line[3:].partition("   ")[0] for line in lines} == {
        name if name != "moved" else "moved-here" for name in NAMES if "\n" not in name
    } | {'"-rf\\nx"'}
    texts = dict(line[3:].split("   ") for line in lines)
    ages = {name: text.replace("just now", "AGE") for name, text in texts.items()}
    assert ages["text"].startswith("base ")
    assert "gone from base, staged " in ages["gone-there"]
    assert "deleted here " in ages["gone-here"]
    assert ages["type"].startswith("replaced in base ")
    found = yolofs("status", "--json").json["drift"]
    assert {os.path.basename(one["path"]): one["how"] for one in found} == {
        **dict.fromkeys(
            ("text", "truncated", "mode", "mode-there", "touched", "hard", "moved-here", "clash"), "changed"
        ),
        **dict.fromkeys(("replaced", "anew", "gone-here", "link"), "made"),
        **dict.fromkeys(("binary", "-rf\nx"), "changed"),
        "gone-there": "gone",
        "type": "replaced",
    }
    for one in found:
        assert (one["base_ns"] is None) == (one["how"] == "gone")
        assert one["deleted"] == one["path"].endswith("gone-here")


def test_a_plain_commit_refuses_and_names_the_ways_out(yolofs: Program) -> None:
    done = yolofs("commit", "--yes", code=9)
    assert "M  text  [changed in base, too]\n" in done.out
    for word in ("--merge", "--ours", "--theirs"):
        assert word in done.err
    assert (yolofs.project / "alone").read_text() == TEN


def test_merge_takes_both_sides_and_leaves_what_does_not_merge(yolofs: Program) -> None:
    project = yolofs.project
    done = yolofs("commit", "--yes", "--merge", code=9)
    for name in MERGE:
        shown = "moved -> moved-here  (modified)" if name == "moved" else name
        assert any(line[3:].startswith(shown) and "[merged from both]" in line for line in done.out.splitlines()), name
    for name in ("text", "replaced", "truncated", "mode-there", "hard", "moved-here", "hard2"):
        assert (project / name).read_text() == BOTH, name
    assert not (project / "moved").exists()
    assert (project / "hard").samefile(project / "hard2")
    for name, mode in (("mode", 0o600), ("mode-there", 0o755)):
        assert (project / name).stat().st_mode & 0o777 == mode
    assert (project / "mode").read_text() == THEIRS
    assert (project / "touched").read_text() == THEIRS
    assert (project / "touched").stat().st_mtime_ns == 10**18
    assert (project / "alone").read_text() == TEN + "more\n"
    assert (project / "clash").read_text() == TEN.replace("5", "FIVE")
    assert (project / "gone-here").read_text() == THEIRS
    assert not (project / "gone-there").exists()
    for reason in ("it is deleted here, and changed in base", "it is gone from base", "it is no text"):
        assert reason in done.err, reason
    status = yolofs("status", "--json").json
    assert left(status, "changes") == {*MARKED, *REFUSED}
    assert {os.path.basename(one["path"]) for one in status["drift"] if one["how"] == "marked"} == set(MARKED)
    view = CoreDriver(os.fsencode(project))
    assert view.read(b"clash").decode() == TEN.replace("5\n", CLASH)
    assert view.read(b"anew").decode() == CLASH
    view.overwrite(b"anew", b"5\n")
    view.append(b"clash", b"the marks stay\n")
    view.close()
    assert "marks of a merge" in yolofs("commit", "--yes", "clash", code=9).err
    assert "still has the marks" in yolofs("commit", "--yes", "--merge", "clash", code=9).err
    yolofs("commit", "--yes", "anew")
    assert (project / "anew").read_text() == "5\n"
    yolofs("commit", "--yes", "--theirs", "clash")
    assert (project / "clash").read_text() == TEN.replace("5", "FIVE")
    assert left(yolofs("status", "--json").json, "changes") == set(REFUSED)


def test_ours_replaces_what_base_has_and_keeps_that(yolofs: Program) -> None:
    project = yolofs.project
    yolofs("commit", "--yes", "--ours")
    assert (project / "text").read_text() == OURS
    assert (project / "clash").read_text() == TEN.replace("5", "five")
    assert (project / "anew").read_text() == "five\n"
    assert (project / "gone-there").read_text() == TEN + "more\n"
    assert not (project / "gone-here").exists()
    assert os.readlink(project / "link") == "here"
    assert (project / "type").read_text() == TEN + "more\n"
    kept = {path.read_bytes() for path in (yolofs.session / "commits/1/replaced").iterdir() if path.is_file()}
    assert {THEIRS.encode(), b"\0host", b"FIVE\n"} <= kept
    assert yolofs("status", "--json").json["changes"] == []


def test_theirs_drops_what_is_staged_which_a_travel_shows_again(yolofs: Program) -> None:
    project = yolofs.project
    done = yolofs("commit", "--yes", "--theirs", "--json").json
    assert left(done, "dropped") == {*NAMES, "moved-here"}
    assert left(done, "changes") == {"alone"}
    assert (project / "text").read_text() == THEIRS
    assert (project / "moved").read_text() == THEIRS
    assert not (project / "moved-here").exists()
    assert os.readlink(project / "link") == "there"
    assert (project / "type").is_dir()
    assert not (project / "gone-there").exists()
    assert yolofs("status", "--json").json["changes"] == []


def test_theirs_for_a_path_leaves_the_rest_and_can_be_taken_back(yolofs: Program) -> None:
    before = left(yolofs("status", "--json").json, "changes")
    done = yolofs("commit", "--yes", "--theirs", "clash", "gone-there")
    assert "clash: base's version is taken" in done.err
    assert left(yolofs("status", "--json").json, "changes") == before - {"clash", "gone-there"}
    assert not (yolofs.session / "commits").exists()
    names = [one["name"] for one in yolofs("timeline", "--json").json["generations"]]
    assert "before merging" in names
    yolofs("travel", "before merging")
    assert left(yolofs("status", "--json").json, "changes") == before


def test_merge_with_theirs_merges_what_it_can_and_drops_the_rest(yolofs: Program) -> None:
    project = yolofs.project
    done = yolofs("commit", "--yes", "--merge", "--theirs", "--json").json
    assert left(done, "merged") == {*MERGE, "moved-here"} - {"moved"}
    assert left(done, "dropped") == {*MARKED, *REFUSED}
    assert done["left"] == []
    assert (project / "text").read_text() == BOTH
    assert (project / "clash").read_text() == TEN.replace("5", "FIVE")
    assert yolofs("status", "--json").json["changes"] == []


def test_a_change_by_the_host_after_a_merge_is_drift_again(yolofs: Program) -> None:
    yolofs("commit", "--yes", "--merge", "clash", code=9)
    (yolofs.project / "clash").write_text("host again\n")
    view = CoreDriver(os.fsencode(yolofs.project))
    view.overwrite(b"clash", b"settled\n")
    view.close()
    assert "base has changed at 1 path" in yolofs("commit", "--yes", "clash", code=9).err


def test_commit_asks_about_each_conflict_and_offers_what_is_possible_there(yolofs: Program) -> None:
    project = yolofs.project
    words = ["commit", "text", "clash", "gone-here", "gone-there", "binary", "alone"]
    question, after = "[q]uit?", 0
    with Terminal(project, words) as terminal:
        for answer in ("x", "m", "s", "m", "o", "t", "d", "m"):  # binary, clash, gone-here, gone-there, text
            after += 1
            terminal.wait_for(question, after)
            terminal.type(answer + "\n")
        terminal.wait_for("[y/N]")
        assert "it cannot be merged: it is no text" in terminal.text
        assert "both sides changed the same in 1 place" in terminal.text
        assert "+two" in terminal.text
        terminal.type("y\n")
        assert terminal.wait() == 9
    assert (project / "text").read_text() == BOTH
    assert (project / "binary").read_bytes() == b"\0host"
    assert not (project / "gone-here").exists()
    assert not (project / "gone-there").exists()
    assert (project / "alone").read_text() == TEN + "more\n"
    status = yolofs("status", "--json").json
    assert {"binary", "clash"} <= left(status, "changes")
    assert not {"text", "gone-here", "gone-there", "alone"} & left(status, "changes")


def test_a_conflict_whose_base_changes_after_the_answer_is_asked_about_again(yolofs: Program) -> None:
    """An answer is about what base had when it was given; other answers stay."""
    project = yolofs.project
    with Terminal(project, ["commit", "clash", "text"]) as terminal:
        for count in (1, 2):
            terminal.wait_for("[q]uit?", count)
            terminal.type("o\n")
        terminal.wait_for("[y/N]")
        (project / "text").write_text(THEIRS + "and more\n")
        terminal.type("y\n")
        terminal.wait_for("something of it has changed meanwhile, here or in base; look again")
        terminal.wait_for("[q]uit?", 3)
        assert "text: " in terminal.text.rpartition("look again")[2]
        terminal.type("m\n")
        terminal.wait_for("[y/N]", 2)
        terminal.type("y\n")
        assert terminal.wait() == 0
    assert (project / "text").read_text() == BOTH + "and more\n"
    assert (project / "clash").read_text() == TEN.replace("5", "five")


def test_quitting_the_question_does_nothing(yolofs: Program) -> None:
    before = yolofs("status", "--json").json["changes"]
    with Terminal(yolofs.project, ["commit"]) as terminal:
        terminal.wait_for("[q]uit?")
        terminal.type("q\n")
        assert terminal.wait() == 1
    assert yolofs("status", "--json").json["changes"] == before


@pytest.mark.parametrize(
    ("words", "answers", "question"),
    [
        (["text", "--theirs"], "", "take base's version at 1 path? [y/N]"),
        (["text", "alone", "--theirs"], "", "apply 1 change: 1 modified; take base's version at 1 path? [y/N]"),
        (["text", "--merge"], "", "apply 1 change: 1 modified; what does not merge stays staged? [y/N]"),
        (["alone", "clash", "text"], "st", "apply 1 change: 1 modified; take base's version at 1 path? [y/N]"),
        (["text"], "s", "nothing committed"),
    ],
)
def test_the_last_question_of_a_commit_names_only_what_will_be_done(
    yolofs: Program, words: list[str], answers: str, question: str
) -> None:
    with Terminal(yolofs.project, ["commit", *words]) as terminal:
        for count, answer in enumerate(answers, 1):
            terminal.wait_for("[q]uit?", count)
            terminal.type(answer + "\n")
        terminal.wait_for(question)
        terminal.type("n\n")
        assert terminal.wait() == 1


def state_of(top: Path) -> dict[str, tuple[object, ...]]:
    """Return all that must not change: kind, mode, times and content, by path."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (top, *top.rglob("*")):
        st = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path)] = (st.st_mode, st.st_ino, st.st_mtime_ns, content)
    return found


def test_a_dry_run_tells_what_would_merge_and_changes_nothing(yolofs: Program) -> None:
    project = yolofs.project
    before, journal = state_of(project), state_of(yolofs.session)
    del journal[str(yolofs.session)]  # git works in a directory in it, so its time may move
    done = yolofs("commit", "--dry-run", "--merge", code=9)
    assert state_of(project) == before
    assert {path: state for path, state in state_of(yolofs.session).items() if path in journal} == journal
    for name in MERGE:
        shown = "moved-here" if name == "moved" else name
        assert f"{shown}: it merges: what both sides changed would be applied\n" in done.err, name
        assert f"{project}/{shown}" in done.out, name
    for name in MARKED:
        assert f"{name}: both sides changed the same lines, and it would get marks there\n" in done.err
        assert f"{project}/{name}" not in done.out
    assert f"{len(MARKED) + len(REFUSED)} paths would stay staged, as base has changed there, too" in done.err

    done = yolofs("commit", "--dry-run", "--merge", "--theirs")
    assert "clash: base's version would be taken\n" in done.err
    assert f"{project}/text" in done.out
    done = yolofs("commit", "--dry-run", "--theirs")
    assert "text: base's version would be taken\n" in done.err
    assert done.out.splitlines() == [
        f"replace {project}/alone by what is staged (26 B)",
        "at last set the times of 1 directory",
    ]
    assert f"{project}/clash" in yolofs("commit", "--dry-run", "--ours").out
    assert state_of(project) == before


@pytest.mark.parametrize(
    "words", [("--ours", "--theirs"), ("--merge", "--script"), ("--theirs", "--script"), ("--continue", "--merge")]
)
def test_options_that_contradict_each_other_are_refused(yolofs: Program, words: tuple[str, ...]) -> None:
    yolofs.refused("commit", "--yes", *words, code=2)


@pytest.fixture
def without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert shutil.which("git") is None


@pytest.mark.usefixtures("without_git")
def test_without_git_our_own_code_merges(yolofs: Program) -> None:
    yolofs("commit", "--yes", "--merge", "text")
    assert (yolofs.project / "text").read_text() == BOTH


def saved_by_rename(view: CoreDriver, name: bytes, content: bytes) -> None:
    view.create(name + b".new", content, 0o644)
    view.rename(name + b".new", name)


@pytest.mark.parametrize("change", ["saved", "deleted", "made", "inside", "inside-chmod", "moved-over"])
@pytest.mark.some(3)
def test_a_change_of_the_host_is_seen_whatever_the_view_does_later(tmp_path: Path, change: str) -> None:
    project = tmp_path / "project"
    (project / "d/deep").mkdir(parents=True)
    for name in ("f", "other", "d/deep/x"):
        (project / name).write_text("before\n")
    yolofs = Program(project)
    yolofs.start_session()
    view = CoreDriver(os.fsencode(project))
    match change:
        case "saved":
            saved_by_rename(view, b"f", b"view\n")
        case "deleted":
            view.unlink(b"f")
        case "made":
            view.create(b"new", b"view\n", 0o644)
        case "moved-over":
            view.rename(b"other", b"f")
        case _:
            view.unlink(b"d/deep/x")
            view.rmdir(b"d/deep")
            view.rmdir(b"d")
    view.close()
    target = project / {"made": "new", "inside": "d/deep/x", "inside-chmod": "d/deep/x"}.get(change, "f")
    if change == "inside-chmod":
        target.chmod(0o600)
    else:
        with target.open("a") as file:
            file.write("host\n")
    view = CoreDriver(os.fsencode(project))
    view.create(b"something else", b"", 0o644)
    if change == "saved":
        saved_by_rename(view, b"f", b"view again\n")
    view.close()
    told = yolofs("status", "--json").json["drift"]
    assert [Path(item["path"]).name for item in told] == ["d" if change.startswith("inside") else target.name]
    content = target.read_text()
    assert "base has changed at 1 path" in yolofs("commit", "--yes", code=9).err
    assert target.read_text() == content
    yolofs("commit", "--yes", "something else")
    assert "base has changed at 1 path" in yolofs("commit", "--yes", code=9).err
    yolofs("commit", "--yes", "--ours")
    assert "no changes" in yolofs("status").out


def test_names_that_moved_away_and_back_in_the_view_are_no_drift(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "d").mkdir(parents=True)
    for name in ("f", "g", "d/x"):
        (project / name).write_text("before\n")
    yolofs = Program(project)
    yolofs.start_session()
    view = CoreDriver(os.fsencode(project))
    view.rename(b"f", b"elsewhere")
    view.rename(b"elsewhere", b"f")
    view.rename(b"d", b"e")
    view.rename(b"e", b"d")
    view.close()
    for name in ("f", "g", "d/x"):
        with (project / name).open("a") as file:
            file.write("host\n")
    view = CoreDriver(os.fsencode(project))
    for gone in (b"f", b"g", b"d/x"):
        view.unlink(gone)
    view.rmdir(b"d")
    view.close()
    assert yolofs("status", "--json").json["drift"] == []
    yolofs("commit", "--yes")
    assert os.listdir(project) == [".yolofs"] or sorted(os.listdir(project)) == [".yolofs", ".yolofs.toml"]


@pytest.mark.parametrize("case", ["directory", "moved-file", "moved-directory"])
def test_status_shows_all_that_a_commit_would_stumble_over(tmp_path: Path, case: str) -> None:
    project = tmp_path / "project"
    (project / "d").mkdir(parents=True)
    (project / "f").write_text("f\n")
    (project / "d/x").write_text("x\n")
    yolofs = Program(project)
    yolofs.start_session()
    view = CoreDriver(os.fsencode(project))
    if case == "directory":
        view.mkdir(b"new", 0o755)
        view.create(b"new/file", b"view\n", 0o644)
    elif case == "moved-file":
        view.rename(b"f", b"g")
    else:
        view.rename(b"d", b"e")
    view.close()
    if case == "directory":
        (project / "new").mkdir()
        (project / "new/host").write_text("host\n")
    elif case == "moved-file":
        (project / "f").unlink()
    else:
        (project / "d").rename(project / "elsewhere")
    name = {"directory": "new", "moved-file": "g", "moved-directory": "e"}[case]
    assert left(yolofs("status", "--json").json, "drift") == {name}
    assert f"!  {name}" in yolofs("status").out
    assert "base has changed at 1 path" in yolofs("commit", "--yes", code=9).err


def test_a_file_with_marks_of_a_merge_is_not_counted_as_ready_to_be_committed(yolofs: Program) -> None:
    said = yolofs("commit", "--yes", "--merge", "clash", "text", code=9).err
    where = yolofs.project / "clash"
    assert (
        f"  1 with the marks of a merge: take them out, then: yolofs commit {where}; or yolofs commit --ours {where}\n"
    ) in said
    ready = len(yolofs("status", "--json").json["changes"]) - 1
    assert f"\n  {ready} in the project: yolofs commit\n" in said
    alone = yolofs("commit", "--yes", "--merge", "clash", code=9).err
    assert "  1 with the marks of a merge: " in alone


def answered(yolofs: Program, name: str) -> str:
    """Return what is shown of one conflict before the user skips it."""
    with Terminal(yolofs.project, ["commit", name]) as terminal:
        terminal.wait_for("[q]uit?")
        terminal.type("d\n")
        terminal.wait_for("[q]uit?", 2)
        text = terminal.text
        terminal.type("q\n")
        terminal.wait()
    assert "cannot be expressed by git" not in text
    assert "git does not know" not in text
    return text


def test_a_conflict_of_metadata_alone_is_told_in_words(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name in ("mode", "kind"):
        (project / name).write_text("text\n")
        (project / name).chmod(0o644)
    view = CoreDriver(os.fsencode(project))
    view.chmod(b"mode", 0o600)
    view.append(b"kind", b"more\n")
    view.unlink(b"kind")
    view.mkdir(b"kind", 0o755)
    view.close()
    (project / "mode").chmod(0o640)
    (project / "kind").write_text("the host's\n")
    program = Program(project)
    assert "mode: what base has and what is staged differ: mode 640 -> 600" in answered(program, "mode")
    assert "kind: what base has and what is staged differ: file -> directory" in answered(program, "kind")
