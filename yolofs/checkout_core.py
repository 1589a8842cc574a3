"""The compiled core of a checkout (``docs/design/compiled.md``).

``make setup`` compiles the core into ``build/core``, away from the sources.  The daemon alone takes
it, and only if it was compiled from exactly the present sources: so an edited source is what runs.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location

CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AS_IT_IS = "YOLOFS_CORE"
"""The environment's variable that has a daemon run the sources: ``YOLOFS_CORE=python``."""
_SOURCES = "SOURCES"
"""What was compiled, as sha256sum(1) lists it: paths in the checkout."""


def find(checkout: str | None = None) -> str | None:
    """Return where the compiled core of a checkout is, of this one unless another is named; None if
    there is none for this Python.
    """
    directory = os.path.join(checkout or CHECKOUT, "build", "core")
    shared = os.path.join(directory, "yolofs", f"_core__mypyc{EXTENSION_SUFFIXES[0]}")
    return directory if os.path.exists(shared) and os.path.exists(os.path.join(directory, _SOURCES)) else None


def is_of_these_sources(directory: str, checkout: str | None = None) -> bool:
    """Tell whether what is in ``directory`` was compiled from what is in the checkout."""
    try:
        with open(os.path.join(directory, _SOURCES), encoding="ascii") as file:
            noted = [line.rstrip("\n").split("  ", 1) for line in file]
        return bool(noted) and all(
            _digest(os.path.join(checkout or CHECKOUT, path)) == digest for digest, path in noted
        )
    except (OSError, ValueError):
        return False


def choose(checkout: str | None = None) -> str | None:
    """Return where a daemon takes the compiled core from; None if it runs the sources."""
    directory = None if os.environ.get(AS_IT_IS) == "python" else find(checkout)
    return directory if directory is not None and is_of_these_sources(directory, checkout) else None


def use(checkout: str | None = None) -> bool:
    """Have this process import the compiled core from now on, if there is one of these sources.

    To be called before any module of the core is imported.  Returns whether it is used.
    """
    directory = choose(checkout)
    if directory is not None:
        sys.meta_path.insert(0, _Compiled(directory))
    return directory is not None


class _Compiled:
    """Finds the modules that are compiled in ``directory``, and no other."""

    def __init__(self, directory: str) -> None:
        suffix = EXTENSION_SUFFIXES[0]
        self._paths = {
            os.path.relpath(os.path.join(place, name), directory).removesuffix(suffix).replace("/", "."): os.path.join(
                place, name
            )
            for place, _, names in os.walk(directory)
            for name in names
            if name.endswith(suffix)
        }

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Return where importlib is to load the module from; None if it is not one of them."""
        found = self._paths.get(name)
        return None if found is None else spec_from_file_location(name, found, loader=ExtensionFileLoader(name, found))


def _digest(path: str) -> str:
    import hashlib  # an installed yolofs does without

    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
