"""``yolofs commit --exclude``: what fits a pattern stays staged."""

from __future__ import annotations

import pytest

from tests.support.program import Program

pytestmark = pytest.mark.mount


@pytest.fixture
def staged(yolofs: Program) -> Program:
    """A project with new files in directories, a deleted directory and a renamed one."""
    for name in ("gone/a", "gone/b.log", "old/x.log"):
        (yolofs.project / name).parent.mkdir(exist_ok=True)
        (yolofs.project / name).write_text("x\n")
    with yolofs.mounted() as view:
        for name in ("src/a.c", "src/a.log", "b.log", "build/o/x", "build/y"):
            (view / name).parent.mkdir(parents=True, exist_ok=True)
            (view / name).write_text("x\n")
        for name in ("gone/a", "gone/b.log"):
            (view / name).unlink()
        (view / "gone").rmdir()
        (view / "old").rename(view / "new")
    return yolofs


def taken(staged: Program, *words: str, cwd: str = ".") -> set[str]:
    """Return what a commit would make, move or take away, as its dry run says it."""
    lines = staged("commit", "--dry-run", "--unfold", *words, cwd=staged.project / cwd).out.splitlines()
    prefix = f"{staged.project}/"
    return {word.removeprefix(prefix) for line in lines for word in line.split() if word.startswith(prefix)}


def test_a_pattern_excludes_the_paths_that_fit_it_with_all_below(staged: Program) -> None:
    everything = {
        "src",
        "src/a.c",
        "src/a.log",
        "b.log",
        "build",
        "build/o",
        "build/o/x",
        "build/y",
        "gone",
        "old",
        "new",
    }
    inner = {"build/o", "build/o/x", "build/y"}
    build = {"build", *inner}
    assert taken(staged) >= everything
    assert taken(staged, "--exclude", "build") & everything == everything - build
    assert taken(staged, "--exclude", "bui?d/*", "--exclude", "old") & everything == everything - inner - {"old", "new"}
    assert taken(staged, "--exclude", "*.log") & everything == everything - {"b.log"}
    assert taken(staged, "--exclude", "*.log", cwd="old") & everything == everything  # nothing of it is called so
    assert taken(staged, "--exclude", "../b.log", cwd="old") & everything == everything - {"b.log"}
    # A directory that goes would take along the excluded files; one that moves takes along all of
    # base in it.
    logs = {"b.log", "src/a.log", "gone"}
    assert taken(staged, "--exclude", "**/*.log") & everything == everything - logs
    assert taken(staged, "src", "b.log", "--exclude", "**/*.log") == {"src", "src/a.c"}


def test_a_commit_says_what_exclude_left_out_and_that_stays_staged(staged: Program) -> None:
    done = staged("commit", "--yes", "--exclude", "**/*.log", "--exclude", "typo", "--exclude", "build")
    assert "note: --exclude typo fits nothing that is staged" in done.err
    assert "left out by --exclude" in done.err
    assert f"{staged.project}/gone/b.log would go with it" in done.err
    assert (staged.project / "src/a.c").exists()
    assert not (staged.project / "src/a.log").exists()
    assert not (staged.project / "build").exists()
    assert sorted(path.name for path in (staged.project / "gone").iterdir()) == ["a", "b.log"]
    assert (staged.project / "new/x.log").exists()
    document = staged("commit", "--yes", "--json", "--exclude", "src").json
    assert [one["path"] for one in document["excluded"]] == [f"{staged.project}/src/a.log"]
    assert staged("status", "--json").json["counts"]["A"] == 1


def test_exclude_refuses_an_empty_pattern_and_contradicting_options(staged: Program) -> None:
    assert "an empty pattern excludes nothing" in staged.refused("commit", "--yes", "--exclude", "", code=2)
    assert "go with no other option" in staged.refused("commit", "--continue", "--exclude", "x", code=2)
