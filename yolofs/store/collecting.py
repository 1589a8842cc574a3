"""Removing what nothing needs any more from a store: whole, or while a mount has it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container

from yolofs.paths import StoreIno
from yolofs.store.shards import list_shards, path_of_shard, remove_unfinished
from yolofs.store.store import Store

_MANY = 1000
"""Removing fewer store inodes is not worth threads."""
_REMOVERS = 4
"""If the disk is told at once what is free (the mount option discard), removing waits for it, 200
to 400 µs a file.  Four threads take a quarter of that.  Where it does not wait they cost 3 µs more
than one.
"""


def bytes_besides(store: Store, referenced: Container[int]) -> int:
    """Return how much of the disk those store inodes take that are not ``referenced``, with the
    shards that are empty without them.
    """
    blocks = 0
    for shard in store.shards:
        numbers = store.in_shard(shard)
        surplus = [store.own_path(ino) for ino in numbers if ino not in referenced]
        if len(surplus) == len(numbers):
            surplus.append(path_of_shard(store.directory, shard))
        for path in surplus:
            with contextlib.suppress(FileNotFoundError):  # a mount goes on removing what nothing shows
                blocks += os.lstat(path).st_blocks
    return blocks * 512


def bytes_still_there(store: Store, referenced: Container[int], *, below: int) -> int:
    """Return how much of the disk those store inodes take that are not ``referenced``, and whose
    numbers are ``below`` this one.
    """
    blocks = 0
    for ino in store.since(0):
        if ino < below and ino not in referenced:
            with contextlib.suppress(FileNotFoundError):  # somebody has closed it
                blocks += os.lstat(store.own_path(ino)).st_blocks
    return blocks * 512


def remove_unreferenced(store: Store, referenced: Container[int]) -> int:
    """Remove every store inode that is not ``referenced``, and empty shards; return how many inodes
    went.

    Danger: what is not in ``referenced`` is lost for good.  It has to hold all that any record of
    the journal names, dead segments included, and no number may be reserved and not yet recorded:
    call it at open.

    Raises:
        OSError: one cannot be removed; others may be gone.
    """
    shards = store.shards
    surplus = [[ino for ino in store.in_shard(shard) if ino not in referenced] for shard in shards]
    count = sum(map(len, surplus))

    def remove_all(inos: list[StoreIno]) -> None:
        for ino in inos:
            store.remove(ino)

    if count < _MANY:
        for inos in surplus:
            remove_all(inos)
    else:
        from concurrent.futures import ThreadPoolExecutor  # takes long, and hardly an open removes anything

        with ThreadPoolExecutor(_REMOVERS) as pool:
            for _ in pool.map(remove_all, surplus):
                pass
    for shard in shards:
        store.drop_if_empty(shard)
    remove_unfinished(store.directory)
    store.owners.forget_others(referenced)
    return count


def remove_others(store: Store, kept: Container[int], *, below: int) -> int:
    """Remove every store inode that is not ``kept`` and whose number is ``below`` this one; return
    how many went.

    Any thread may call this while others make store inodes: these have higher numbers.  Shards
    stay.

    Danger: as :func:`remove_unreferenced`.

    Raises:
        OSError: one cannot be removed; others may be gone.
    """
    count = 0
    for shard in list(list_shards(store.directory)):
        for ino in store.in_shard(shard):
            if ino < below and ino not in kept:
                store.remove(ino)
                count += 1
    return count
