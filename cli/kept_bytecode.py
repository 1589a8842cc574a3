"""The bytecode of all that short commands import, in one file: they take a tenth less time.

Python looks for each module in several directories, and opens, checks, reads and closes a file for
it.  Of that a short command leaves only the check: it takes a module from the file under the rule
by which Python takes one from ``__pycache__``, which is that the source has the time and the size
that are noted.  What has changed is imported as ever, and the command writes the file anew when it
ends, if Python may write bytecode.

Only modules that nothing else can come before are taken: parts of a package, from the directory
that the package itself was imported from, and modules of the standard library, unless
``PYTHONPATH`` names directories that go before it.
"""

from __future__ import annotations

import _imp
import contextlib
import marshal
import os
import sys

# What importlib.machinery and importlib.util are made of: Python has these as soon as it starts.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, PathFinder, SourceFileLoader, cache_from_source
from collections.abc import Mapping, Sequence
from types import CodeType

_BEGIN = b"yolofs 1"
_LIBRARY = os.path.dirname(os.__file__)
_OURS = ("yolofs", "msgspec")
_Kept = tuple[str, str, bool, bytes, int, int]
"""Source, file of bytecode, whether it is a package; time and size of the source as Python notes
them; where its code begins and ends.
"""
_HEADER_BYTES = 16
"""Of a file of bytecode: the number of its format, flags, time and size of the source."""


class KeptBytecode:
    """Finds modules in the file, and adds those that were imported past it."""

    def __init__(self) -> None:
        self._path = cache_from_source(os.path.join(os.path.dirname(__file__), "short_commands_bytecode.py"))
        self._before = set(sys.modules)
        self._taken: set[str] = set()
        self._table: Mapping[str, _Kept] = {}
        self._code = memoryview(b"")
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
            self._read()

    def use(self) -> None:
        """Have Python look here before it looks through directories, and after all else that
        somebody has it ask.
        """
        if PathFinder in sys.meta_path:
            sys.meta_path.insert(sys.meta_path.index(PathFinder), self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, _: object = None) -> ModuleSpec | None:
        """Return how importlib is to load the module; None if it is not in the file, or has
        changed.
        """
        found = self._table.get(name)
        if found is None or not _is_first(found, path):
            return None
        origin, cached, is_package, noted, start, end = found
        try:
            if noted != _noted(origin):
                return None
        except OSError:
            return None
        self._taken.add(name)
        loader = _KeptLoader(name, origin, self._code[start:end])
        spec = ModuleSpec(name, loader, origin=origin, is_package=is_package)
        spec.has_location = True
        spec.cached = cached
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(origin)]
        return spec

    def keep(self) -> None:
        """Write the file anew if anything was imported past it that it could have; a file that
        cannot be written is none.
        """
        if sys.dont_write_bytecode:
            return
        imported = list(sys.modules)  # at once: a thread may import still
        past = [name for name in imported if name not in self._before and name not in self._taken]
        new = [(name, *found) for name in past if (found := _bytecode(name)) is not None]
        if new:
            with contextlib.suppress(OSError):
                self._write(new)

    def _read(self) -> None:
        with open(self._path, "rb", buffering=0) as file:
            data = file.read()
        begin = _begin()
        if not data.startswith(begin):
            return
        at = len(begin) + 16
        table_bytes, code_bytes = (int.from_bytes(data[at - more : at - more + 8], "big") for more in (16, 8))
        if len(data) == at + table_bytes + code_bytes:
            self._table = marshal.loads(data[at : at + table_bytes])
            self._code = memoryview(data)[at + table_bytes :]

    def _write(self, new: Sequence[tuple[str, str, str, bool, bytes, bytes]]) -> None:
        replaced = {name for name, *_ in new}
        modules = [
            (name, origin, cached, is_package, noted, bytes(self._code[start:end]))
            for name, (origin, cached, is_package, noted, start, end) in self._table.items()
            if name not in replaced
        ]
        table: dict[str, _Kept] = {}
        length = 0
        for name, origin, cached, is_package, noted, code in (*modules, *new):
            table[name] = (origin, cached, is_package, noted, length, length + len(code))
            length += len(code)
        written = marshal.dumps(table)
        parts = [_begin(), len(written).to_bytes(8, "big"), length.to_bytes(8, "big"), written]
        parts += [code for *_, code in (*modules, *new)]
        beside = f"{self._path}.{os.getpid()}"
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, os.stat(__file__).st_mode & 0o666)
        try:
            with open(fd, "wb") as file:
                file.write(b"".join(parts))
            os.rename(beside, self._path)
        except OSError:
            os.unlink(beside)
            raise


class _KeptLoader(SourceFileLoader):
    """Python's own loader, which has the bytecode already."""

    def __init__(self, name: str, origin: str, code: memoryview) -> None:
        super().__init__(name, origin)
        self._code = code

    def get_code(self, fullname: str) -> CodeType | None:  # noqa: ARG002 - importlib's signature
        """Return the code of the module."""
        code: CodeType = marshal.loads(self._code)
        _imp._fix_co_filename(code, self.path)  # type: ignore[attr-defined]  # typeshed does not have it
        return code


def _begin() -> bytes:
    return _BEGIN + MAGIC_NUMBER


def _is_first(found: _Kept, path: Sequence[str] | None) -> bool:
    """Tell whether Python would find the same source, if it is still there."""
    place = os.path.dirname(found[0])
    if found[2]:
        place = os.path.dirname(place)
    if path is None:
        return place == _LIBRARY and "PYTHONPATH" not in os.environ
    return list(path) == [place]


def _noted(source: str) -> bytes:
    """Return time and size of a source as its bytecode notes them."""
    status = os.stat(source)
    return b"".join((int(number) & 0xFFFFFFFF).to_bytes(4, "little") for number in (status.st_mtime, status.st_size))


def _bytecode(name: str) -> tuple[str, str, bool, bytes, bytes] | None:
    """Return what is kept of a module, with its code; None if it can be found nowhere else or has
    no bytecode that is of its source.
    """
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if spec is None or type(spec.loader) is not SourceFileLoader or spec.name != name or not spec.cached:
        return None
    is_package = spec.submodule_search_locations is not None
    place = os.path.dirname(spec.origin)
    in_library = (os.path.dirname(place) if is_package else place) == _LIBRARY
    if not (name.partition(".")[0] in _OURS and "." in name) and not (in_library and "." not in name):
        return None
    try:
        noted = _noted(spec.origin)
        with open(spec.cached, "rb") as file:
            data = file.read()
    except OSError:
        return None
    if data[:_HEADER_BYTES] != MAGIC_NUMBER + bytes(4) + noted:
        return None
    return spec.origin, spec.cached, is_package, noted, data[_HEADER_BYTES:]
