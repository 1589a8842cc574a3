"""``yolofs gc``, and what goes by itself: commits, generations and content that nothing shows."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.core_driver import CoreDriver
from tests.support.looks import looks
from tests.support.program import Program, wait_until
from yolofs.system.disk_usage import size_of, size_text
from yolofs.system.work_directories import work_directory

pytestmark = pytest.mark.mount


def test_commits_beyond_the_number_to_keep_are_removed(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text("[keep_commits]\ncount = 2\n")
    yolofs.trust()
    for number in range(4):
        with yolofs.mounted() as view:
            (view / "a.txt").write_text(f"{number}\n")
        yolofs("commit", "--yes")
    assert [one["commit"] for one in yolofs("commits", "--json").json["commits"]] == [3, 4]
    assert sorted(path.name for path in (yolofs.session / "commits").iterdir() if path.is_dir()) == ["3", "4"]
    would = yolofs("gc", "--dry-run", "--json").json
    assert would.pop("freed_bytes") <= 3 * 4096  # of commits that went under a mount: what the store had for them
    nothing = {"commits": [], "generations": 0, "freed_when_closed_bytes": 0, "killed_commands": 0, "dry_run": True}
    assert would == nothing | {"waiting": [], "once_agreed": []}
    (yolofs.project / ".yolofs.toml").write_text("[keep_commits]\ncount = 1\n")
    yolofs.trust()
    with yolofs.mounted():
        would = yolofs("gc", "--dry-run", "--json").json
        assert would["commits"] == [3]
        assert yolofs("gc", "--json").json["commits"] == [3]
    yolofs("undo", "--yes")
    assert (yolofs.project / "a.txt").read_text() == "2\n"
    assert "commit 3 is no longer kept" in yolofs.refused("undo", "3", "--yes", code=1)


def test_the_users_own_file_says_how_many_commits_are_kept_and_a_dry_run_what_waits(
    yolofs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    own = tmp_path / "config/yolofs/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[keep_commits]\ncount = 3\n")
    for number in range(4):
        with yolofs.mounted() as view:
            (view / "a.txt").write_text(f"{number}\n")
        yolofs("commit", "--yes")
    commits = yolofs("commits", "--json").json["commits"]
    assert [one["commit"] for one in commits] == [2, 3, 4]
    assert commits[0]["counts"] == {"A": 0, "M": 1, "D": 0, "R": 0, "T": 0, "X": 0}
    (yolofs.project / ".yolofs.toml").write_text("[keep_commits]\ncount = 1\n")
    done = yolofs("gc", "--dry-run")
    assert "once you have agreed to what waits, also: commits 2, 3" in done.err
    assert yolofs("gc", "--dry-run", "--json").json["once_agreed"] == [2, 3]
    own.write_text("[keep_commits\n")
    assert "config.toml" in yolofs.refused("gc", code=3)
    (yolofs.project / ".yolofs.toml").write_text("[keep_commits\n")
    own.unlink()
    assert yolofs.refused("gc", "--dry-run", code=3).count(".yolofs.toml") == 1
    assert [one["commit"] for one in yolofs("commits", "--json").json["commits"]] == [2, 3, 4]


def test_files_that_no_state_shows_are_freed_at_once_under_a_mount(yolofs: Program) -> None:
    files = yolofs.session / "files"

    def staged() -> int:
        return sum(path.is_file() for path in files.rglob("*"))

    with yolofs.mounted() as view:
        for number in range(5):
            (view / f"new {number}").write_text("new\n")
        with (view / "held open").open("w+") as file:
            file.write("held\n")
            file.flush()
            yolofs("abort", "--yes")
            assert staged() == 1
            file.seek(0)
            assert file.read() == "held\n"
        (view / "after").write_text("after\n")
        assert (view / "after").read_text() == "after\n"
        yolofs("commit", "--yes")
    assert (yolofs.project / "after").read_text() == "after\n"


@pytest.mark.parametrize("is_mounted", [True, False])
def test_dead_generations_go_on_request(yolofs: Program, is_mounted: bool) -> None:
    with yolofs.mounted() as view:
        for name in ("kept", "dead"):
            (view / name).write_text(name)
            yolofs("snapshot", name)
        yolofs("travel", "kept")
        (view / "after").write_text("after")
        yolofs("snapshot", "after")
        (view / "open").write_text("open")
        seen = looks(view)
        if is_mounted:
            assert yolofs("gc", "--generations", "--json").json["generations"] == 2
            assert looks(view) == seen
    if not is_mounted:
        assert yolofs("gc", "--generations", "--dry-run", "--json").json["generations"] == 2
        assert yolofs("gc", "--generations", "--json").json["generations"] == 2
    stored = [path.read_text() for path in (yolofs.session / "files").rglob("*") if path.is_file()]
    assert sorted(stored) == ["after", "kept", "open"]
    assert [one["name"] for one in yolofs("timeline", "--json").json["generations"]][:3] == ["", "kept", "after"]
    assert yolofs("gc", "--generations", "--json").json["generations"] == 0
    with yolofs.mounted() as view:
        assert looks(view) == seen
        yolofs("travel", "kept")
        assert not (view / "after").exists()


@pytest.mark.parametrize("is_json", [True, False])
def test_what_is_freed_when_a_program_closes_its_file_is_told_apart(yolofs: Program, is_json: bool) -> None:
    with yolofs.mounted() as view:
        for name, size in (("dead", 200_000), ("open", 300_000)):
            (view / name).write_bytes(os.urandom(size))
        yolofs("snapshot", "dead")
        yolofs("travel", "0")
        yolofs("travel", "1")
        with (view / "open").open("rb") as file:
            yolofs("travel", "0")
            would = yolofs("gc", "--generations", "--dry-run", "--json").json
            held = os.fstat(file.fileno()).st_blocks * 512
            freed = would["freed_bytes"] - held
            assert freed > 200_000
            before = du(yolofs.session)
            if is_json:
                done = yolofs("gc", "--generations", "--json").json
                assert (done["freed_bytes"], done["freed_when_closed_bytes"]) == (freed, held)
            else:
                said = f"0 commits and 4 generations removed, {size_text(freed)} freed;"
                said += f" {size_text(held)} more once programs have closed what they have open of it\n"
                assert yolofs("gc", "--generations").err == said
            assert du(yolofs.session) == before - freed
            assert len(file.read()) == 300_000
        wait_until(lambda: du(yolofs.session) == before - freed - held, "what was closed is freed")
        assert yolofs("gc", "--generations").err == "0 commits and 0 generations removed, 0 B freed\n"


def test_gc_says_that_keep_commits_waits(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        for number in range(2):
            (view / "a.txt").write_text(f"{number}\n")
            yolofs("commit", "--yes")
    nothing = yolofs("gc", "--json")
    assert nothing.json["waiting"] == []
    assert nothing.err == ""
    settings = yolofs.project / ".yolofs.toml"
    settings.write_text('scratch = ["/"]\n[keep_commits]\ncount = 1\n')
    for words in (("gc",), ("gc", "--dry-run")):
        told = yolofs(*words)
        assert (
            "1 line of .yolofs.toml about keep_commits is not in force until you agree to it: yolofs trust" in told.err
        )
        (waiting,) = yolofs(*words, "--json").json["waiting"]
        assert (waiting["key"], waiting["line"]) == (["keep_commits", "count"], 3)
    assert yolofs("gc", "--json").json["commits"] == []
    yolofs.trust()
    agreed = yolofs("gc", "--json")
    assert (agreed.json["commits"], agreed.json["waiting"]) == ([1], [])
    settings.write_text("[keep_commits\n")
    assert yolofs.refused("gc", code=3).count("not TOML") == 1


def test_status_tells_how_much_the_session_takes(yolofs: Program) -> None:
    for number in range(5):
        with yolofs.mounted() as view:
            (view / "a.txt").write_text(f"{number}\n" * 1000)
        yolofs("commit", "--yes")
    with yolofs.mounted() as view:
        (view / "staged").write_bytes(os.urandom(50_000))
    taken = sum(path.lstat().st_blocks * 512 for path in yolofs.session.rglob("*") if path.is_file())
    told = yolofs("status", "--json").json["size_bytes"]
    assert 0.9 * taken <= told <= 1.2 * taken + 200_000  # directories count, too
    for journal in yolofs.session.glob("commits/*/journal"):
        st = journal.stat()
        assert st.st_blocks * 512 <= st.st_size + 8192, journal


def test_undo_tells_a_commit_that_is_no_longer_kept_from_one_that_never_was(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text("[keep_commits]\ncount = 1\n")
    yolofs.trust()
    for number in range(2):
        with yolofs.mounted() as view:
            (view / "a.txt").write_text(f"{number}\n")
        yolofs("commit", "--yes")
    assert "commit 1 is no longer kept" in yolofs.refused("undo", "1", "--yes", code=1)
    assert "there is no commit 99" in yolofs.refused("undo", "99", "--yes", code=1)


def du(session: Path) -> int:
    done = subprocess.run(["du", "-s", "--block-size=1", session], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[0])


def test_a_dry_run_of_gc_tells_what_gc_frees_and_status_what_du_says(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        for number in range(4):
            (view / "a.txt").write_bytes(os.urandom(200_000))
            (view / f"new{number}").write_text("new\n")
            yolofs("commit", "--yes")
        (view / "staged").write_bytes(os.urandom(300_000))
        yolofs("snapshot", "one")
        (view / "staged").write_bytes(os.urandom(500_000))
        yolofs("travel", "1")
        (view / "later").write_text("later\n")
        before = du(yolofs.session)
        assert yolofs("status", "--json").json["size_bytes"] == before
        keep = yolofs.project.parent / "config/yolofs"
        keep.mkdir(parents=True)
        (keep / "config.toml").write_text("[keep_commits]\ncount = 2\n")
        for words, gone in ((("gc",), [1, 2]), (("gc", "--generations"), [])):
            would = yolofs(*words, "--dry-run", "--json", XDG_CONFIG_HOME=str(keep.parent)).json
            assert would["commits"] == gone
            assert du(yolofs.session) == before
            done = yolofs(*words, "--json", XDG_CONFIG_HOME=str(keep.parent)).json
            after = du(yolofs.session)
            assert would["freed_bytes"] == done["freed_bytes"] == before - after > 0
            assert yolofs("status", "--json").json["size_bytes"] == after
            before = after
        staged = (view / "staged").stat().st_blocks * 512
        yolofs("abort", "--yes")
        assert du(yolofs.session) <= before - staged  # at once, and under the mount


def test_status_commits_and_gc_count_the_same_as_what_base_had_before(yolofs: Program) -> None:
    """What is staged, journals and plans lie in the session, too, and count towards no limit."""
    sizes = (300_000, 700_000, 500_000, 200_000)
    for size in sizes:
        with yolofs.mounted() as view:
            (view / "a.txt").write_bytes(os.urandom(size))
        yolofs("commit", "--yes")
    kept = [one["kept_bytes"] for one in yolofs("commits", "--json").json["commits"]]
    assert [round(size, -5) for size in kept] == [0, *sizes[:-1]]
    status = yolofs("status", "--json").json
    assert status["kept_bytes"] == sum(kept)
    assert status["size_bytes"] > sum(kept)
    assert f", {size_text(sum(kept))} of it for what base had before commits" in yolofs("status").out
    for most, gone in ((sum(kept[2:]), [1, 2]), (sum(kept[2:]) - 1, [1, 2, 3]), (sum(kept[1:]), [1])):
        (yolofs.project / ".yolofs.toml").write_text(f"[keep_commits]\ngib = {most / 2**30!r}\n")
        yolofs.trust()
        assert yolofs("gc", "--dry-run", "--json").json["commits"] == gone
    assert sum(one["kept_bytes"] for one in yolofs("commits", "--json").json["commits"]) == sum(kept)


KILLER = "kill -9 $PPID; :"
"""An editor that ends the command that has started it."""


def killed_at_its_editor(yolofs: Program) -> Path:
    """Have a command killed while the user edits; return what it has left in the session."""
    hunk = yolofs("hunks", "--json").json["hunks"][0]["id"]
    yolofs("hunks", "--edit", hunk, code=-signal.SIGKILL, EDITOR=KILLER)
    (left,) = yolofs.session.glob("edit-*")
    assert (left / "hunk.diff").exists()
    return left


def test_gc_counts_and_removes_directories_of_killed_commands(yolofs: Program) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("new\n")
        left = killed_at_its_editor(yolofs)
        before = du(yolofs.session)
        assert yolofs("status", "--json").json["size_bytes"] == before
        with work_directory(bytes(yolofs.session), "review") as mine:
            would = yolofs("gc", "--dry-run", "--json").json
            assert (would["killed_commands"], left.exists()) == (1, True)
            said = yolofs("gc", "--dry-run").err
            assert "0 commits and what 1 killed command had left would be removed, " in said
            done = yolofs("gc", "--json").json
            assert (done["killed_commands"], left.exists()) == (1, False)
            assert done["freed_bytes"] == would["freed_bytes"] > 0
            assert os.path.isdir(mine)
        assert du(yolofs.session) == before - done["freed_bytes"]
        assert yolofs("gc", "--json").json["killed_commands"] == 0


@pytest.mark.parametrize("word", ["commit", "undo"])
def test_a_commit_and_an_undo_take_what_a_killed_command_has_left(yolofs: Program, word: str) -> None:
    with yolofs.mounted() as view:
        (view / "a.txt").write_text("new\n")
        if word == "undo":
            yolofs("commit", "--yes")
            (view / "a.txt").write_text("newer\n")
        left = killed_at_its_editor(yolofs)
        yolofs(word, "--yes")
        assert not left.exists()


def test_a_dry_run_tells_what_the_removal_then_frees_to_the_byte(yolofs: Program) -> None:
    """Also where directories of the store become empty."""
    view = CoreDriver(bytes(yolofs.project))
    view.create(b"live", b"live\n", 0o644)
    live = view.snapshot()
    for number in range(600):
        view.create(b"dead%d" % number, b"dead\n", 0o644)
    view.snapshot()
    view.travel(live)
    view.snapshot()
    view.close()
    foretold = yolofs("gc", "--generations", "--dry-run", "--json").json["freed_bytes"]
    before = size_of(bytes(yolofs.session))
    assert yolofs("gc", "--generations", "--json").json["freed_bytes"] == foretold
    assert before - size_of(bytes(yolofs.session)) == foretold
