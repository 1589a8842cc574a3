"""``yolofs rule explain``, with and without a mount: it says what the gate then does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.program import Program, can_append, can_read
from yolofs.errors import JournalError


@pytest.mark.mount
def test_explain_tells_the_rule_and_where_it_is_written(ruled: Program) -> None:
    ruled("rule", "deny", "vendor")
    assert ruled("rule", "explain", "vendor/x").out == (
        f"{ruled.project}/vendor/x: deny\n"
        "by the rule vendor = deny, .yolofs/rules.toml:5\n"
        f"which holds for {ruled.project}/vendor and below\n"
        "in place of read-only, .yolofs.toml:2\n"
        "\n"
        "read, write, create, delete, rename, link, metadata, execute, list: refused (EACCES)\n"
    )
    assert ruled("rule", "explain", "a.txt", "--op", "write").out == (
        f"{ruled.project}/a.txt: allow\n"
        "by the rule . = allow, built-in: The project\n"
        f"which holds for {ruled.project} and below\n"
        "\n"
        "write: allowed\n"
    )
    assert ruled("rule", "explain", "x.pem", "--json").json["state"] == "deny"
    assert ruled("rule", "explain", "node_modules/x.pem", "--json").json["state"] == "allow"
    document = ruled("rule", "explain", "~/x", "--json").json
    assert (document["state"], document["operations"]["read"], document["operations"]["list"]) == (
        "ask",
        "asks",
        "allowed",
    )
    assert document["rule"]["source"] == "built-in: Home directories"


@pytest.mark.parametrize("path", [".yolofs", ".yolofs/journal"])
def test_the_sessions_own_is_explained_as_always_hidden(yolofs: Program, path: str) -> None:
    (yolofs.project / ".yolofs.toml").write_text('[rules]\n".yolofs/journal" = "allow"\n')
    shown = yolofs("rule", "explain", path).out
    is_link = path == ".yolofs"
    assert f"{yolofs.project / path if is_link else yolofs.session / 'journal'}: hidden" in shown
    own = ".yolofs" if is_link else yolofs.session.parents[1]
    assert f"{own} = hidden, the session's own: no rule can show it" in shown
    found = yolofs("rule", "explain", path, "--json").json
    assert (found["state"], found["operations"]["read"]) == ("hidden", "absent")


@pytest.mark.mount
def test_explain_follows_links_as_the_view_has_them(yolofs: Program) -> None:
    project = yolofs.project
    for name in ("closed", "free"):
        (project / name).mkdir()
        (project / name / "f").touch()
    (project / "moved").symlink_to("free")
    (project / "gone").symlink_to("closed")
    yolofs("rule", "deny", "closed")
    with yolofs.mounted() as view:
        (view / "new").symlink_to("closed")
        (view / "deep").mkdir()
        (view / "deep/up").symlink_to("../new")
        (view / "moved").unlink()
        (view / "moved").symlink_to(project / "closed")
        (view / "gone").unlink()
        (view / "gone").mkdir()
        (view / "gone/f").touch()
        for path in ("new/f", "deep/up/f", "moved/f", "gone/f", "free/f", "deep/up/../free/f"):
            if path == "moved/f":
                expected = False  # absolute: for a program whose whole machine is the view
            else:
                expected = os.access(view / path, os.R_OK) and can_read(view / path)
            found = yolofs("rule", "explain", "--op", "read", path, "--json").json
            assert (found["operations"]["read"] == "allowed") is expected, path
        assert found["path"] == str(project / "free/f")
        assert yolofs("rule", "explain", view / "new/f", "--json").json["path"] == str(project / "closed/f")


def test_explain_of_a_link_is_about_the_link_or_where_it_leads(yolofs: Program) -> None:
    project = yolofs.project
    (project / "closed").mkdir()
    (project / "closed/f").touch()
    (project / "first").symlink_to("second")
    (project / "second").symlink_to("closed/f")
    yolofs("rule", "deny", "closed")
    shown = yolofs("rule", "explain", "first").out
    assert f"it is a symbolic link: an access through it is judged at {project}/closed/f" in shown
    found = yolofs("rule", "explain", "first", "--json").json
    assert (found["path"], found["link"]) == (str(project / "first"), str(project / "closed/f"))
    assert found["operations"].keys() == {"create", "delete", "rename", "link", "metadata"}
    for operation in ("read", "write", "execute"):
        found = yolofs("rule", "explain", "--op", operation, "first", "--json").json
        assert (found["path"], found["link"]) == (str(project / "closed/f"), None)
        assert found["operations"] == {operation: "refused"}
    (project / "way").symlink_to("closed")
    assert yolofs("rule", "explain", "way/", "--json").json["path"] == str(project / "closed")


@pytest.mark.mount
def test_explain_goes_by_the_type_that_the_view_has(yolofs: Program) -> None:
    project = yolofs.project
    (project / "made").mkdir()
    (project / "gone").write_text("a file of base")
    yolofs("rule", "deny", "made/key")
    yolofs("rule", "deny", "gone/key")
    with yolofs.mounted() as view:
        (view / "gone").unlink()
        (view / "gone").mkdir()
        (view / "gone/key").parent.stat()
        for name, other in (("made", "elsewhere"), ("gone", "away")):
            with pytest.raises(PermissionError):
                (view / name).rename(view / other)
            assert yolofs("rule", "explain", name, "--json").json["operations"]["rename"] == "refused"
        yolofs("rule", "unset", "made/key")
        (view / "made").rmdir()
        (view / "made").write_text("a file of the view")
        yolofs("rule", "deny", "made/key")
        (view / "made").rename(view / "moved")
        (view / "moved").rename(view / "made")
        assert yolofs("rule", "explain", "made", "--json").json["operations"]["rename"] == "allowed"


@pytest.mark.mount
def test_explain_tells_that_reads_are_judged_by_names_that_were_looked_at(yolofs: Program) -> None:
    project = yolofs.project
    (project / "closed").mkdir()
    (project / "closed/f").write_text("content")
    os.link(project / "closed/f", project / "open")
    yolofs("rule", "deny", "closed/f")
    with yolofs.mounted() as view:
        assert (view / "open").read_text() == "content"
        (view / "closed/f").stat()
        with pytest.raises(PermissionError):
            (view / "open").read_text()
        assert "once it was looked at, reads of the file are judged by it" in yolofs("rule", "explain", "open").out


@pytest.mark.mount
def test_explain_tells_of_other_names_as_they_count(yolofs: Program) -> None:
    project = yolofs.project
    for name in ("ro", "free"):
        (project / name).mkdir()
    (project / "ro/f").touch()
    (project / "free/alone").touch()
    os.link(project / "ro/f", project / "free/ro")
    (project / ".yolofs.toml").write_text('[rules]\n"ro" = "read-only"\n')
    with yolofs.mounted() as view:
        for path in ("free/ro", "free/alone"):
            operations = yolofs("rule", "explain", path, "--json").json["operations"]
            may_write = os.access(view / path, os.W_OK) and can_append(view / path)
            assert (operations["write"] == "allowed") is may_write
        assert "its other name" in yolofs("rule", "explain", "free/ro").out
        os.link(view / "free/alone", view / "free/new")
        yolofs("rule", "read-only", "free/alone")
        assert not can_append(view / "free/new")
        found = yolofs("rule", "explain", "free/new", "--json").json
        assert found["operations"]["write"] == "refused"
        assert [other["path"] for other in found["other_names"]] == [str(project / "free/alone")]


@pytest.mark.mount
@pytest.mark.parametrize("root", [".", "/"])
def test_explain_judges_reading_by_the_names_that_are_staged(yolofs: Program, root: str) -> None:
    """Those the view knows in any case; base's other names it knows once they were looked at."""
    (yolofs.project / "base").touch()
    with yolofs.mounted("--root", root) as mountpoint:
        view = mountpoint / yolofs.project.relative_to(os.path.join(yolofs.project, root))
        (view / "a1").write_text("hi")
        os.link(view / "a1", view / "b1")
        os.link(view / "base", view / "more")
        yolofs("rule", "deny", "b1")
        yolofs("rule", "deny", "more")
        for name, other in (("a1", "b1"), ("base", "more")):
            assert not can_read(view / name)
            found = yolofs("rule", "explain", name, "--json").json
            assert (found["state"], found["operations"]["read"]) == ("allow", "refused")
            assert [(one["path"], one["staged"]) for one in found["other_names"]] == [
                (str(yolofs.project / other), True)
            ]
            text = yolofs("rule", "explain", name).out
            assert "read, write, link, metadata, execute: refused (EACCES)" in text
            assert "reads and changes of the file are judged by it, too" in text


@pytest.mark.mount
def test_explain_finds_the_names_that_a_staged_file_got_from_its_other_name(yolofs: Program) -> None:
    (yolofs.project / "one").write_text("1")
    os.link(yolofs.project / "one", yolofs.project / "two")
    with yolofs.mounted() as view:
        (view / "one").write_text("changed")
        os.link(view / "one", view / "new")
        yolofs("rule", "read-only", "new")
        assert not can_append(view / "two")
        assert yolofs("rule", "explain", "two", "--json").json["operations"]["write"] == "refused"


@pytest.mark.mount
def test_explain_judges_names_that_were_not_found_where_base_has_the_file(yolofs: Program, tmp_path: Path) -> None:
    (yolofs.project / ".yolofs.toml").write_text("ask_timeout = 0\n")
    (yolofs.project / "h").mkdir()
    (yolofs.project / "h/hl").touch()
    os.link(yolofs.project / "h/hl", tmp_path / "far")
    yolofs("rule", "allow", "h/hl")
    with yolofs.mounted() as view:
        (view / "h/hl").rename(view / "h/hlr")
        yolofs("rule", "unset", "h/hl")
        yolofs("rule", "allow", "h/hlr")
        assert not can_append(view / "h/hlr")
        assert yolofs("rule", "explain", "h/hlr", "--json").json["operations"]["write"] == "asks"
        yolofs("rule", "allow", "h/hl")
        assert can_append(view / "h/hlr")
        assert yolofs("rule", "explain", "h/hlr", "--json").json["operations"]["write"] == "allowed"


@pytest.mark.mount
def test_explain_of_what_lies_outside_base_does_not_read_the_journal(yolofs: Program, tmp_path: Path) -> None:
    with yolofs.mounted() as view:
        for name in ("x", "y"):
            (view / name).touch()
    journal = yolofs.session / "journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"broken\n", *lines[1:]]))
    assert yolofs("rule", "explain", tmp_path / "outside", "--json").json["operations"]["list"] == "allowed"
    yolofs.refused("rule", "explain", "x", code=JournalError.exit_code)
