"""``yolofs rule test``: what was accessed, tried on the rules as they are now."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.program import Program, can_read, replace_text, wait_until
from tests.support.watching import alone


@pytest.mark.mount
def test_what_was_asked_is_tried_on_the_rules_as_they_are_now(yolofs: Program, tmp_path: Path) -> None:
    assert yolofs("rule", "test").err == (
        "note: not every access that a rule allowed is known: they are noted only while the view"
        " is mounted, and only up to a number\n"
        "nothing was recorded in this session\n"
    )
    rules = '[rules]\ndocs = "ask"\nsecret = "deny"\n'
    (yolofs.project / ".yolofs.toml").write_text(f"ask_timeout = 0.1\n{rules}")
    for name in ("docs/1", "docs/2", "docs/3", "secret"):
        (yolofs.project / name).parent.mkdir(exist_ok=True)
        (yolofs.project / name).write_text(name)
    with yolofs.mounted() as view:
        assert not can_read(view / "docs/1")
        replace_text(yolofs.project / ".yolofs.toml", f'{rules}other = "deny"\n')
        wait_until(lambda: "other" in yolofs("rule", "list").out, "there is time to answer")
        with alone(yolofs, "--allow-all"):
            for name in ("docs/1", "docs/2", "docs/3"):
                assert can_read(view / name)
            assert not can_read(view / "secret")
        out = yolofs("rule", "test").out
        assert out.count(f"read {yolofs.project}/docs/1") == 1  # however often, and whatever the answers were
        assert "\nthese rules would have spared most questions:\n" in out
        assert f"  yolofs rule write-ask {yolofs.project}/docs\n" in out
        document = yolofs("rule", "test", "--json").json
        (suggestion,) = document["suggestions"]
        assert (suggestion["key"], suggestion["state"], suggestion["paths"]) == (
            f"{yolofs.project}/docs",
            "write-ask",
            3,
        )
        assert (document["allowed"], document["refused"], document["asked_then"]) == (0, 1, 0)
        assert (document["free"], document["complete"]) == (0, True)
        assert document["asked"] == suggestion["asks"] == 4
        yolofs("rule", "write-ask", "docs")
    after = yolofs("rule", "test", "--json").json
    assert (after["allowed"], after["asked"], after["refused"], after["suggestions"]) == (document["asked"], 0, 1, [])


@pytest.mark.mount
def test_what_rules_allowed_is_tried_on_the_rules_as_they_are_now(yolofs: Program) -> None:
    def replayed() -> tuple[int, ...]:
        document = yolofs("rule", "test", "--json").json
        return tuple(document[key] for key in ("accesses", "free", "allowed", "asked", "refused"))

    (yolofs.project / ".yolofs.toml").write_text('[rules]\n"." = "allow"\n')
    with yolofs.mounted() as view:
        for _ in range(3):
            (view / "a.txt").read_text()
            os.listdir(view / "dir")
        (view / "dir/b.txt").rename(view / "dir/c.txt")
        (view / "new").write_text("new")
        assert replayed() == (5, 5, 5, 0, 0)
        yolofs("rule", "deny", "a.txt")
        yolofs("rule", "write-ask", "dir")
        assert replayed() == (5, 5, 2, 2, 1)
        assert "5 accesses were recorded, 5 of which rules allowed" in yolofs("rule", "test").out
    document = yolofs("rule", "test", "--json").json
    assert (document["accesses"], document["complete"]) == (3, False)


@pytest.mark.mount
def test_what_a_commit_left_staged_is_tried_on_the_rules_as_they_are_now(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text('[rules]\n"." = "allow"\n')
    with yolofs.mounted() as view:
        (view / "made").mkdir()
        (view / "made/new").write_text("new")
        (view / "a.txt").write_text("written")
        (view / "dir/b.txt").unlink()
        (view / "go").write_text("gone")
    yolofs("commit", "--yes", "go")
    document = yolofs("rule", "test", "--json").json
    assert [document[key] for key in ("accesses", "allowed", "refused")] == [4, 4, 0], document
    yolofs("rule", "deny", "made")
    document = yolofs("rule", "test", "--json").json
    assert [document[key] for key in ("allowed", "refused")] == [2, 2], document


@pytest.mark.mount
def test_a_suggested_rule_can_be_copied_into_a_shell_whatever_the_directory_is_called(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text('ask_timeout = 60.0\n[rules]\n"q" = "ask"\n')
    directory = yolofs.project / "q" / "it's 2 *\nlines"
    directory.mkdir(parents=True)
    with yolofs.mounted() as view:
        for number in range(3):
            (directory / f"{number}").write_text("x")
            with subprocess.Popen(["cat", view / "q" / directory.name / f"{number}"], stdout=subprocess.DEVNULL):
                wait_until(lambda: yolofs("asks", "--json").json["asks"], "an ask")
                yolofs("answer", str(number + 1), "allow")
        out = yolofs("rule", "test").out
        (line,) = [line.strip() for line in out.splitlines() if line.startswith("  yolofs rule ")]
        words = subprocess.run(
            ["bash", "-c", line.replace("yolofs", "printf '%s\\0'", 1)], stdout=subprocess.PIPE, check=True
        ).stdout.split(b"\0")[:-1]
        yolofs(*words)
        assert yolofs("rule", "test", "--json").json["asked"] == 0
        assert yolofs("rule", "explain", directory, "--json").json["state"] == "write-ask"
