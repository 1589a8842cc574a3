"""What is measured side by side: each column shows a base directory in its own way.

A *staging* column leaves the directory that it shows as it is.  The others work on a copy of their
own.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.cleaning import GRACE_S, end_process, mount_taken_away, mounts_below, unmount
from benchmarks.processor_time import Servers
from yolofs.daemon.rpc.client import Client
from yolofs.fuse.trace import TRACE_VARIABLE

_FOUND_S = 60.0
"""How long a run is waited for that has directories straight from the disk."""


class UnsupportedError(Exception):
    """A column cannot do what a workload is about; the message says why."""


class View:
    """A base directory as one column shows it.  Programs work below :attr:`root`."""

    def __init__(self, root: Path, servers: Servers | None = None) -> None:
        self.root = root
        self.servers = servers
        """What serves it in user space, if anything does."""

    def mount_anew(self) -> None:
        """Unmount and mount again, with what is staged; do nothing where there is no mount."""

    def snapshot(self) -> None:
        """Keep the present state, as the column does that.

        Raises:
            UnsupportedError: it does not, or not any more.
        """
        raise UnsupportedError("has no snapshots")

    def commit(self) -> float:
        """Apply what is staged to the base directory; return how many seconds that took.

        Raises:
            UnsupportedError: nothing is staged here.
        """
        raise UnsupportedError("stages nothing")

    def abort(self) -> float:
        """Drop what is staged; return how many seconds that took.

        Raises:
            UnsupportedError: nothing is staged here.
        """
        raise UnsupportedError("stages nothing")

    @contextlib.contextmanager
    def runner(self, project: Path, *, is_settled: bool = True) -> Iterator[Callable[[Sequence[str]], str]]:
        """Give what runs a command in a project, with the view as its whole world, and returns its
        output.  What serves that is among :attr:`servers` meanwhile.

        What such a view does once for a user, it has done by then, unless not ``is_settled``.

        Raises:
            UnsupportedError: nothing is run here.
        """
        raise UnsupportedError("runs nothing")
        yield


class Column(ABC):
    """One way to show a directory."""

    name: str
    is_staging = True
    takes_copy = False
    """Whether it shows a copy of the base in any case, beside which nothing else is."""
    is_yardstick = False
    """Whether it says what is possible, and is no peer: workloads that take long do without."""

    def why_missing(self) -> str:
        """Return why this machine does not have it, or an empty string."""
        return ""

    @abstractmethod
    def view(self, base: Path, scratch: Path) -> contextlib.AbstractContextManager[View]:
        """Show ``base`` for the time of the block.  ``scratch`` is an empty directory for what that
        takes.
        """


class Plain(Column):
    """The directory itself."""

    name = "plain"
    is_staging = False

    @contextlib.contextmanager
    def view(self, base: Path, scratch: Path) -> Iterator[View]:
        yield _PlainView(base)


class _PlainView(View):
    @contextlib.contextmanager
    def runner(self, project: Path, *, is_settled: bool = True) -> Iterator[Callable[[Sequence[str]], str]]:
        yield lambda words: subprocess.run(words, cwd=project, check=True, capture_output=True, text=True).stdout


# ---- OverlayFS, in the kernel and in user space


class _LayeredView(View):
    """Layers, the newest of which is written to.  A snapshot freezes it and mounts again with
    another on top.
    """

    def __init__(
        self, root: Path, base: Path, scratch: Path, mount: Callable[[str, Path], None], servers: Servers | None = None
    ) -> None:
        super().__init__(root, servers)
        self._base = base
        self._scratch = scratch
        self._mount = mount
        self._layers: list[str] = []
        root.mkdir()
        (scratch / "base").symlink_to(base)  # short, as all names have to fit into one page
        self._add_layer()

    def _add_layer(self) -> None:
        self._layers.append(f"u{len(self._layers)}")
        (self._scratch / self._layers[-1]).mkdir()
        (self._scratch / f"w{len(self._layers) - 1}").mkdir()
        try:
            self._show()
        except OSError:
            self._layers.pop()
            raise

    def _show(self) -> None:
        *older, upper = self._layers
        lower = ":".join([*reversed(older), "base"])
        self._mount(f"lowerdir={lower},upperdir={upper},workdir=w{len(older)}", self.root)

    def mount_anew(self) -> None:
        self._take_away()
        self._show()

    def snapshot(self) -> None:
        self._take_away()
        try:
            self._add_layer()
        except OSError as error:
            raise UnsupportedError(f"fails with {len(self._layers)} layers: {error}") from error

    def commit(self) -> float:
        """Copy the layers into base, durably, as yolofs does.  Right where nothing was deleted: so
        it is measured.
        """
        self._take_away()
        start = time.perf_counter()
        for layer in self._layers:
            subprocess.run(["cp", "-a", f"{self._scratch / layer}/.", self._base], check=True)
        subprocess.run(["sync", "-f", self._base], check=True)
        took = time.perf_counter() - start
        for marker in list(self._base.rglob(".wh.*")):  # fuse-overlayfs' own marks of new directories
            marker.unlink()
        return took

    def abort(self) -> float:
        self._take_away()
        start = time.perf_counter()
        for layer in self._layers:
            shutil.rmtree(self._scratch / layer)
        return time.perf_counter() - start

    def _take_away(self) -> None:
        if self.servers is not None:
            self.servers.ends()
        unmount(self.root)


class KernelOverlay(Column):
    """OverlayFS of the kernel."""

    name = "overlayfs"
    is_yardstick = True

    def why_missing(self) -> str:
        return "" if os.geteuid() == 0 else "mounting it needs root"

    @contextlib.contextmanager
    def view(self, base: Path, scratch: Path) -> Iterator[View]:
        def mount(options: str, at: Path) -> None:
            done = subprocess.run(
                ["mount", "-i", "-t", "overlay", "-o", options, "overlay", at],
                cwd=scratch,
                check=False,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise OSError(done.stderr.strip())

        with mount_taken_away(scratch / "mnt"):
            yield _LayeredView(scratch / "mnt", base, scratch, mount)


class FuseOverlay(Column):
    """fuse-overlayfs, in C."""

    name = "fuse-overlayfs"

    def why_missing(self) -> str:
        return "" if shutil.which("fuse-overlayfs") else "it is not installed: scripts/setup-bench.sh"

    @contextlib.contextmanager
    def view(self, base: Path, scratch: Path) -> Iterator[View]:
        def mount(options: str, at: Path) -> None:
            for process in processes:  # of the mount before a snapshot
                end_process(process)
            command = ["fuse-overlayfs", "-f", "-o", options, str(at)]
            processes[:] = [subprocess.Popen(command, cwd=scratch, start_new_session=True, stderr=subprocess.PIPE)]
            _wait_for_mount(at, processes[0])
            servers.began(processes[0].pid)

        servers = Servers()
        processes: list[subprocess.Popen[bytes]] = []
        try:
            with mount_taken_away(scratch / "mnt"):
                yield _LayeredView(scratch / "mnt", base, scratch, mount, servers)
        finally:
            for process in processes:
                end_process(process)


def _wait_for_mount(mountpoint: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + GRACE_S
    while mountpoint not in mounts_below(mountpoint):
        if process.poll() is not None:
            said = process.stderr.read() if process.stderr else b""
            raise OSError(said.decode(errors="replace").strip() or f"exit status {process.returncode}")
        if time.monotonic() > deadline:
            process.kill()
            raise OSError(f"no mount within {GRACE_S} s")
        time.sleep(0.005)  # between two looks: the kernel tells nobody here that something is mounted


# ---- yolofs


class _YolofsView(View):
    """The real daemon, asked through its socket and through the real command."""

    def __init__(self, base: Path, python: Path, trace: Path | None) -> None:
        self._project = base.parent
        self._python = python
        self._trace = trace
        self._daemon = Servers()
        super().__init__(self._mount() / base.name, self._daemon)
        self._client = self._connect()

    def mount_anew(self) -> None:
        self._client.close()
        self._daemon.ends()
        run_yolofs(self._python, self._project, "unmount", "--force")
        self._mount()
        self._client = self._connect()

    def _mount(self) -> Path:
        words = ("mount", "--root", str(self._project))
        return Path(run_yolofs(self._python, self._project, *words, **_traced(self._trace)).rstrip("\n"))

    def _connect(self) -> Client:
        client = Client.connect(os.fsencode(self._project / ".yolofs"))
        if client is None:
            raise RuntimeError("the daemon does not answer")
        self._daemon.began(client.info().pid)  # asked at once: a client that says nothing is hung up on
        return client

    def close(self) -> None:
        """Hang up on the daemon."""
        self._client.close()

    def snapshot(self) -> None:
        self._client.snapshot(b"", if_changed=False)

    def commit(self) -> float:
        return self._timed("commit", "--yes")

    def abort(self) -> float:
        return self._timed("abort", "--yes")

    @contextlib.contextmanager
    def runner(self, project: Path, *, is_settled: bool = True) -> Iterator[Callable[[Sequence[str]], str]]:
        """Run as users do: by the installed program, in the project, with the built-in rules and a
        summary.

        With ``is_settled`` this waits until runs have the system's directories straight from the
        disk: to find these takes a user's very first mount some seconds, and is kept.
        """
        installed = self._python.with_name("yolofs")
        if not installed.exists():
            raise UnsupportedError(f"{installed} is missing: make ready")
        program: list[str | Path] = [installed, "run", "--"]

        def run(words: Sequence[str]) -> str:
            return _output([*program, *words], {}, project)

        if not (project / ".yolofs").exists():
            run_yolofs(self._python, project, "init")
        run_yolofs(self._python, project, "mount", **_traced(_beside(self._trace)))
        try:
            if is_settled:
                _wait_for_the_disk(run)
            with self._daemon.beside(daemon_of(project)):
                yield run
        finally:
            run_yolofs(self._python, project, "unmount", "--force")

    def _timed(self, *words: str) -> float:
        start = time.perf_counter()
        run_yolofs(self._python, self._project, *words)
        return time.perf_counter() - start


class Yolofs(Column):
    """yolofs, installed for ``python``; ``trace`` names the file for counts of requests.

    Its settings are the defaults, but for ``setting``, a line of TOML.
    The base directory lies in the project, as what people work on does: so it is watched.
    """

    takes_copy = True

    def __init__(
        self,
        trace: Path | None = None,
        *,
        name: str = "yolofs",
        python: Path = Path(sys.executable),
        setting: str = "",
    ) -> None:
        self.name = name
        self._setting = setting
        self.is_traced = trace is not None
        self._trace = trace
        self._python = python.absolute()

    def why_missing(self) -> str:
        return "" if self._python.exists() else f"{self._python} is missing: make build/compiled"

    @contextlib.contextmanager
    def view(self, base: Path, scratch: Path) -> Iterator[View]:
        project = base.parent
        (project / ".yolofs.toml").write_text(f'preset = "none"\n{self._setting}\n[rules]\n"/" = "allow"\n')
        run_yolofs(self._python, project, "init")
        _agree(self._python, project)
        try:
            with contextlib.closing(_YolofsView(base, self._python, self._trace)) as view:
                _wait_for_watch(project / ".yolofs/daemon.log")
                yield view
        finally:
            run_yolofs(self._python, project, "unmount", "--force")


def daemon_of(project: Path) -> int:
    """Return the process that serves a project."""
    client = Client.connect(os.fsencode(project / ".yolofs"))
    if client is None:
        raise RuntimeError("the daemon does not answer")
    with contextlib.closing(client):
        return client.info().pid


def _wait_for_the_disk(run: Callable[[Sequence[str]], str]) -> None:
    """Wait until runs have what is in /usr straight from the disk.

    Raises:
        RuntimeError: they never have: the figures would be those of other runs.
    """
    deadline = time.monotonic() + _FOUND_S
    while " /usr" not in run(["cat", "/proc/self/mountinfo"]):
        if time.monotonic() > deadline:
            raise RuntimeError(f"runs do not have /usr straight from the disk within {_FOUND_S:.0f} s")
        time.sleep(0.5)  # each look is a run, which takes time from the search


def _agree(python: Path, project: Path) -> None:
    """Agree to what the project's settings let through, as whoever has written them does."""
    waiting = json.loads(run_yolofs(python, project, "trust", "--json"))
    if waiting["waiting"]:
        run_yolofs(python, project, "trust", "--digest", waiting["digest"])


def _traced(trace: Path | None) -> dict[str, str]:
    return {TRACE_VARIABLE: str(trace)} if trace is not None else {}


def _beside(trace: Path | None) -> Path | None:
    """Return a new name beside a trace, for that of one more mount: each mount begins its file
    anew.
    """
    if trace is None:
        return None
    return trace.with_name(f"{trace.name}-{len(list(trace.parent.glob(trace.name + '-*'))) + 1}")


def _wait_for_watch(daemon_log: Path) -> None:
    deadline = time.monotonic() + GRACE_S
    while "the project is watched" not in daemon_log.read_text():
        if time.monotonic() > deadline:
            raise RuntimeError("the project is not watched")
        time.sleep(0.05)


def run_yolofs(python: Path, project: Path, *words: str, **variables: str) -> str:
    """Run the real command as it is installed for ``python``; return what it printed."""
    return _output([python, "-P", "-m", "yolofs.cli.main", "-C", project, *words], variables)


def _output(command: Sequence[str | Path], variables: Mapping[str, str], directory: Path | None = None) -> str:
    """Run a command and return its stdout.

    An interrupt waits for its end: a mount that comes late would be left over.
    """
    with subprocess.Popen(
        command,
        cwd=directory,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that a terminal's Ctrl-C does not reach it
        text=True,
    ) as process:
        try:
            out, said = process.communicate()
        except BaseException:
            process.communicate()
            raise
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {process.returncode}\n{said}")
    return out
