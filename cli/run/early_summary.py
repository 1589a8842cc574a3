"""What the summary of a run needs, read while the command still goes on.

Importing what compares, and replaying the state before the run, takes longer than many a command.
The process that waits for the command has nothing else to do, so it begins as soon as anything has
changed.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from yolofs.errors import YolofsError
from yolofs.sandbox.jobs import start_without_signals

if TYPE_CHECKING:  # what a run needs to start does not need these
    from yolofs.paths import Generation
    from yolofs.session.session import Session
    from yolofs.state.tree import Tree

_FIRST_LOOK_S = 0.05
_MOST_S = 1.0
"""Between two looks at the journal, which get rarer."""
_GROWTH = 1.5
_MOST_RECORDS = 200_000
"""With more of them the state is not kept while the command runs: its tree takes up to 1 KiB for
each.
"""

_NEEDED = (
    "yolofs.cli.run.summary",
    "yolofs.hostcode.code_files",
    "yolofs.hostcode.commands",
    "yolofs.hostcode.mark_finder",
    "yolofs.cli.show.git_summary",
    "yolofs.cli.show.state_texts",
)
"""What a summary of changes imports: the last ones by itself only where it needs them."""


class EarlySummary:
    """A session, and its state before a run, read early if something changes while the run goes
    on.
    """

    def __init__(self, project: bytes, directory: bytes, generation: Generation) -> None:
        """``directory`` is the session's."""
        self.directory = directory
        self.generation = generation
        """The one before the run."""
        self._project = project
        self._journal = os.path.join(directory, b"journal")
        self._size = -1
        self._ended = threading.Event()
        self._session: Session | None = None
        self._tree: Tree | None = None
        self._thread = threading.Thread(target=self._work, name="early", daemon=True)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Read while the block runs."""
        with contextlib.suppress(OSError):  # a commit is replacing it
            self._size = os.stat(self._journal).st_size
        with contextlib.suppress(RuntimeError):  # the system's limit on threads
            start_without_signals(self._thread)
        try:
            yield
        finally:
            self._ended.set()

    def take(self) -> tuple[Session | None, Tree | None]:
        """Return the session with all that it has by now, and the state before the run, as far as
        they were read.

        To be called after :meth:`reading`.
        """
        if self._thread.ident is not None:
            self._thread.join()
        session, self._session = self._session, None
        if session is None:
            return None, None
        try:
            if session.refresh():
                return session, self._tree
        except (YolofsError, OSError):  # which whoever opens it anew will say
            pass
        session.close()
        return None, None

    def _work(self) -> None:
        wait_s = _FIRST_LOOK_S
        while not self._ended.wait(wait_s):
            with contextlib.suppress(OSError):  # a commit is replacing it
                if os.stat(self._journal).st_size != self._size:
                    self._read()
                    return
            wait_s = min(wait_s * _GROWTH, _MOST_S)

    def _read(self) -> None:
        for name in _NEEDED:
            importlib.import_module(name)
        from yolofs.session.session import Session, SessionAccess

        try:
            session = Session.open(self._project, SessionAccess.READ)
        except (YolofsError, OSError):  # whoever needs it will say
            return
        try:
            if session.journal.record_count <= _MOST_RECORDS:
                self._tree = session.state(self.generation)
        except (YolofsError, OSError):
            session.close()
            return
        self._session = session
