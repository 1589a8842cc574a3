"""Compiles the core while a wheel is built, where that can be done (docs/design/compiled.md).

YOLOFS_COMPILE=0 leaves it as it is, and with YOLOFS_COMPILE=1 nothing is built that is not
compiled.  All else about the package is in pyproject.toml.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# What every request passes through, from the handlers down to base, store and journal, and every
# file of a commit until its plan is checked; nothing else.  They are compiled together, so that
# calls between them are C calls.  Not in it: what carries coroutines (the adapter, the device
# loop), records (msgspec.Struct is C already), refusals (mypyc cannot subclass OSError), and all
# that runs once for a command.
COMPILED = [
    "yolofs/access/absent_names.py",
    "yolofs/access/gate.py",
    "yolofs/access/linked_names.py",
    "yolofs/access/touches.py",
    "yolofs/changes/changes.py",
    "yolofs/changes/matching.py",
    "yolofs/changes/state_reader.py",
    "yolofs/commit/merge/conflicts.py",
    "yolofs/commit/plan/last_check.py",
    "yolofs/commit/plan/overridden_names.py",
    "yolofs/commit/plan/planner.py",
    "yolofs/commit/plan/seen_twice.py",
    "yolofs/commit/plan/spellings.py",
    "yolofs/commit/plan/survivors.py",
    "yolofs/fuse/current_run.py",
    "yolofs/fuse/results.py",
    "yolofs/fuse/cache/lifetimes.py",
    "yolofs/fuse/cache/listings.py",
    "yolofs/fuse/direct/device_server.py",
    "yolofs/fuse/direct/directory_names.py",
    "yolofs/fuse/direct/incoming.py",
    "yolofs/fuse/direct/kernel_protocol.py",
    "yolofs/fuse/direct/replies.py",
    "yolofs/fuse/handlers.py",
    "yolofs/fuse/loop/serving.py",
    "yolofs/fuse/loop/spin.py",
    "yolofs/fuse/loop/timers.py",
    "yolofs/hostcode/code_files.py",
    "yolofs/hostcode/mark_finder.py",
    "yolofs/journal/checksums.py",
    "yolofs/journal/codec.py",
    "yolofs/journal/journal_file.py",
    "yolofs/journal/header.py",
    "yolofs/journal/journal.py",
    "yolofs/journal/line_fields.py",
    "yolofs/overlay/absent_xattrs.py",
    "yolofs/overlay/acl.py",
    "yolofs/overlay/attributes.py",
    "yolofs/overlay/big_copies.py",
    "yolofs/overlay/copy_up.py",
    "yolofs/overlay/data.py",
    "yolofs/overlay/descriptors.py",
    "yolofs/overlay/finding.py",
    "yolofs/overlay/held_directories.py",
    "yolofs/overlay/inodes.py",
    "yolofs/overlay/layers.py",
    "yolofs/overlay/name_checks.py",
    "yolofs/overlay/naming.py",
    "yolofs/overlay/ownership.py",
    "yolofs/overlay/paths_by_key.py",
    "yolofs/overlay/recent_looks.py",
    "yolofs/overlay/recording.py",
    "yolofs/overlay/reloading.py",
    "yolofs/overlay/removal.py",
    "yolofs/overlay/view.py",
    "yolofs/paths.py",
    "yolofs/rules/book.py",
    "yolofs/rules/index.py",
    "yolofs/rules/judgement.py",
    "yolofs/rules/verdict.py",
    "yolofs/state/drift.py",
    "yolofs/state/hard_links.py",
    "yolofs/state/tree.py",
    "yolofs/store/base.py",
    "yolofs/store/base_opening.py",
    "yolofs/store/base_stand_in.py",
    "yolofs/store/listed_names.py",
    "yolofs/store/store.py",
    "yolofs/system/own_names.py",
]

CHOICE = os.environ.get("YOLOFS_COMPILE") or "auto"
NEEDED = ["mypy>=1.15,<3", "msgspec>=0.19,<1"]  # msgspec: mypyc has to know its types


def tell(why: str) -> None:
    """Say that the core stays as it is, or end where it must not."""
    if CHOICE == "1":
        sys.exit(f"YOLOFS_COMPILE=1: the core cannot be compiled: {why}")
    print(f"yolofs: the core is not compiled, and slower: {why}", file=sys.stderr)


def obstacle() -> str:
    """Return why nothing can be compiled here; nothing if it can be tried."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "mypyc is for the usual CPython"
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    includes = {sysconfig.get_path(name) for name in ("include", "platinclude")}
    with tempfile.TemporaryDirectory() as scratch:
        source = os.path.join(scratch, "headers.c")
        with open(source, "w", encoding="ascii") as file:
            file.write("#include <Python.h>\n")
        command = [
            *compiler,
            *(f"-I{path}" for path in includes),
            "-c",
            source,
            "-o",
            os.path.join(scratch, "headers.o"),
        ]
        try:
            done = subprocess.run(command, capture_output=True, check=False)
        except OSError:
            return f"there is no C compiler ({compiler[0]})"
    return "" if done.returncode == 0 else f"{compiler[0]} cannot compile with Python's headers"


def extensions() -> list[Extension]:
    """Return what is to be compiled, as C; nothing where that cannot be made."""
    why = obstacle()
    if not why:
        try:
            from mypyc.build import mypycify

            flags = ["--config-file=", "--explicit-package-bases"]
            return mypycify([*flags, *COMPILED], opt_level="2", debug_level="0", group_name="yolofs._core")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, and mypyc ends the process, too
            why = f"mypyc: {error!r}"
    tell(why)
    return []


class BuildAllOrNothing(build_ext):
    """Compiles the extensions; where one fails, none is left.

    Danger: each stands in the place of a module, and is of no use without the others.
    """

    def run(self) -> None:
        """Compile them."""
        outputs = self.get_outputs()
        try:
            super().run()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is
            tell(f"{type(error).__name__}: {error}")
            for path in outputs:
                if os.path.lexists(path):
                    os.unlink(path)
            self.extensions = self.distribution.ext_modules = []
            self.get_finalized_command("bdist_wheel").root_is_pure = True


if CHOICE not in ("0", "1", "auto"):
    sys.exit(f'YOLOFS_COMPILE: expected "0", "1" or "auto", got "{CHOICE}"')
elif CHOICE == "0":
    setup()
elif "editable_wheel" in sys.argv:
    if CHOICE == "1":
        sys.exit("YOLOFS_COMPILE=1: an editable install runs the sources as they are; leave out --editable")
    setup()
elif "bdist_wheel" in sys.argv:
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildAllOrNothing})
elif "setuptools.build_meta" in sys.modules and (CHOICE == "1" or not obstacle()):
    setup(setup_requires=NEEDED)  # a step before the build, which asks what has to be there
else:
    setup()
