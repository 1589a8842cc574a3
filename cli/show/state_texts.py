"""The small files of a state, as what tells of a ``.git`` reads them."""

from __future__ import annotations

import errno
from functools import cached_property

from yolofs.cli.show.git_new_objects import read_side
from yolofs.paths import RelPath
from yolofs.session.session import Session
from yolofs.session.state_files import StateFiles
from yolofs.state.tree import Tree
from yolofs.store.interfaces import StoreFiles


class StateTexts:
    """Reads small files of a state; replays the journal for that once, and only if something is
    read.
    """

    def __init__(self, session: Session, tree: Tree | None, store: StoreFiles) -> None:
        self.base = session.base
        self.store = store
        self._session = session
        self._tree = tree

    def __call__(self, path: RelPath) -> bytes | None:
        """Return the content of a file, None if there is none: as a ref may be called anything in
        git's packed ones, its path may be one that no file can have.

        Raises:
            OSError: base cannot be read.
        """
        if 0 in path:
            return None
        try:
            file = self._files.look(path)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            return None
        return read_side(file.side, self.store) if file is not None else None

    @cached_property
    def _files(self) -> StateFiles:
        return StateFiles(self, self._tree if self._tree is not None else self._session.state())
