"""Directories that runs get straight from base: these, and no others."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.binds import binds_in, native_binds
from tests.support.program import COMMAND, Program, replace_text, wait_until
from tests.support.started import start
from yolofs.fuse.trace import Trace

pytestmark = pytest.mark.mount

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")


@dataclass(frozen=True, slots=True)
class Place:
    """A session over the whole machine, with one directory outside the project that a rule makes
    read-only.
    """

    program: Program
    static: Path

    def is_bound(self) -> bool:
        """Whether a run that begins now has the directory straight from base."""
        return str(self.static) in native_binds(self.program)

    def wait_until_bound(self) -> None:
        """The first runs may come before the survey is done.  Its end is told in the log: a look at
        that costs less than a run.
        """
        wait_until(lambda: "directories were read" in self.program.log, "the survey is done")
        wait_until(self.is_bound, "the directory is bound")

    def wait_until_looked_through(self) -> None:
        """A socket and the like are found by the survey, which is told in the log."""
        wait_until(
            lambda: not self.is_bound() and f"{self.static} is not bound" in self.program.log,
            "something was found in the directory",
        )


@contextlib.contextmanager
def session(tmp_path: Path, *rules: str, settings: str = "") -> Iterator[Place]:
    """Mount a session; ``rules`` are added to the one for the directory."""
    project, static = tmp_path / "project", tmp_path / "static"
    project.mkdir(exist_ok=True)
    (static / "sub").mkdir(parents=True, exist_ok=True)
    (static / "file").write_text("base\n")
    lines = ['preset = "none"', settings, "[rules]", '"/" = "allow"', *rules]
    if not any(f'"{static}' in rule and "read-only" in rule for rule in rules):
        lines.append(f'"{static}" = "read-only"')
    (project / ".yolofs.toml").write_text("\n".join(lines) + "\n")
    program = Program(project)
    program.start_session()
    program.trust()
    with program.mounted("--root", "/"):
        yield Place(program, static)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Return a session whose directory is bound."""
    with session(tmp_path) as place:
        place.wait_until_bound()
        yield place


def test_a_read_only_directory_without_other_rules_comes_straight_from_base(place: Place) -> None:
    assert native_binds(place.program) == [str(place.static)]
    mounted = place.program("run", "--no-review", "findmnt", "-nrvo", "SOURCE,FSTYPE,FSROOT", "-T", place.static).out
    source, kind, part = mounted.split()
    assert kind == "overlay"  # of which nothing but the disk is a layer
    assert os.path.normpath(source + part) == str(place.static)
    script = "import os, sys; print(open(sys.argv[1]).read(), os.stat(sys.argv[1]).st_ino)"
    out = place.program("run", "python3", "-c", script, place.static / "file").out
    assert out.split() == ["base", str((place.static / "file").stat().st_ino)]


def test_a_command_that_failed_is_told_what_it_was_to_write_where_a_run_cannot(place: Place) -> None:
    said = place.program("run", "sh", "-c", f"echo x > {place.static}/new; exit 3", code=3).err
    assert f"  {place.static}/new: yolofs rule explain {place.static}/new\n" in said
    assert said.endswith(f"to allow it next time: yolofs rule allow {place.static}/new\n")
    assert "read-only in a run" not in place.program("run", "cat", place.static / "none", code=1).err
    place.program("rule", "allow", place.static / "new")
    place.program("run", "sh", "-c", f"echo x > {place.static}/new")


@pytest.mark.parametrize("script", ["echo x | tee {new} | tail", "touch {new}; true", "touch {new} || true"])
def test_a_refusal_is_told_though_the_shell_passes_on_the_exit_code_of_another_command(
    place: Place, script: str
) -> None:
    new = place.static / "new"
    said = place.program("run", "sh", "-c", script.format(new=new)).err
    assert f"  {new}: yolofs rule explain {new}\n" in said
    assert said.endswith(f"to allow it next time: yolofs rule allow {new}\n")


def test_json_names_what_a_run_could_not_write_even_if_nothing_else_is_to_be_told(place: Place) -> None:
    new = place.static / "new"
    done = place.program("run", "--json", "sh", "-c", f"cp /etc/passwd {new}", code=1)
    document = json.loads(done.err.splitlines()[-1])
    assert document["read_only"] == [{"path": str(new), "instead": None}]
    assert (document["changes"], document["notes"]) == ([], [])
    done = place.program("run", "--json", "cat", place.static / "none", code=1)
    assert "read_only" not in done.err
    place.program("run", "--no-review", "--json", "touch", new, code=1)
    done = place.program("run", "--json", "touch", "here", new, code=1)
    assert json.loads(done.err.splitlines()[-1])["read_only"] == [{"path": str(new), "instead": None}]


def test_files_that_every_program_opens_come_straight_from_base_where_the_rules_say_so(tmp_path: Path) -> None:
    cache = "/etc/ld.so.cache"
    assert Path(cache).is_file()
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    # Of a directory in which something is mounted an ordinary user can make no overlay, of which a
    # file were a part.
    can_bind = os.geteuid() == 0 or not any(point.startswith("/etc/") for point in points)
    with session(tmp_path, '"/etc" = "read-only"', '"/etc/shadow" = "deny"') as place:
        place.wait_until_bound()
        assert (cache in native_binds(place.program)) == can_bind
        assert "/etc" not in native_binds(place.program)
        assert place.program("run", "--no-review", "cmp", cache, f"/proc/self/root{cache}").err == ""
        place.program("rule", "write-ask", cache)
        assert cache not in native_binds(place.program)
        place.program("rule", "unset", cache)
        place.program("rule", "read-only", cache)
        assert (cache in native_binds(place.program)) == can_bind


LINK = "/sbin"
NEEDS_LINK = pytest.mark.skipif(not os.path.islink(LINK), reason=f"{LINK} is no link here")


@NEEDS_LINK
def test_links_that_every_program_follows_come_straight_from_base_where_the_rules_say_so(tmp_path: Path) -> None:
    with session(tmp_path, f'"{LINK}" = "read-only"') as place:
        yolofs = place.program
        place.wait_until_bound()
        assert LINK in native_binds(yolofs)
        assert yolofs("run", "readlink", LINK).out == f"{os.readlink(LINK)}\n"
        yolofs("rule", "hidden", LINK)
        assert LINK not in native_binds(yolofs)
        assert "No such file" in yolofs("run", "ls", "-ld", LINK, code=2).err


@NEEDS_LINK
@NEEDS_ROOT
def test_a_link_that_the_view_has_otherwise_is_not_bound(tmp_path: Path) -> None:
    target = os.readlink(LINK)
    with session(tmp_path) as place:
        yolofs = place.program
        place.wait_until_bound()
        yolofs("run", "ln", "-sfn", "elsewhere", LINK)
        yolofs("rule", "read-only", LINK)
        assert LINK not in native_binds(yolofs)
        assert yolofs("run", "readlink", LINK).out == "elsewhere\n"
        yolofs("travel", "base")
        wait_until(lambda: LINK in native_binds(yolofs), "it is bound")
        assert yolofs("run", "readlink", LINK).out == f"{target}\n"
        assert os.readlink(LINK) == target


@NEEDS_LINK
def test_a_link_cannot_be_changed_nor_anything_by_it(tmp_path: Path) -> None:
    with session(tmp_path, f'"{LINK}" = "read-only"', '"/usr" = "read-only"') as place:
        wait_until(lambda: {LINK, "/usr"} <= set(native_binds(place.program)), "the link and its target are bound")
        script = f"rm {LINK}; mv {LINK} /elsewhere; ln -sfn x {LINK}; touch -h {LINK}; touch {LINK}/new"
        assert place.program("run", "sh", "-c", f"{script}; true").err.count("\n") >= 5
    assert os.path.islink(LINK)
    assert not os.path.lexists(f"{LINK}/new")


def test_a_native_bind_is_read_only_and_nobodys_way_to_other_rights(place: Place) -> None:
    (place.static / "su").write_text("#!/bin/sh\n")
    (place.static / "su").chmod(0o4755)
    script = """
        import errno, os, sys
        static = sys.argv[1]
        file = static + "/file"
        for attempt in (
            lambda: open(file, "a"), lambda: open(static + "/new", "w"), lambda: os.unlink(file),
            lambda: os.rename(file, static + "/other"), lambda: os.chmod(file, 0o777), lambda: os.utime(file),
            lambda: os.truncate(file, 0), lambda: os.mkdir(static + "/d"), lambda: os.setxattr(file, "user.a", b"x"),
            lambda: os.link(file, "here"), lambda: os.rename(file, "here"), lambda: os.link("own", static + "/own"),
        ):
            try:
                attempt()
            except OSError as error:
                print(errno.errorcode[error.errno])
        st = os.statvfs(static)
        print(bool(st.f_flag & os.ST_RDONLY), bool(st.f_flag & os.ST_NOSUID), bool(st.f_flag & os.ST_NODEV))
    """
    out = place.program(
        "run", "sh", "-c", 'echo > own; exec python3 -c "$@"', "x", textwrap.dedent(script), place.static
    )
    assert out.out.split() == ["EROFS"] * 9 + ["EXDEV"] * 2 + ["EROFS"] + ["True"] * 3
    assert sorted(path.name for path in place.static.iterdir()) == ["file", "su", "sub"]


def test_reading_moves_no_time_of_base(place: Place) -> None:
    file = place.static / "file"
    os.utime(file, ns=(1, 1))  # so old that the next read would move it
    place.program("run", "cat", file)
    assert file.stat().st_atime_ns == 1


def test_a_setting_switches_native_binds_off(tmp_path: Path) -> None:
    with session(tmp_path, settings="[run]\nnative_binds = false") as place:
        assert native_binds(place.program) == []
        assert "Permission denied" in place.program("run", "touch", place.static / "file", code=1).err


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory, traces: object) -> Iterator[Place]:
    """Return a session with a native bind; a test may add rules to its file and take them away
    again.
    """
    with session(tmp_path_factory.mktemp("ruled")) as place:
        place.program.wait_for_watcher()
        place.wait_until_bound()
        yield place


@pytest.mark.parametrize(
    "rule",
    [
        '"{static}/sub" = "deny"',
        '"{static}/sub/not-there" = "hidden"',
        '"{static}/sub" = "allow"',
        '"**/*.pem" = "deny"',
        '"{static}/**/secret" = "hidden"',
        '"**/.env" = "allow"',
    ],
)
@pytest.mark.some(3)
def test_another_rule_that_counts_below_keeps_a_directory_in_the_view(ruled: Place, rule: str) -> None:
    settings = ruled.program.project / ".yolofs.toml"
    before = settings.read_text()
    assert ruled.is_bound()
    replace_text(settings, before + rule.format(static=ruled.static) + "\n")
    ruled.program.trust()
    try:
        assert native_binds(ruled.program) == []
    finally:
        replace_text(settings, before)
        ruled.program.trust()


def test_a_rule_below_keeps_only_the_directories_around_its_path_in_the_view(tmp_path: Path) -> None:
    for name in ("other/deep", "sub/secret", "sub/second"):
        (tmp_path / "static" / name).mkdir(parents=True)
        (tmp_path / "static" / name / "file").write_text(name)
    with session(tmp_path) as place:
        place.wait_until_bound()
        yolofs, static = place.program, place.static
        yolofs("rule", "deny", static / "sub/secret")
        assert native_binds(yolofs) == [f"{static}/other", f"{static}/sub/second"]
        assert yolofs("run", "cat", static / "sub/second/file").out == "sub/second"
        assert "Permission denied" in yolofs("run", "cat", static / "sub/secret/file", code=1).err
        yolofs("rule", "hidden", static / "other/not-there-yet")
        assert native_binds(yolofs) == [f"{static}/other/deep", f"{static}/sub/second"]
        (static / "other/not-there-yet").mkdir()
        assert yolofs("run", "ls", static / "other").out == "deep\n"
        yolofs("rule", "write-ask", static)
        assert native_binds(yolofs) == []
        yolofs("rule", "read-only", static / "sub/secret")
        wait_until(lambda: native_binds(yolofs) == [f"{static}/sub/secret"], "it has been looked through by itself")
        yolofs("rule", "unset", static / "sub/secret")
        yolofs("rule", "unset", static / "other/not-there-yet")
        yolofs("rule", "unset", static)
        assert place.is_bound()


def test_a_pattern_that_a_whole_rule_keeps_out_does_not_matter_and_one_of_a_nearer_file_does(tmp_path: Path) -> None:
    with session(tmp_path, '"**/*.pem" = "deny"', f'"{tmp_path}/static/**" = "read-only"') as place:
        place.wait_until_bound()
        place.program("rule", "hidden", "**/*.key")
        assert not place.is_bound()
        place.program("rule", "unset", "**/*.key")
        assert place.is_bound()


@pytest.mark.parametrize("lifetime", ["session", "always"])
def test_an_answer_that_makes_a_rule_below_keeps_it_in_the_view_from_then_on(tmp_path: Path, lifetime: str) -> None:
    with session(tmp_path, f'"{tmp_path}/other" = "ask"', settings="ask_timeout = 30.0") as place:
        (tmp_path / "other").write_text("asked\n")
        place.wait_until_bound()
        place.program("rule", "write-ask", place.static / "sub")
        assert not place.is_bound()
        with start(["run", "touch", place.static / "sub/new"], place.program.project) as asking:
            wait_until(lambda: place.program("asks", "--json").json["asks"], "it is asked")
            place.program("answer", "1", "allow", f"--{lifetime}")
            assert asking.wait(60) == 0
        place.program("rule", "unset", place.static / "sub")
        assert not place.is_bound()  # because of the rule that was made, and because of what was staged under it
        assert place.program("run", "ls", place.static / "sub").out == "new\n"


def test_what_is_staged_below_keeps_it_in_the_view_wherever_one_travels(place: Place) -> None:
    yolofs, file = place.program, place.static / "file"
    yolofs("rule", "allow", place.static)
    yolofs("run", "sh", "-c", f"echo staged > {file}")
    yolofs("rule", "unset", place.static)
    assert not place.is_bound()
    assert yolofs("run", "cat", file).out == "staged\n"
    yolofs("travel", "base")
    assert place.is_bound()
    assert yolofs("run", "cat", file).out == "base\n"
    yolofs("travel", "1")
    assert not place.is_bound()
    assert yolofs("run", "cat", file).out == "staged\n"


def test_a_renamed_directory_is_not_bound_at_either_place(place: Place, tmp_path: Path) -> None:
    yolofs = place.program
    yolofs("rule", "allow", place.static)
    yolofs("run", "sh", "-c", f"mv {place.static} {tmp_path}/moved && mkdir {place.static}")
    yolofs("rule", "unset", place.static)
    assert native_binds(yolofs) == []
    assert yolofs("run", "ls", place.static).out == ""


def test_a_file_that_has_been_changed_by_another_of_its_names_keeps_it_in_the_view(tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "other").write_text("base\n")
    os.link(tmp_path / "other", tmp_path / "static/linked")
    with session(tmp_path) as place:
        place.wait_until_bound()
        place.program("rule", "allow", place.static)
        place.program("run", "sh", "-c", f"echo staged > {tmp_path}/other")
        place.program("rule", "unset", place.static)
        assert not place.is_bound()
        assert place.program("run", "cat", place.static / "linked").out == "staged\n"


def test_a_name_that_a_link_leads_to_is_bound_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("static")
    with session(tmp_path, f'"{tmp_path}/link/**" = "read-only"', f'"{tmp_path}/static" = "read-only"') as place:
        place.wait_until_bound()
        assert native_binds(place.program) == [str(place.static)]


def test_the_project_and_what_holds_it_are_never_bound(tmp_path: Path) -> None:
    (tmp_path / "project/vendor").mkdir(parents=True)
    rules = ('"vendor" = "read-only"', f'"{tmp_path}" = "read-only"', '"/run" = "read-only"', '"/proc" = "read-only"')
    with session(tmp_path, *rules) as place:
        place.program("rule", "allow", place.program.project / "vendor/sub")  # so that something may be asked anew
        place.program("rule", "unset", place.program.project / "vendor/sub")
        assert native_binds(place.program) == []


def make_socket(path: Path) -> Callable[[], None]:
    listener = socket.socket(socket.AF_UNIX)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    listener.bind(f"/proc/self/fd/{directory}/{path.name}")  # an address has room for 107 bytes, however long the path
    os.close(directory)
    listener.listen()
    return listener.close


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_session(path: Path) -> None:
    (path / ".yolofs").mkdir(parents=True)
    (path / ".yolofs/journal").touch()


@pytest.mark.parametrize("make", [make_socket, make_fifo, make_session])
def test_a_thing_that_leads_elsewhere_keeps_its_directory_in_the_view(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    (tmp_path / "static/sub").mkdir(parents=True)
    close = make(tmp_path / "static/sub/found")
    with session(tmp_path) as place:
        place.wait_until_looked_through()
        assert f"because of {place.static}/sub/found" in place.program.log
    if callable(close):
        close()


def test_directories_beside_one_that_leads_elsewhere_are_bound(tmp_path: Path) -> None:
    for name in ("other/deep", "sub/deep", "sub/second"):
        (tmp_path / "static" / name).mkdir(parents=True)
        (tmp_path / "static" / name / "file").write_text(name)
    os.mkfifo(tmp_path / "static/sub/found")
    (tmp_path / "static/link").symlink_to("other")
    with session(tmp_path) as place:
        static = place.static
        parts = [f"{static}/other", f"{static}/sub/deep", f"{static}/sub/second"]
        wait_until(lambda: native_binds(place.program) == parts, "the parts are bound")
        shown = place.program("run", "sh", "-c", f"cat {static}/link/deep/file {static}/sub/deep/file {static}/file")
        assert shown.out == "other/deepsub/deepbase\n"
        assert "Read-only file system" in place.program("run", "touch", static / "sub/deep/new", code=1).err
        assert "Permission denied" in place.program("run", "touch", static / "sub/new", code=1).err
        (static / "sub/found").unlink()


def test_directories_beside_staged_changes_are_bound(place: Place) -> None:
    yolofs, static = place.program, place.static
    (static / "other").mkdir()
    (static / "gone").mkdir()
    yolofs("rule", "allow", static)
    yolofs(
        "run",
        "sh",
        "-c",
        f"echo staged > {static}/sub/new; rmdir {static}/gone; mkdir {static}/made; mv {static}/file {static}/renamed",
    )
    yolofs("rule", "unset", static)
    assert native_binds(yolofs) == [f"{static}/other"]
    assert yolofs("run", "ls", static).out.split() == ["made", "other", "renamed", "sub"]
    assert yolofs("run", "cat", static / "sub/new").out == "staged\n"
    yolofs("travel", "base")
    assert place.is_bound()


def test_a_rule_that_comes_later_is_for_runs_that_begin_later(place: Place) -> None:
    script = f"echo ready; read line; cat {place.static}/file"
    first = start(["run", "sh", "-c", script], place.program.project, has_input=True)
    assert first.stdout is not None
    assert first.stdout.readline() == b"ready\n"
    place.program("rule", "deny", place.static / "file")
    assert "Permission denied" in place.program("run", "cat", place.static / "file", code=1).err
    assert first.communicate(b"\n", timeout=60)[0] == b"base\n"


def test_a_directory_that_is_hidden_later_goes_from_runs_that_go_on(place: Place) -> None:
    """The kernel unmounts what lies on a name that the view has it forget."""
    script = f"cat {place.static}/file; read line; ls -d {place.static}"
    first = start(["run", "sh", "-c", script], place.program.project, has_input=True)
    assert first.stdout is not None
    assert first.stdout.readline() == b"base\n"
    place.program("rule", "hidden", place.static)
    assert b"No such file or directory" in first.communicate(b"\n", timeout=60)[1]


MOUNT_LATER = """
set -e
mount --make-rshared /
"$@" mount --root / > /dev/null
trap '"$@" unmount --force' EXIT
for i in $(seq 200); do
    "$@" run --no-review grep -q " $STATIC ro," /proc/self/mountinfo && break
    sleep 0.05
done
"$@" run --no-review sh -c 'echo begun; while [ ! -e go-on ]; do sleep 0.05; done
    cat /proc/self/mountinfo; ls "$STATIC/sub"; touch "$STATIC/sub/written"' > out 2>&1 &
while ! grep -q begun out; do sleep 0.05; done
mount -t tmpfs later "$STATIC/sub"
touch "$STATIC/sub/mounted-later"
"$@" run --no-review cat /proc/self/mountinfo > during
"$@" run --no-review touch go-on
wait $! || true
ls "$STATIC/sub"
"""


@NEEDS_ROOT
def test_what_is_mounted_below_later_does_not_come_in_and_new_runs_use_the_view(tmp_path: Path) -> None:
    """In a mount namespace of its own, whose mounts spread as a desktop's do."""
    with session(tmp_path) as place:
        pass
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", MOUNT_LATER, "x", *COMMAND],
        cwd=place.program.project,
        env=os.environ | {"STATIC": str(place.static)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "mounted-later\n"
    assert binds_in((place.program.project / "during").read_text()) == []
    said = (place.program.project / "out").read_text()
    assert str(place.static) in binds_in("\n".join(line for line in said.splitlines() if " - " in line))
    assert "Read-only file system" in said
    assert "mounted-later" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "share"),
    [("gcc -c hello.c", 2), ("/usr/bin/python3 -c pass", 3)],
)
def test_programs_and_headers_load_with_few_requests(tmp_path: Path, command: str, share: int) -> None:
    """``share``: with native binds there is at most one request where there are so many without."""
    project = tmp_path / "project"
    project.mkdir()
    lasting = (
        "[mount]\nbase_timeout = 3600\n"  # else names are looked up again after a second, and it counts how slow we are
    )
    (project / ".yolofs.toml").write_text(lasting)
    (project / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("x"); }\n')
    counts: dict[bool, int] = {}
    program = Program(project)
    program.start_session()
    trace = tmp_path / "trace"
    mountpoint = program("mount", "--root", "/", YOLOFS_TRACE=str(trace))
    assert mountpoint.out
    try:
        wait_until(lambda: "/usr" in native_binds(program), "/usr is bound")
        for is_native in (True, False):
            (project / ".yolofs.toml").write_text(f"{lasting}[run]\nnative_binds = {str(is_native).lower()}\n")
            counts[is_native] = _requests(trace, program, command) - _requests(trace, program, "true")
    finally:
        program("unmount", "--force")
    assert counts[True] * share < counts[False], counts


def _requests(trace: Path, program: Program, command: str) -> int:
    """Return how many requests a command costs when the kernel knows all the names."""
    counts = []
    for _ in range(4):
        before = sum(Trace.open(bytes(trace)).counts().values())
        program("run", "--no-snapshot", "--no-review", "sh", "-c", command)
        counts.append(sum(Trace.open(bytes(trace)).counts().values()) - before)
    return min(counts)
