"""Compiles the core when YOLOFS_COMPILE=1 is set while a wheel is built (docs/design/compiled.md).

All else about the package is in pyproject.toml.
"""

import os
import sys

from setuptools import setup

# What every request passes through, from the handlers down to base, store and journal, and nothing
# else.  They are compiled together, so that calls between them are C calls.  Not in it: what
# carries coroutines (the adapter, the device loop), records (msgspec.Struct is C already), refusals
# (mypyc cannot subclass OSError), and all that is not on the way of a request.
COMPILED = [
    "yolofs/access/gate.py",
    "yolofs/fuse/cache/lifetimes.py",
    "yolofs/fuse/cache/listings.py",
    "yolofs/fuse/handlers.py",
    "yolofs/journal/checksums.py",
    "yolofs/journal/codec.py",
    "yolofs/journal/file.py",
    "yolofs/journal/header.py",
    "yolofs/journal/journal.py",
    "yolofs/journal/line_fields.py",
    "yolofs/overlay/acl.py",
    "yolofs/overlay/attributes.py",
    "yolofs/overlay/big_copies.py",
    "yolofs/overlay/copy_up.py",
    "yolofs/overlay/data.py",
    "yolofs/overlay/descriptors.py",
    "yolofs/overlay/paths_by_key.py",
    "yolofs/overlay/finding.py",
    "yolofs/overlay/inodes.py",
    "yolofs/overlay/layers.py",
    "yolofs/overlay/naming.py",
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
    "yolofs/state/hard_links.py",
    "yolofs/state/tree.py",
    "yolofs/store/base.py",
    "yolofs/store/store.py",
]

if os.environ.get("YOLOFS_COMPILE") != "1":
    setup()
elif "editable_wheel" in sys.argv:
    sys.exit("YOLOFS_COMPILE=1: an editable install runs the sources as they are; leave out --editable")
elif "bdist_wheel" not in sys.argv:  # a step before the build: it asks what has to be there
    setup(setup_requires=["mypy>=1.15", "msgspec>=0.19,<1"])  # msgspec: mypyc has to know its types
else:
    from mypyc.build import mypycify

    flags = ["--config-file=", "--explicit-package-bases"]
    setup(ext_modules=mypycify([*flags, *COMPILED], opt_level="2", group_name="yolofs._core"))
