"""daemon.json, the link and the log; the socket's address."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

from yolofs.daemon.rpc import daemon_files as files
from yolofs.daemon.rpc import endpoint


def test_the_published_daemon_file_reads_back_whatever_bytes_its_paths_have(tmp_path: Path) -> None:
    directory = os.fsencode(tmp_path)
    described = files.describe(1, 2, b"/run/\xff/control.sock", b"/run/\xff/mnt", b"/")
    files.publish(directory, described)
    files.publish(directory, described)
    found = files.read_daemon_file(directory)
    assert found is not None
    assert found == described
    assert files.socket_path(found) == b"/run/\xff/control.sock"
    assert os.readlink(directory + b"/mnt") == files.mountpoint_path(found) == b"/run/\xff/mnt"
    assert sorted(os.listdir(tmp_path)) == ["daemon.json", "mnt"]
    assert (tmp_path / "daemon.json").stat().st_mode & 0o777 == 0o600
    files.withdraw(directory)
    files.withdraw(directory)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff"])
def test_a_file_that_makes_no_sense_is_no_daemon(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "daemon.json").write_bytes(content)
    assert files.read_daemon_file(os.fsencode(tmp_path)) is None


def test_a_long_log_is_put_aside_at_start(tmp_path: Path) -> None:
    log = tmp_path / "daemon.log"
    log.write_bytes(b"x" * (1 << 20))
    os.close(files.open_log(os.fsencode(tmp_path)))
    assert not (tmp_path / "daemon.log.1").exists()
    log.write_bytes(b"x" * ((1 << 20) + 1))
    os.close(files.open_log(os.fsencode(tmp_path)))
    assert log.stat().st_size == 0
    assert (tmp_path / "daemon.log.1").stat().st_size == (1 << 20) + 1


@pytest.mark.parametrize("length", [10, 107, 108, 200])
def test_a_socket_at_a_path_of_any_length_takes_connections(tmp_path: Path, length: int) -> None:
    directory = os.fsencode(tmp_path)
    while len(directory) < length:
        directory += b"/" + b"d" * 50
        os.mkdir(directory)
    path = directory + b"/s"
    with endpoint.bind(path) as listener:
        assert os.stat(path).st_mode & 0o777 == 0o600
        listener.listen()
        with contextlib.closing(endpoint.connect(path, 5)) as client:
            assert client.gettimeout() == 5
            assert endpoint.peer(client) == (os.getpid(), os.getuid())


def test_a_dead_socket_is_replaced_and_nobody_answers_there(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "s")
    endpoint.bind(path).close()
    with pytest.raises(ConnectionRefusedError):
        endpoint.connect(path, 5)
    with endpoint.bind(path) as listener:
        assert listener.family is socket.AF_UNIX
