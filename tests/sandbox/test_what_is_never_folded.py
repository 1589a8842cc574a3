"""An agent that wants a change folded out of sight: what it writes in ``.git``, as bytecode, or
deletes.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.fault_points import points
from tests.support.program import Program
from tests.support.repositories import git

pytestmark = pytest.mark.mount


def told_of_git(program: Program) -> str:
    (line,) = (line for line in program("status").out.splitlines() if line.startswith("-  git: "))
    return line.removeprefix("-  git: ").partition("  (")[0]


def test_a_commit_replaced_by_git_replace_is_told(repository: Program) -> None:
    head = repository.project / ".git/refs/heads/main"
    replaced = head.read_text().strip()
    repository("run", "sh", "-c", "git replace HEAD $(git commit-tree -m other 'HEAD^{tree}')")
    assert told_of_git(repository) == f"refs/replace/{replaced} added"


@pytest.mark.parametrize("place", ["loose", "packed"])
def test_a_branch_whose_file_cannot_be_read_whole_has_moved(repository: Program, place: str) -> None:
    git(repository.project, "branch", "side")
    git(repository.project, "pack-refs", "--all")
    git(repository.project, "gc", "-q")
    ways = {
        "loose": "(git rev-parse main; head -c 5000 /dev/zero | tr '\\0' ' ') > .git/refs/heads/side",
        "packed": "(git rev-parse main | sed 's,$, refs/heads/side,'; yes '#' | head -c 5000000) >> .git/packed-refs",
    }
    told = {
        "loose": "1 commit on main, side moved",
        "packed": "1 commit on main, packed-refs",
    }
    script = f"git commit -q --allow-empty -m evil; {ways[place]}"
    repository("run", "sh", "-c", script)
    assert told_of_git(repository) == told[place]


PACKED = [
    ("git gc -q --prune=now", "2 commits on main"),
    ("git repack -q -a", "2 commits on main"),
    ("git repack -q -a -d; git pack-refs --all", "2 commits on main"),
    ("git gc -q --prune=now; git commit -q --allow-empty -m loose", "3 commits on main"),
    ("git gc -q; git reset -q --hard HEAD~3; git commit -q --allow-empty -m other; git gc -q", "main rewritten"),
    ("git commit -q --allow-empty --amend -m second; git gc -q --prune=now", "2 commits on main"),
    ("git update-ref refs/heads/main $(git commit-tree -m alone 'HEAD^{tree}'); git gc -q", "main rewritten"),
]
"""What the agent does in git, and what is told of it."""


@pytest.mark.parametrize(("script", "told"), points(PACKED, "packed by the agent", some=2))
def test_commits_that_the_agent_has_packed_are_counted(repository: Program, script: str, told: str) -> None:
    for name in ("one", "two"):  # what was there before is loose, and packed
        git(repository.project, "commit", "-q", "--allow-empty", "-m", f"{name} of the user")
        git(repository.project, "gc", "-q") if name == "one" else None
    commits = "git commit -q --allow-empty -m first; git commit -q --allow-empty -m second"
    repository("run", "sh", "-c", f"set -e; {commits}; {script}")
    assert told_of_git(repository).startswith(told)


def test_objects_that_were_packed_are_not_told_as_removed_and_others_are(repository: Program) -> None:
    repository("run", "sh", "-c", "git commit -q --allow-empty -m second; git gc -q")
    assert told_of_git(repository) == "1 commit on main, packed"
    script = """
        git update-ref -d HEAD; git reflog expire --expire=now --all; rm -f .git/index
        git commit -q --allow-empty -m empty; git gc -q --prune=now
    """
    repository("run", "sh", "-c", script)
    assert re.search(r"main rewritten, .*, \d+ object files removed", told_of_git(repository))


def test_packs_that_are_packed_anew_are_not_told_as_removed(repository: Program) -> None:
    git(repository.project, "gc", "-q")
    repository("run", "sh", "-c", "git commit -q --allow-empty -m second; git gc -q --prune=now")
    assert told_of_git(repository) == "1 commit on main, packed"


def test_a_pack_that_comes_without_all_that_the_one_before_had_does_not_hide_what_is_lost(repository: Program) -> None:
    git(repository.project, "gc", "-q")
    script = """set -e
        git rev-parse HEAD 'HEAD^{tree}' | git pack-objects -q .git/objects/pack/pack > named
        find .git/objects/pack -name 'pack-*' ! -name "pack-$(cat named)*" -delete
        rm named
    """
    repository("run", "sh", "-c", script)
    assert re.search(r"\d object files removed", told_of_git(repository))
    assert "packed" not in told_of_git(repository)


def test_a_pack_that_was_unpacked_is_not_told_as_removed_unless_objects_of_it_are_gone(repository: Program) -> None:
    git(repository.project, "gc", "-q")
    unpack = "mv .git/objects/pack/*.pack all; rm -f .git/objects/pack/*; git unpack-objects -q < all; rm -f all"
    repository("run", "sh", "-c", unpack)
    assert told_of_git(repository) == "unpacked"
    repository("run", "sh", "-c", "rm .git/objects/$(git rev-parse HEAD: | sed 's,..,&/,')")
    assert re.fullmatch(r"\d object files removed", told_of_git(repository))


def test_a_commit_that_was_unpacked_is_not_new(repository: Program) -> None:
    git(repository.project, "commit", "-q", "--allow-empty", "-m", "second of the user")
    git(repository.project, "gc", "-q")
    unpack = "mv .git/objects/pack/*.pack all; rm -f .git/objects/pack/*; git unpack-objects -q < all; rm -f all"
    repository("run", "sh", "-c", f"{unpack}; git reset -q --hard HEAD~1")
    assert told_of_git(repository).startswith("main moved, ")


def test_commits_that_were_fetched_in_a_pack_are_counted(repository: Program, elsewhere: Path) -> None:
    git(elsewhere, "clone", "-q", str(repository.project), "other")
    for number in range(3):
        git(
            elsewhere / "other",
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "--allow-empty",
            "-m",
            str(number),
        )
    repository("run", "git", "-c", "fetch.unpackLimit=1", "pull", "-q", "--ff-only", str(elsewhere / "other"), "main")
    assert list((Path(repository.daemon["mountpoint"]) / str(repository.project)[1:]).rglob("*.pack"))
    assert told_of_git(repository).startswith("3 commits on main")


def test_a_commit_with_another_content_than_its_name_says_is_not_counted(repository: Program) -> None:
    """It claims to stand on the branch as it was, and leads to another state."""
    script = """set -e
        good=$(git commit-tree -p HEAD -m good 'HEAD^{tree}')
        bad=$(git commit-tree -m bad 'HEAD^{tree}')
        chmod u+w .git/objects/*/*
        cp .git/objects/$(echo $good | sed 's,^..,&/,') .git/objects/$(echo $bad | sed 's,^..,&/,')
        echo $bad > .git/refs/heads/main
    """
    repository("run", "sh", "-c", script)
    assert told_of_git(repository).startswith("main moved")


def test_objects_that_were_written_over_and_borrowed_ones_are_told(repository: Program) -> None:
    script = """set -e
        o=.git/objects/$(git rev-parse HEAD:src/one.py | sed 's,^..,&/,')
        p=.git/objects/$(git rev-parse HEAD:src/two.py | sed 's,^..,&/,')
        chmod u+w $o; cat $p > $o
        echo /elsewhere > .git/objects/info/alternates
    """
    repository("run", "sh", "-c", script)
    assert told_of_git(repository) == "1 object file changed, objects/info/alternates"


def test_what_decides_about_later_folding_is_named_among_many_files(repository: Program) -> None:
    script = "for i in 1 2 3 4 5; do echo > .git/junk$i; done; echo '*' >> .git/info/exclude"
    repository("run", "sh", "-c", script)
    assert told_of_git(repository) == "info/exclude, 5 other files"


def test_bytecode_that_is_imported_without_a_source_has_its_line(repository: Program) -> None:
    (repository.project / ".gitignore").write_text("*.pyc\n")
    repository("run", "sh", "-c", "echo > src/json.pyc; mkdir src/__pycache__; echo > src/__pycache__/a.pyc")
    out = repository("status").out
    assert "\nA  src/json.pyc\n" in out
    assert "src/__pycache__/" in out


def test_a_cache_that_everybody_may_write_has_its_line(repository: Program) -> None:
    (repository.project / "src/__pycache__").mkdir(mode=0o755)
    repository("run", "chmod", "777", "src/__pycache__")
    assert "\nX  src/__pycache__/  (mode 755 -> 777)\n" in repository("status").out


@pytest.mark.parametrize("form", ["work tree", "bare"])
def test_a_deleted_repository_has_its_line_though_git_ignores_it(repository: Program, form: str) -> None:
    project = repository.project
    inner = project / "build/inner"
    inner.mkdir(parents=True)
    git(inner, "init", "-q", "-b", "main", *(["--bare"] if form == "bare" else []))
    repository("run", "rm", "-r", "build")
    count = sum(1 for _ in Path(project / "build").rglob("*"))
    out = repository("status").out
    assert f"\nD  build/  (and {count} in it)\n" in out
    assert "\n-  " not in out


def test_what_an_agent_makes_look_like_a_bare_repository_is_not_folded(repository: Program) -> None:
    (repository.project / "data/objects").mkdir(parents=True)
    (repository.project / "data/objects/one").write_text("1")
    script = "cd data; mkdir refs; echo 'ref: refs/heads/main' > HEAD; echo 2 > objects/one"
    repository("run", "sh", "-c", script)
    out = repository("status").out
    for line in ("A  data/HEAD", "M  data/objects/one", "A  data/refs/"):
        assert f"\n{line}" in out


def test_a_bare_repository_that_git_tracks_as_files_is_not_folded(repository: Program) -> None:
    """A fixture of tests, say: what was deleted of it has to be seen."""
    git(repository.project, "clone", "-q", "--bare", ".", "fixture.git")
    git(repository.project, "add", "fixture.git")
    repository("run", "sh", "-c", "cd fixture.git; rm packed-refs; echo > description")
    out = repository("status").out
    assert "\nD  fixture.git/packed-refs\n" in out
    assert "\nM  fixture.git/description\n" in out


def test_beside_what_a_bare_repository_has_other_files_have_their_lines(repository: Program) -> None:
    git(repository.project, "clone", "-q", "--bare", ".", "pub.git")
    (repository.project / "pub.git/notes").write_text("mine")
    hook = "echo '#!/bin/sh' > hooks/post-update; chmod 755 hooks/post-update"
    repository("run", "sh", "-c", f"cd pub.git; rm notes; echo '*' > info/exclude; {hook}")
    out = repository("status").out
    assert "\nD  pub.git/notes\n" in out
    assert "\nA  pub.git/hooks/post-update  [" in out
    assert "\n-  git in pub.git: info/exclude  (" in out
