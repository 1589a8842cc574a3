"""msgspec, without what it imports and yolofs has no use for: more than a third of its time.

Its core wants the classes of UUIDs and decimal numbers, to know such values when it meets them, and
the package imports formats that are not ours, and what makes schemas.  We have no such values.  So
other modules stand in for these meanwhile, and for ``datetime`` the module in C that it has its
classes from, after it has made all of them in Python.  They are gone afterwards: whoever imports
``uuid`` or ``msgspec.inspect`` later gets it.

It also tries out whether an annotation that is written as text may be one of a class, as those of
Python 3.11 may.  The first such text has Python make the classes of its syntax tree, which takes as
long as msgspec itself.  So it is not tried, and the structs that short commands read have their
annotations as they are, without ``from __future__ import annotations``.
"""

from __future__ import annotations

import contextlib
import sys
import typing
from types import ModuleType

_TYPING = "typing_extensions"
"""msgspec imports this module if it is there, and uses typing otherwise."""


class _Unused:
    """Stands for a class of which there are no values, and for what is looked up in it."""

    unknown = None


_CLASSES = {"uuid": ("UUID", "SafeUUID"), "decimal": ("Decimal",)}
_PARTS = {"inspect": (), "toml": (), "yaml": (), "_json_schema": ("schema", "schema_components")}


def import_msgspec() -> None:
    """Import msgspec, unless that has been done; all of it, if it wants more than it did when this
    was written.
    """
    if "msgspec" in sys.modules:
        return
    meant: dict[str, ModuleType | None] = {_TYPING: None}  # None: it cannot be imported
    meant |= {name: _stand_in(name, classes) for name, classes in _CLASSES.items()}
    meant |= {f"msgspec.{name}": _stand_in(name, names) for name, names in _PARTS.items()}
    with contextlib.suppress(ImportError):
        import _datetime  # type: ignore[import-not-found]  # typeshed does not have it

        meant["datetime"] = _datetime
    standing = {name: module for name, module in meant.items() if name not in sys.modules}
    sys.modules.update(standing)  # type: ignore[arg-type]  # None is not in its type, but in the language
    in_typing = vars(sys.modules[typing.__name__])
    tried, in_typing["ForwardRef"] = in_typing["ForwardRef"], _unread
    try:
        import msgspec
    except (ImportError, AttributeError):
        for name in [name for name in sys.modules if name.partition(".")[0] == "msgspec"]:
            del sys.modules[name]
    else:
        for module, names in ((msgspec, _PARTS), (msgspec.json, _PARTS["_json_schema"])):
            for name in names:
                if hasattr(module, name):
                    delattr(module, name)
    finally:
        in_typing["ForwardRef"] = tried
        for name in standing:
            sys.modules.pop(name, None)
    import msgspec  # whole, if it could not be imported without


def _unread(_: str, *, is_class: bool) -> None:
    """Stand for an annotation that is written as text."""


def _stand_in(name: str, classes: tuple[str, ...]) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(dict.fromkeys(classes, _Unused))
    return module
