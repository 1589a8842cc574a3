"""What ``yolofs doctor`` checks on a machine.  Each check returns findings, and changes nothing."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import os
import platform
import pwd
import re
import stat
import sys
from collections.abc import Iterator

import yolofs
from yolofs import checkout_core
from yolofs.cli.show.finding_lines import CheckFinding, Health
from yolofs.compiled import is_compiled, stale_sources
from yolofs.paths import display
from yolofs.system.host_programs import find_program

PACKAGE = os.path.dirname(yolofs.__file__)
"""Where the program lies."""
_OLDEST_PYTHON = (3, 11)
_OLDEST_KERNEL = (5, 4)
"""The oldest one that is still cared for upstream; older ones may work."""


def check_machine() -> Iterator[CheckFinding]:
    """Check what every session needs."""
    yield _python()
    yield _core()
    yield _kernel()
    yield _device()
    yield _fusermount()
    yield from _transports()
    yield _bubblewrap()


def _python() -> CheckFinding:
    version = platform.python_version()
    if sys.version_info < _OLDEST_PYTHON:
        return CheckFinding("python", Health.FAIL, f"Python {version} is too old", "install Python 3.11 or newer")
    return CheckFinding("python", Health.OK, f"Python {version}")


def _core() -> CheckFinding:
    stale = stale_sources(PACKAGE)
    if stale:
        more = f" (and {len(stale) - 1} more)" if len(stale) > 1 else ""
        message = f"{display(os.fsencode(stale[0]))}{more} has changed since it was compiled, so the older version runs"
        return CheckFinding("core", Health.WARN, message, "install yolofs again, or remove the .so beside it")
    if is_compiled():
        return CheckFinding("core", Health.OK, "compiled")
    found = checkout_core.find()
    if found is None:
        message = (
            "pure Python; pip, or make setup in a checkout, compiles it where a C compiler and Python's headers are"
        )
        return CheckFinding("core", Health.OK, message)
    if not checkout_core.is_of_these_sources(found):
        message = "pure Python, as sources have changed since build/core was compiled from them"
        return CheckFinding("core", Health.OK, message, "for a faster view: make setup, then mount again")
    if os.environ.get(checkout_core.AS_IT_IS) == "python":
        return CheckFinding("core", Health.OK, f"pure Python, as {checkout_core.AS_IT_IS} says")
    return CheckFinding("core", Health.OK, "compiled for mounts, in build/core; commands run the sources")


def _kernel() -> CheckFinding:
    release = platform.release()
    found = re.match(r"(\d+)\.(\d+)", release)
    if found and (int(found[1]), int(found[2])) < _OLDEST_KERNEL:
        return CheckFinding(
            "kernel", Health.WARN, f"Linux {release} is older than what yolofs is tested on", "upgrade it"
        )
    return CheckFinding("kernel", Health.OK, f"Linux {release}")


def _device() -> CheckFinding:
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        advice = "modprobe fuse; in a container: give it --device /dev/fuse"
        return CheckFinding("/dev/fuse", Health.FAIL, "is not there", advice)
    except OSError as error:
        advice = "chmod 666 /dev/fuse; in a container: give it --device /dev/fuse --cap-add SYS_ADMIN"
        return CheckFinding("/dev/fuse", Health.FAIL, f"cannot be opened: {error.strerror}", advice)
    return CheckFinding("/dev/fuse", Health.OK, "can be opened")


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _fusermount() -> CheckFinding:
    program = find_program("fusermount3")
    if program is None:
        if os.geteuid() == 0:
            return CheckFinding("fusermount3", Health.OK, "is not there, and root does not need it")
        return CheckFinding("fusermount3", Health.FAIL, "is not there", "install the package fuse3")
    if os.geteuid() and not os.stat(program).st_mode & stat.S_ISUID:
        return CheckFinding(
            "fusermount3", Health.WARN, f"{program} is not setuid root", f"chmod u+s {program}, as root"
        )
    if os.geteuid() and not _has_name(os.geteuid()):
        advice = "run yolofs as a user that /etc/passwd knows"
        return CheckFinding(
            "fusermount3", Health.FAIL, f"refuses users without a name, and {os.geteuid()} has none", advice
        )
    return CheckFinding("fusermount3", Health.OK, program)


def _transports() -> Iterator[CheckFinding]:
    """Check the view's way to the kernel: its own, and pyfuse3 where that is installed."""
    try:
        importlib.import_module("yolofs.fuse.direct.transport")
    except ImportError as error:
        yield CheckFinding("transport", Health.FAIL, f"cannot be imported: {error}", "install yolofs again")
    else:
        yield CheckFinding("transport", Health.OK, 'direct, for mount.transport = "auto"')
    try:
        version = importlib.metadata.version("pyfuse3")
    except importlib.metadata.PackageNotFoundError:
        return
    wanted = _wanted_range("pyfuse3")
    if wanted and not is_in_range(version, wanted):
        message = f"version {version} is not {wanted}, which the device loop was made for"
        yield CheckFinding("pyfuse3", Health.WARN, message, "pip install 'yolofs[pyfuse3]'")
        return
    try:
        importlib.import_module("yolofs.fuse.libfuse.transport")
    except ImportError as error:
        yield CheckFinding("pyfuse3", Health.WARN, f"cannot be imported: {error}", "pip install 'yolofs[pyfuse3]'")
    else:
        yield CheckFinding("pyfuse3", Health.OK, f'{version}, for mount.transport = "pyfuse3"')


def _wanted_range(package: str) -> str:
    """Return the versions of a package that yolofs itself asks for, such as ``<3.6,>=3.4``."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for requirement in importlib.metadata.requires("yolofs") or []:
            found = re.match(rf"{package}\s*([<>=!~][^;]*)", requirement)
            if found:
                return found[1].strip()
    return ""


def is_in_range(version: str, wanted: str) -> bool:
    """Tell whether a version meets all of ``wanted``: ``>=X`` and ``<X``; other conditions are
    passed over.
    """
    number = _numbers(version)
    for condition in wanted.split(","):
        found = re.fullmatch(r"\s*(>=|<)\s*([\d.]+)\s*", condition)
        if found and (number >= _numbers(found[2])) != (found[1] == ">="):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"[\d.]+", version)
    numbers = [int(part) for part in found[0].split(".") if part] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _bubblewrap() -> CheckFinding:
    program = find_program("bwrap")
    if program is None:
        return CheckFinding("bubblewrap", Health.WARN, "is not there: no sandbox", "install the package bubblewrap")
    return CheckFinding("bubblewrap", Health.OK, program)
