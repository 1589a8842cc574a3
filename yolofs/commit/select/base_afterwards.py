"""What base will have after a commit of a tree, computed before the commit."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from yolofs.commit.plan.kept_objects import KeptAndStore, kept_of
from yolofs.commit.plan.survivors import Survivors
from yolofs.journal.records import NOTED_CTIME_NS, Fingerprint, owner_of
from yolofs.paths import ROOT, RelPath, join, split
from yolofs.state.tree import Entry, Staged, Tree
from yolofs.store import copying
from yolofs.store.base import Base
from yolofs.store.store import Store
from yolofs.system.rename_domains import RenameDomain, rename_domain


class ReturningFile(NamedTuple):
    """A file that comes back, of which base has a version at another name now."""

    place: RelPath
    """Where base has it afterwards."""
    path: bytes
    """Where it is kept, absolute."""
    st: os.stat_result


class BaseAfterwards:
    """Base as it will be after a commit of ``first``.  Changes nothing."""

    def __init__(
        self,
        first: Tree,
        base: Base,
        store: Store,
        kept: KeptAndStore,
        survivors: Survivors,
        homes: Mapping[RelPath, ReturningFile],
    ) -> None:
        """``kept``: the store, and the things that earlier commits keep; ``survivors``: the parts
        of base that ``first`` keeps; ``homes``: returning files, by the base path of their present
        version.
        """
        self._first = first
        self._base = base
        self._store = store
        self._kept = kept
        self._survivors = survivors
        self._domains: dict[RelPath, RenameDomain] = {}
        """Of directories of base that were asked for."""
        self._homes = {rel: home for rel, home in homes.items() if self._stays_on_its_device(home.place, home.path)}
        self._renamed = {home.place for home in self._homes.values()}

    def place_of(self, rel: RelPath) -> RelPath | None:
        """Return where base has afterwards what it has at a path now, None if it has it no more."""
        names: list[bytes] = []
        while True:
            holder = self._survivors.name_of.get(rel)
            if holder is not None or not rel:
                place = holder.path() if holder is not None else ROOT
                break
            rel, name = split(rel)
            names.append(name)
        for name in reversed(names):
            entry = self._first.find(place)
            if entry is not None and entry.children and name in entry.children:
                return None
            place = join(place, name)
        return place

    def _change_of(self, rel: RelPath) -> Staged | None:
        """Return what the first tree makes of a thing of base that stays: other metadata, or other
        content.
        """
        holder = self._survivors.name_of.get(rel)
        if holder is not None and holder.staged is not None:
            return holder.staged
        st = self._base.look(rel)
        if st is None or stat.S_ISDIR(st.st_mode) or st.st_nlink == 1:
            return None
        return self._version_of(st)

    def _version_of(self, st: os.stat_result) -> Staged | None:
        """Return what the first tree makes of a file of base in its place; None for what an earlier
        commit keeps and only comes back at one of its names.
        """
        version = self._survivors.version_of(st)
        return version if version is not None and kept_of(version.ino) is None else None

    def is_content_kept(self, rel: RelPath) -> bool:
        """Tell whether a thing of base that stays keeps its content."""
        change = self._change_of(rel)
        if change is None or change.origin is not None:
            return True
        st = self._base.lstat(rel)
        return not stat.S_ISREG(st.st_mode)

    def fingerprint(self, rel: RelPath, known: Fingerprint | None = None) -> Fingerprint:
        """Return the fingerprint that a file of base has afterwards; ``known``: that it is to have
        been seen with.

        Of what the host has deleted it stays what is known.
        """
        here = self._base.look(rel)
        if here is None and known is not None:
            return known
        here = here if here is not None else self._base.lstat(rel)
        fingerprint = known if known is not None else self._base.fingerprint(here)
        is_carried = self._is_carried(rel)
        if is_carried or self.place_of(rel) != rel:
            fingerprint = msgspec.structs.replace(fingerprint, ctime_ns=0, nlink=0)
        change = self._change_of(rel)
        if change is None:
            return fingerprint
        st = self._survivors.st(change)
        size = fingerprint.size if change.origin is not None else st.st_size
        keeps_owner = (st.st_uid, st.st_gid) == (here.st_uid, here.st_gid)  # else it may not be ours to give
        is_known = keeps_owner or not (is_carried or stat.S_ISDIR(here.st_mode))  # or it is noted that it is not
        after = Fingerprint(st.st_mtime_ns, size, fingerprint.ino, owner_of(st) if is_known else None)
        if is_carried or not is_known:
            return after
        return msgspec.structs.replace(after, ctime_ns=NOTED_CTIME_NS, nlink=here.st_nlink)

    def _is_carried(self, rel: RelPath) -> bool:
        """Tell whether a directory moves with a thing of base in it, perhaps name by name, which
        gives all in it a ctime that nobody notes.
        """
        place = self.place_of(rel)
        if place is None:
            return True
        return any(self.place_of(above) != above for above in {split(rel)[0], split(place)[0]})

    def directory_home(self, rel: RelPath) -> tuple[RelPath | None, Fingerprint | None]:
        """Return the place and fingerprint of a directory of base that stays where it is; two Nones
        of another, which may be made anew where it goes.
        """
        st = self._base.look(rel)
        stays = st is not None and self.place_of(rel) == rel and not self._is_carried(rel)
        return (rel, self.fingerprint(rel)) if stays else (None, None)

    def at_name(self, place: RelPath | None, name: bytes) -> tuple[Entry | None, RelPath | None]:
        """Return what base has at a name afterwards: an entry of the first tree, or the base path
        that it has now.
        """
        if place is None:
            return None, None
        entry = self._first.find(place)
        if entry is not None and entry.children and name in entry.children:
            child = entry.children[name]
            is_there = child.staged is not None or self._base.look(child.base) is not None
            return (child, None) if is_there else (None, None)
        shown = self._first.resolve(place)
        if shown is None or shown.base is None:
            return None, None
        rel = join(shown.base, name)
        return None, rel if self._base.look(rel) is not None else None

    def comes_there(self, slot: RelPath | None, there: Entry | None) -> tuple[RelPath | None, Fingerprint | None]:
        """Return the slot and the fingerprint of a base file that a returning file replaces, or two
        Nones.
        """
        kept = kept_of(there.staged.ino) if there is not None and there.staged is not None else None
        if slot is None or slot in self._renamed or there is None or there.staged is None or kept is None:
            return None, None
        st, path = self._survivors.st(there.staged), self._kept.path(there.staged.ino)
        if st.st_nlink > 1:  # what is shown at each of its names would be taken for one file
            return None, None
        if stat.S_ISDIR(st.st_mode) or not self._stays_on_its_device(slot, path):
            return None, None
        return slot, self._base.fingerprint(st)

    def home_of(self, rel: RelPath | None) -> tuple[RelPath, Fingerprint] | None:
        """Return the place and fingerprint of the file that comes back of which base has a version
        at a path now.
        """
        home = self._homes.get(rel) if rel is not None else None
        return (home.place, self._base.fingerprint(home.st)) if home is not None else None

    def is_renamed(self, path: RelPath, home: RelPath | None) -> bool:
        """Tell whether a record is of a version, at another name, of a file that comes back."""
        return home in self._renamed and path != home

    def _stays_on_its_device(self, place: RelPath, path: bytes) -> bool:
        """Tell whether what is kept at an absolute path is the very same file in a place of base
        then: no copy.
        """
        return self._domain_after(place).takes(path)

    def links_after(self, st: os.stat_result, names: Sequence[RelPath]) -> int:
        """Return how many names base has afterwards for a file that has these now; 0 for one."""
        version = self._version_of(st)
        made = [entry for entry in version.names if entry not in self._survivors.of] if version is not None else []
        count = st.st_nlink - sum(self.place_of(name) is None for name in names) + len(made)
        return count if count > 1 else 0

    def gets_links_back(self, st: os.stat_result) -> bool:
        """Tell whether the first tree changes a file in place that has one name now, and makes
        others, which are links of it.
        """
        version = self._version_of(st)
        return version is not None and version.links == 1

    def is_changed(self, rel: RelPath, st: os.stat_result) -> bool:
        """Tell whether a thing of base that stays gets other content or metadata; ``st``: its
        attributes now.
        """
        change = self._change_of(rel)
        if change is None:
            return False
        if change.origin is None and stat.S_ISREG(st.st_mode):
            return True
        new = self._store.metadata(change.ino)
        old = copying.read_base_metadata(self._base.path(rel))
        is_directory = stat.S_ISDIR(st.st_mode)
        looks = (st.st_mode, st.st_uid, st.st_gid, 0 if is_directory else st.st_mtime_ns)
        wanted = (new.st.st_mode, new.st.st_uid, new.st.st_gid, 0 if is_directory else new.st.st_mtime_ns)
        return looks != wanted or sorted(new.xattrs) != sorted(old.xattrs)

    def touched(self, entry: Entry | None, rel: RelPath, st: os.stat_result) -> int:
        """Return the time that a directory shows, if base has another one afterwards; else 0."""
        if entry is not None and entry.touched_ns:
            return entry.touched_ns
        return st.st_mtime_ns if self._gets_other_time(rel, st) else 0

    def loses_epoch(self, entry: Entry | None, rel: RelPath, st: os.stat_result) -> bool:
        """Tell whether a directory shows the time 0, which only a store inode can say, and base has
        another then.
        """
        is_touched = entry is not None and entry.touched_ns
        return not st.st_mtime_ns and not is_touched and self._gets_other_time(rel, st)

    def _gets_other_time(self, rel: RelPath, st: os.stat_result) -> bool:
        holder = self._survivors.name_of.get(rel)
        if holder is None or (holder.staged is None and not holder.touched_ns):
            return False
        after = holder.touched_ns
        if not after and holder.staged is not None:
            after = self._survivors.st(holder.staged).st_mtime_ns
        return after != st.st_mtime_ns

    def goes_to_another_device(self, rel: RelPath, place: RelPath) -> bool:
        """Tell whether a file of base is copied when the first tree puts it where it is to be."""
        is_there = self._base.look(rel) is not None  # else the host has deleted it
        return is_there and not self._domain_after(place).takes(self._base.path(rel))

    def _domain_after(self, place: RelPath) -> RenameDomain:
        """Return where something lies which the first tree puts in a place."""
        above = split(place)[0]
        while above:
            shown, there = self._first.resolve(above), self._base.look(above)
            if shown is not None and shown.base == above and there is not None:
                break
            above = split(above)[0]  # it is made or moved there, to the device of the one above
        if above not in self._domains:
            self._domains[above] = rename_domain(self._base.path(above))
        return self._domains[above]
