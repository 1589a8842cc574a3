"""The running program calls what ``docs/design/walks.md`` names, in the order of that page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asking import asked_project, reader, wait_for_asks
from tests.support.core_in_python import core_in_python
from tests.support.program import DEADLINE_S, Program, connected
from tests.support.walks import ROOT, Step, walks
from yolofs.fuse.transport_choice import TRANSPORT_VARIABLE

pytestmark = [
    pytest.mark.mount,
    core_in_python,
]


class Calls:
    """What processes have called so far."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begin = 0

    def forget(self) -> None:
        """Look from here on only."""
        self._begin = self._file.stat().st_size

    def check(self, steps: list[Step]) -> None:
        """Fail unless all steps are called, one after the other; threads of the daemon may need a
        moment for that.
        """
        wanted = [" ".join(step) for step in steps]
        deadline = time.monotonic() + DEADLINE_S
        while (count := self._count(wanted)) < len(wanted):
            assert time.monotonic() < deadline, f"step {count + 1}, {wanted[count]}, does not follow:\n{self._text}"
            time.sleep(0.01)

    @property
    def _text(self) -> str:
        return self._file.read_bytes()[self._begin :].decode()

    def _count(self, wanted: list[str]) -> int:
        """Return how many steps have been called in this order."""
        count = 0
        for call in self._text.splitlines():
            if count < len(wanted) and call == wanted[count]:
                count += 1
        return count


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("walks")


@pytest.fixture(scope="module")
def calls(directory: Path, traces: object) -> Iterator[Calls]:
    del traces  # sets XDG_RUNTIME_DIR
    file = directory / "calls"
    file.touch()
    names = {" ".join(step) for steps in walks().values() for step in steps}
    file.with_name("calls.names").write_text("\n".join(sorted(names)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YOLOFS_CALLS", str(file))
        patch.setenv(TRANSPORT_VARIABLE, "direct")  # which the page is about
        patch.setenv("PYTHONPATH", str(ROOT / "tests/call_tracer"))
        yield Calls(file)


@pytest.fixture(scope="module")
def yolofs(calls: Calls, directory: Path) -> Program:
    del calls  # which has to be there before the first process starts
    return Program(asked_project(directory).project, starts_cold=True)


@pytest.fixture(scope="module")
def view(yolofs: Program) -> Iterator[Path]:
    """One mount for all walks: its processes start cold, and tell each call."""
    with yolofs.mounted() as mountpoint:
        yolofs.wait_for_watcher()
        yield mountpoint


def test_a_write_takes_the_way_that_the_page_describes(view: Path, calls: Calls) -> None:
    calls.forget()
    with (view / "free").open("a") as file:
        file.write("more\n")
    calls.check(walks()["A write"])


def test_an_ask_takes_the_way_that_the_page_describes(yolofs: Program, view: Path, calls: Calls) -> None:
    calls.forget()
    with connected(yolofs) as client, reader(view / "secret/a") as waiting:
        wait_for_asks(client, 1)
        yolofs("answer", "1", "allow")
        assert waiting.end() == ("a\n", "")
    calls.check(walks()["An ask"])


def test_a_commit_takes_the_way_that_the_page_describes(yolofs: Program, view: Path, calls: Calls) -> None:
    (view / "free").write_text("changed\n")
    calls.forget()
    yolofs("commit", "--yes")
    calls.check(walks()["A commit"])


def test_an_undo_takes_the_way_that_the_page_describes(yolofs: Program, view: Path, calls: Calls) -> None:
    (view / "free").write_text("changed again\n")
    yolofs("commit", "--yes")
    calls.forget()
    yolofs("undo", "--yes")
    calls.check(walks()["An undo"])
