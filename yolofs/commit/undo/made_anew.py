"""Directories that an undo has made anew, as it could not bring them back whole: they are those
that earlier commits know by other inode numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from yolofs.commit.plan.plan import MakeDirectory
from yolofs.commit.undo.applied import Applied


class MadeAnew:
    """What stands for the directories that are gone."""

    def __init__(self, undos: Iterable[tuple[Applied, Mapping[int, int]]] = ()) -> None:
        """Take undos, and for each which store inode of its plan became a directory for which inode
        number.
        """
        self._by_inode: dict[int, list[tuple[int, Applied]]] = {}
        for undo, anew in undos:
            for index, step in enumerate(undo.plan.steps):
                came = undo.came(index) if isinstance(step, MakeDirectory) and step.ino in anew else None
                if isinstance(step, MakeDirectory) and came is not None:
                    self._by_inode.setdefault(anew[step.ino], []).append((came, undo))

    def stands_for(self, inode: int, path: bytes, st: os.stat_result) -> bool:
        """Tell whether what is at an absolute path was made for the directory that had an inode
        number, or for what stood for that.
        """
        todo, seen = [inode], {inode}
        while todo:
            for number, undo in self._by_inode.get(todo.pop(), ()):
                if number == st.st_ino and undo.is_older(path, st):
                    return True
                if number not in seen:
                    seen.add(number)
                    todo.append(number)
        return False
