"""Runs tests again where things are different: as an ordinary user, and as root in a container
without user namespaces.

``elsewhere.py [OPTION...]`` runs :data:`CHOSEN` in each of the places, one after the other, with
options for pytest.  It has to be root, who alone can be somebody else; an ordinary user's own run
is in the first of the places already.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2]))

from tests.support.ordinary_user import CHECKOUT, run_as_ordinary_user

TIMEOUT_S = 900
FORBID = "echo 0 > /proc/sys/user/max_user_namespaces; ! unshare --user true 2> /dev/null || exit 99; "
"""Forbids user namespaces in the one where it is run; no other one is touched."""

_SANDBOX = {
    "tests/sandbox/test_escapes.py": "keeps_in|no_stream|descriptor",
    **{
        f"tests/sandbox/test_{name}.py": "exit_code|streams|summary|refused|killed|background"
        for name in ("run", "run_mounts", "run_summary")
    },
    "tests/sandbox/test_native_binds.py": "straight_from_base|read_only|leads_elsewhere",
    "tests/sandbox/test_parallel_runs.py": "three_runs|both|own_refusals|in_no_run",
    "tests/security/sandbox/test_first_process.py": "^(?!.*(terminal|some_time_after|ten_seconds))",
    "tests/security/sandbox/test_socket_families.py": "",
    "tests/security/sandbox/test_host_locks.py": "",
}
CHOSEN = {
    "an ordinary user": _SANDBOX
    | {
        "tests/cli/test_bring_back.py": "",
        "tests/cli/test_partial_commit.py": "",
        "tests/mount/test_gate.py": "",
        "tests/mount/test_gate_paths.py": "",
        "tests/mount/test_gate_refusals.py": "",
        "tests/mount/test_host_changes.py": "",
        "tests/mount/test_ordinary_user.py": "",
        "tests/mount/test_others_groups.py": "",
        "tests/mount/test_posix_compared.py": "test_what_anybody_does.*base",
        "tests/mount/test_real_programs.py": "plain_directory.*(git|wal|rsync)",
        "tests/mount/test_snapshot_and_travel.py": "",
        "tests/security/test_copies_and_moves.py": "",
        "tests/security/test_hard_link_names.py": "a_name_that_was_renamed|both_names|the_listing|found_by_doctor",
        "tests/security/test_planted_commit.py": "test_what_a_clone_brings|test_what_lies_in.*root"
        "|test_what_was_changed.*one_byte",
        "tests/security/test_planted_session.py": "",
        "tests/security/test_sessions_are_hidden.py": "",
        "tests/security/test_state_directory.py": "",
        "tests/security/test_the_session_is_out_of_reach.py": "",
        "tests/security/test_whose_it_is.py": "",
        "tests/security/trust/": "cloned|tightens|inside|remembered",
    },
    "root in a container": _SANDBOX,
}
"""For each place which tests are run there: for each file or folder what is in their names."""


def is_chosen(place: str, node: str) -> bool:
    """Tell whether a test, given by its node ID, is run in a place."""
    path, _, name = node.partition("::")
    (wanted,) = (names for chosen, names in CHOSEN[place].items() if path.startswith(chosen))
    return re.search(wanted, name, re.IGNORECASE) is not None


def as_root_without_user_namespaces(
    command: Sequence[str | Path], *, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a command as in a container: root may mount, and can make no user namespace."""
    container = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    return subprocess.run(
        [*container, "sh", "-c", f'{FORBID} exec "$@"', "x", *map(str, command)],
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=timeout_s,
    )


RUNNERS = {
    "an ordinary user": run_as_ordinary_user,
    "root in a container": as_root_without_user_namespaces,
}


def run_tests(place: str, options: Sequence[str]) -> str:
    """Run the tests chosen for a place, print pytest's output, and return the failure, if there is
    one.
    """
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--place={place}", *options]
    with tempfile.TemporaryDirectory(prefix="yolofs-e.") as own:  # in pytest's own directories others clean up
        if place == "an ordinary user":  # with a TMPDIR of their own; the path of a socket may not be long
            command = ["sh", "-c", 'exec "$@" --basetemp="$TMPDIR/t"', "x", *command]
        else:
            command.append(f"--basetemp={own}/t")
        done = RUNNERS[place]([*command, *CHOSEN[place]], timeout_s=TIMEOUT_S)
    print(f"tests as {place}:\n{done.stdout}", flush=True)  # noqa: T201 - what it is for
    if done.returncode:
        return "some failed"
    if not re.search(r"^\d+ passed", done.stdout, re.MULTILINE):
        return "none ran"
    return "some were skipped" if "skipped" in done.stdout else ""


def main(options: Sequence[str]) -> int:
    """Run the tests in each place and return an exit status."""
    if os.geteuid() != 0:
        print("only root can run tests as somebody else")  # noqa: T201 - what it is for
        return 0
    wrong = {place: found for place in CHOSEN if (found := run_tests(place, options))}
    for place, found in wrong.items():
        print(f"tests as {place}: {found}, see above", file=sys.stderr)  # noqa: T201 - what it is for
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
