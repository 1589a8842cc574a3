"""Hunks over the control socket, for a client that is not ``yolofs``: listed, committed, dropped
and edited.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from tests.support.program import DEADLINE_S, Program, connected, with_few_files
from yolofs.daemon.rpc.client import Client
from yolofs.daemon.rpc.hunk_messages import CommitHunksParams, DropHunksParams, EditHunkParams, HunksParams
from yolofs.daemon.rpc.protocol import quote, unquote
from yolofs.errors import DaemonError, UsageError

pytestmark = pytest.mark.mount

TEXT = "".join(f"{number}\n" for number in range(1, 21))
FIRST = TEXT.replace("2\n", "two\n", 1)
LAST = TEXT.replace("19\n", "nineteen\n")
BOTH = FIRST.replace("19\n", "nineteen\n")


@pytest.fixture
def yolofs(tmp_path: Path) -> Program:
    program = with_few_files(tmp_path / "project")
    (program.project / "text").write_text(TEXT)
    return program


@pytest.fixture
def client(yolofs: Program) -> Iterator[Client]:
    with yolofs.mounted() as view:
        (view / "text").write_text(BOTH)
        with connected(yolofs) as client:
            yield client


def said(client: Client, method: str, params: msgspec.Struct) -> tuple[int, Any, str]:
    """Return the exit code, the document and the talk."""
    looked = client.carry_out(method, params)
    out = os.pread(looked.fd, looked.out_bytes, 0)
    err = os.pread(looked.fd, looked.err_bytes, looked.out_bytes).decode()
    return looked.code, json.loads(out) if out else None, err


def ids(client: Client) -> list[str]:
    code, document, _ = said(client, "hunks", HunksParams())
    assert code == 0
    return [hunk["id"] for hunk in document["hunks"]]


def test_hunks_are_the_same_as_the_command_lists(yolofs: Program, client: Client) -> None:
    code, document, err = said(client, "hunks", HunksParams(paths=(quote(bytes(yolofs.project / "text")),)))
    assert (code, err) == (0, "")
    assert document == yolofs("hunks", "--json", "--", "text").json
    assert [hunk["new_lines"] for hunk in document["hunks"]] == [["two\n"], ["nineteen\n"]]


def test_a_hunk_is_committed_and_the_rest_stays_staged(yolofs: Program, client: Client) -> None:
    first, last = ids(client)
    code, document, _ = said(client, "commit_hunks", CommitHunksParams((first,)))
    assert code == 0
    assert document["commit"] == 1
    assert (yolofs.project / "text").read_text() == FIRST
    assert len(ids(client)) == 1
    code, document, err = said(client, "commit_hunks", CommitHunksParams((last,)))
    assert (code, document) == (20, None)
    assert f"there is no hunk {last}" in err


def test_a_hunk_is_dropped_and_edited(yolofs: Program, client: Client) -> None:
    view = Path(os.fsdecode(os.path.realpath(yolofs.session / "mnt")))
    first, _ = ids(client)
    code, document, _ = said(client, "drop_hunks", DropHunksParams((first,)))
    assert code == 0
    assert [change["kind"] for change in document["changes"]] == ["M"]
    (last,) = ids(client)
    patch = b" 16\n 17\n 18\n-19\n+NINETEEN\n 20\n"
    code, _, err = said(client, "edit_hunk", EditHunkParams(last, quote(patch)))
    assert code == 0
    assert "edited" in err
    assert (view / "text").read_text() == LAST.replace("nineteen", "NINETEEN")
    assert (yolofs.project / "text").read_text() == TEXT


def test_host_code_has_to_be_named_here_too(yolofs: Program, client: Client) -> None:
    view = Path(os.fsdecode(os.path.realpath(yolofs.session / "mnt")))
    (view / ".envrc").write_text("export A=1\n")
    code, document, _ = said(client, "hunks", HunksParams(paths=(quote(bytes(yolofs.project / ".envrc")),)))
    (hunk,) = document["hunks"]
    assert hunk["marks"]
    code, _, err = said(client, "commit_hunks", CommitHunksParams((hunk["id"],)))
    assert code == 16
    assert not (yolofs.project / ".envrc").exists()
    paths = (quote(bytes(yolofs.project / ".envrc")),)
    code, _, err = said(client, "commit_hunks", CommitHunksParams((hunk["id"],), paths=paths))
    assert code == 0, err
    assert (yolofs.project / ".envrc").read_text() == "export A=1\n"


def test_words_that_are_options_are_refused(client: Client) -> None:
    for method, params in (
        ("hunks", HunksParams(range="--edit=0")),
        ("drop_hunks", DropHunksParams((), source="--help")),
        ("edit_hunk", EditHunkParams("--list", "")),
    ):
        with pytest.raises(UsageError, match="neither a generation nor a hunk"):
            client.carry_out(method, params)
    with pytest.raises(UsageError, match="not absolute"):
        client.carry_out("hunks", HunksParams(paths=("text",)))


def test_from_inside_a_sandbox_hunks_can_be_looked_at_and_nothing_else(yolofs: Program, client: Client) -> None:
    with Client(os.fsencode(yolofs.daemon["socket"]).replace(b"control.sock", b"agent.sock")) as agent:
        looked = agent.look([b"hunks", b"--json"], bytes(yolofs.project))
        assert looked.code == 0
        document = json.loads(os.pread(looked.fd, looked.out_bytes, 0))
        assert [hunk["new_lines"] for hunk in document["hunks"]] == [["two\n"], ["nineteen\n"]]
        first = document["hunks"][0]["id"]
        assert agent.look([b"hunks", b"--edit", first.encode()], bytes(yolofs.project)).code == 2
        for method, params in (
            ("hunks", HunksParams()),
            ("commit_hunks", CommitHunksParams((first,))),
            ("drop_hunks", DropHunksParams((first,))),
        ):
            with pytest.raises(DaemonError):
                agent.carry_out(method, params)
    assert (yolofs.project / "text").read_text() == TEXT


class _Plain:
    """A client that knows only the page about the socket: JSON, a line each, and a descriptor."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(DEADLINE_S)
        self._socket.connect(path)
        self._id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def __call__(self, method: str, **params: object) -> tuple[int, Any, str]:
        """Return the exit code, the document and the talk."""
        self._id += 1
        call = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self._socket.sendall(json.dumps(call).encode() + b"\n")
        line, fds = b"", list[int]()
        while not line.endswith(b"\n"):
            data, new, _, _ = socket.recv_fds(self._socket, 65536, 4)
            assert data, line
            line, fds = line + data, fds + new
        answer = json.loads(line)
        assert answer["id"] == self._id
        assert "error" not in answer, answer
        result = answer["result"]
        (fd,) = fds
        try:
            out = os.pread(fd, result["out_bytes"], 0)
            err = os.pread(fd, result["err_bytes"], result["out_bytes"]).decode()
        finally:
            os.close(fd)
        return result["code"], json.loads(out) if out else None, err


def test_owner_and_attributes_are_hunks_for_a_client_that_knows_only_the_page(yolofs: Program) -> None:
    (yolofs.project / ".yolofs.toml").write_text("[mount]\nxattrs = true\n")
    yolofs.trust()
    real = yolofs.project / "text"
    os.setxattr(real, "user.stays", b"1")
    with yolofs.mounted() as view, _Plain(unquote(yolofs.daemon["socket"]).decode()) as call:
        staged = view / "text"
        os.setxattr(staged, "user.comes", b"\x00\xff")
        os.removexattr(staged, "user.stays")
        if os.geteuid() == 0:
            os.chown(staged, 12345, 23456)
        staged.write_text(FIRST)
        _, document, _ = call("hunks")
        found = {hunk["kind"]: hunk["id"] for hunk in document["hunks"]}
        assert set(found) == {"text", "xattrs"} | ({"owner"} if os.geteuid() == 0 else set())
        code, _, err = call("commit_hunks", hunks=[found["xattrs"]])
        assert code == 0, err
        assert os.listxattr(real) == ["user.comes"]
        assert os.getxattr(real, "user.comes") == b"\x00\xff"
        assert real.read_text() == TEXT
        assert real.stat().st_uid == os.geteuid()
        if os.geteuid() == 0:
            code, _, err = call("drop_hunks", hunks=[found["owner"]])
            assert code == 0, err
            assert (staged.stat().st_uid, staged.stat().st_gid) == (0, real.stat().st_gid)
        assert staged.read_text() == FIRST
        code, document, err = call("commit_hunks", hunks=[found["xattrs"]])
        assert (code, document) == (20, None), err
        code, _, err = call("commit_hunks", hunks=[found["text"]])
        assert code == 0, err
        assert real.read_text() == FIRST
        assert os.listxattr(real) == ["user.comes"]
        assert call("hunks")[1]["hunks"] == []
