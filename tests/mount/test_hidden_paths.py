"""The method ``hidden`` of the control socket, and who may call it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program, connected
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.hidden_messages import MOST_PATHS
from yolofs.errors import UsageError

pytestmark = pytest.mark.mount

RULES = '[rules]\n"secret" = "hidden"\n"secret/open" = "allow"\n"closed" = "deny"\n"**/*.key" = "hidden"\n'


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".yolofs.toml").write_text(RULES)
    program = Program(project)
    program.start_session()
    return program


@pytest.fixture
def client(yolofs: Program) -> Iterator[Client]:
    with yolofs.mounted(), connected(yolofs) as client:
        yield client


def test_the_mount_tells_which_paths_its_rules_hide(yolofs: Program, client: Client) -> None:
    names = [b"secret", b"secret/x", b"secret/open", b"closed", b"a.key", b"plain", b"no/\xff", b"no/\xff.key"]
    paths = [os.path.join(os.fsencode(yolofs.project), name) for name in names]
    hidden = {os.path.basename(path) for path in client.hidden(paths)}
    assert hidden == {b"x", b"a.key", b"\xff.key"}  # the way to what is allowed shows
    assert client.hidden([]) == set()


def test_a_rule_that_has_just_come_counts(yolofs: Program, client: Client) -> None:
    path = os.fsencode(yolofs.project / "plain")
    assert client.hidden([path]) == set()
    yolofs("rule", "hidden", "plain")
    assert client.hidden([path]) == {path}


def test_relative_paths_and_too_many_paths_are_refused(client: Client) -> None:
    with pytest.raises(UsageError, match="a path is not absolute"):
        client.hidden([b"plain"])
    with pytest.raises(UsageError, match="1001 paths are too many"):
        client.hidden([b"/%d" % number for number in range(MOST_PATHS + 1)])
    assert client.hidden([b"/%d" % number for number in range(MOST_PATHS)]) == set()
