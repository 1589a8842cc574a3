"""The shell script of a plan does to base what the commit does."""

from __future__ import annotations

import os
import subprocess

from hypothesis import example, given, note

from tests.property.test_commit_property import Operation, after, hard_links, programs
from tests.support.commit_model import scan
from yolofs.commit.plan.script import script


@given(programs, hard_links)
@example([("rename", b"b", b"it's\n"), ("write", b"-n", b"new")], [])
@example([("exchange", b"d/d", b"c"), ("chmod", b"b", 0o600), ("remove", b"d")], [(b"b", b"d", b"link")])
def test_the_script_does_what_the_commit_does(program: list[Operation], links: list[tuple[bytes, ...]]) -> None:
    with after(program, links) as (scribe, _):
        expected = scribe.expected()
        text = b"\n".join(script(scribe.plan(), scribe.store, place=scribe.base.root)) + b"\n"
        note(text.decode(errors="backslashreplace"))
        done = subprocess.run(["sh"], input=text, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        found = scan(scribe.base.root)
        kept = [path for path in found if path.startswith(b".yolofs-script-") and b"/" not in path]
        assert len(kept) == 1
        rest = {path: node for path, node in found.items() if not path.startswith(b".yolofs-script-")}
        assert rest.keys() == expected.keys()
        for path, node in expected.items():
            if path:  # the directory of what was replaced is in it
                links_of = frozenset(link for link in rest[path].links if link in expected)
                assert rest[path]._replace(links=links_of) == node, path
        assert os.path.isdir(os.path.join(scribe.base.root, kept[0], b"replaced"))
