"""Programs that try to get out of the sandbox.  Each prints ``out`` if it did, or ``kept in``.

They are run in the real sandbox, which must keep them in, and in one without its means, which they
must leave: an attempt that never works shows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = """
import contextlib, ctypes, errno, fcntl, os, signal, socket, stat, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
project, victim, control, session, other_session, shm_key = sys.argv[1:]
victim = int(victim)
static, live = (os.path.join(os.path.dirname(project), name) for name in ("static", "live"))
def out(is_out):
    print("out" if is_out else "kept in")
def out_by_each(found):  # else one way that is open would hide that another one never is
    ways = [way for way in found if found[way]]
    print("out" if len(ways) == len(found) else "kept in" if not ways else f"out by {ways} alone")
def works(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        return False
    return True
def done(result):
    return result >= 0
def refused_as_forbidden(result):
    return result < 0 and ctypes.get_errno() == errno.EPERM
"""

EACH = """
import json, subprocess, sys
found = {}
for name, script in json.loads(sys.argv[1]).items():
    done = subprocess.run([sys.executable, "-c", script, *sys.argv[2:]], capture_output=True, text=True)
    found[name] = done.stdout, done.stderr, done.returncode
print(json.dumps(found))
"""
"""Carries the scripts out that it is given, one after another, and tells of all."""

PLAIN_ROOT = ("--unshare-user", "--cap-drop ALL")
"""Without these root in the sandbox is root outside."""


HOST_FILES = "read-only host files"
"""Stands for mounts that are made before bubblewrap is started; no option."""
NATIVE_BINDS = "native binds"
"""Likewise.  They keep nothing in; what they are parts of lies over /sys, so that the host's is
there only without.
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A way out."""

    script: str
    without: tuple[str, ...]
    """Options of bubblewrap that keep it in."""
    extra: tuple[str, ...] = ()
    """Options that open the way in their place; PROJECT and so on are replaced."""


NAMESPACE = "--unshare-pid"
FIRST_PROCESS = "--perms 0555 --tmpfs /proc/1"

ATTEMPTS: dict[str, Attempt] = {
    "the roots of other processes": Attempt(
        """
processes = [name for name in os.listdir("/proc") if name.isdigit() or name in ("self", "thread-self")]
out_by_each({way: any(os.path.lexists(f"/proc/{name}/{way}{session}/journal") for name in processes)
             for way in ("root", "cwd")})
""",
        without=(NAMESPACE, *PLAIN_ROOT),
    ),
    "a signal to a process outside": Attempt("out(works(os.kill, victim, signal.SIGURG))", without=(NAMESPACE,)),
    "ptrace of a process outside": Attempt(
        """
PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
attached = libc.ptrace(PTRACE_SEIZE, victim, None, None) == 0
out(attached)
""",
        without=(NAMESPACE, *PLAIN_ROOT),
    ),
    "the memory of a process outside": Attempt(
        'out(works(lambda: open(f"/proc/{victim}/mem", "rb").close()))', without=(NAMESPACE, *PLAIN_ROOT)
    ),
    "the memory of the first process inside": Attempt(
        """
first = "/proc/1/mem"
out(works(lambda: os.close(os.open(first, os.O_RDWR))))
""",
        without=(FIRST_PROCESS, "--remount-ro /proc"),
    ),
    "holding up the first process inside": Attempt(
        """
PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
attached = libc.ptrace(PTRACE_SEIZE, 1, None, None) == 0
libc.ptrace(PTRACE_DETACH, 1, None, None)
out(attached)
""",
        without=("--seccomp",),
    ),
    "a user namespace by unshare": Attempt("out(libc.unshare(0x10000000) == 0)", without=("--seccomp",)),
    "a user namespace by clone, and a mount in it": Attempt(
        """
pid = libc.syscall(56 if os.uname().machine == "x86_64" else 220, 0x10000000 | 0x20000 | 17, 0, 0, 0, 0)
if pid == 0:
    mounted = libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)
    os._exit(0 if mounted == 0 else 1)
out(pid > 0 and os.waitpid(pid, 0)[1] == 0)
""",
        without=("--seccomp",),
    ),
    "a user namespace by clone3": Attempt(
        """
arguments = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)
pid = libc.syscall(435, arguments, 88)
if pid == 0:
    os._exit(0)
out(pid > 0)
""",
        without=("--seccomp",),
    ),
    "a mount": Attempt('out(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0)', without=("--seccomp", *PLAIN_ROOT)),
    "taking the cover of /proc away": Attempt(
        'out(libc.mount(b"none", b"/proc", None, 32, None) == 0)', without=("--seccomp", *PLAIN_ROOT)
    ),
    "a mount by open_tree": Attempt('out(libc.syscall(428, -100, b"/", 1) >= 0)', without=("--seccomp", *PLAIN_ROOT)),
    "a filesystem by fsopen": Attempt('out(libc.syscall(430, b"tmpfs", 0) >= 0)', without=("--seccomp", *PLAIN_ROOT)),
    "pivot_root": Attempt(
        """
number = 155 if os.uname().machine == "x86_64" else 41
ctypes.set_errno(0)
result = libc.syscall(number, b".", b".")
out(result == 0 or not refused_as_forbidden(result))
""",
        without=("--seccomp", *PLAIN_ROOT),
    ),
    "chroot, and back out through a directory that is open": Attempt(
        """
here = os.open("/", os.O_RDONLY)
out(libc.chroot(b"/tmp") == 0 and works(os.fchdir, here))
""",
        without=("--seccomp", *PLAIN_ROOT),
    ),
    "another process' namespaces": Attempt(
        """
ctypes.set_errno(0)
own = os.open("/proc/self/ns/mnt", os.O_RDONLY)
result = libc.setns(own, 0)
out(result == 0 or not refused_as_forbidden(result))
""",
        without=("--seccomp", *PLAIN_ROOT),
    ),
    "a file by its handle": Attempt(
        """
number = 304 if os.uname().machine == "x86_64" else 265
handle = struct.pack("=Ii", 8, 1) + bytes(120)
ctypes.set_errno(0)
here = os.open("/tmp", os.O_RDONLY)
result = libc.syscall(number, here, ctypes.c_char_p(handle), 0)
out(result >= 0 or not refused_as_forbidden(result))
""",
        without=("--seccomp", *PLAIN_ROOT),
    ),
    "a new device node": Attempt(
        """
try:
    os.mknod("/dev/shm/node", stat.S_IFCHR | 0o666, os.makedev(1, 1))
except OSError:
    out(False)
else:
    out(True)
""",
        without=PLAIN_ROOT,
    ),
    "a device node that lies in base": Attempt(
        'out(works(lambda: os.close(os.open(f"{project}/node", os.O_RDONLY))))',
        without=("--bind VIEW /",),
        extra=("--dev-bind", "/", "/"),
    ),
    "settings of the kernel": Attempt(
        """
path = "/proc/sys/kernel/core_pattern"
before = open(path, "rb").read()
def write():
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, before)
    os.close(fd)
out(works(write))
""",
        without=("--remount-ro /proc",),
    ),
    "the mode and times of a device": Attempt(
        """
st = os.stat("/dev/full")
out(works(lambda: os.utime("/dev/full", ns=(st.st_atime_ns, st.st_mtime_ns))) or works(os.chmod, "/dev/full", 0o666))
""",
        without=(HOST_FILES,),
    ),
    "the mode and times of the program that makes the sandbox": Attempt(
        """
if not os.path.exists("/proc/1/exe"):
    out(False)
    raise SystemExit
st = os.stat("/proc/1/exe")
out(works(lambda: os.utime("/proc/1/exe", ns=(st.st_atime_ns, st.st_mtime_ns))))
""",
        without=(HOST_FILES, FIRST_PROCESS),
    ),
    "the mode and times of the restricted socket": Attempt(
        """
agent = os.path.join(os.path.dirname(os.path.dirname(control)), "agent.sock")
st = os.stat(agent)
out(works(lambda: os.utime(agent, ns=(st.st_atime_ns, st.st_mtime_ns))))
""",
        without=(),
        extra=("--bind", "AGENT", "AGENT_INSIDE"),
    ),
    "/sys": Attempt('out(bool(os.listdir("/sys")))', without=(NATIVE_BINDS,), extra=("--bind", "/sys", "/sys")),
    "the overlays aside, which show more than the parts that are bound": Attempt(
        'out(bool(os.listdir("/sys")))', without=(), extra=("--bind", "/sys", "/sys")
    ),
    "the control socket": Attempt(
        """
found = [control, f"/proc/self/root{control}", os.path.join(os.path.dirname(control), "mnt/../control.sock")]
def connect(path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
out(any(works(connect, path) for path in found))
""",
        without=("--remount-ro RUNTIME",),
        extra=("--bind", "CONTROL", "CONTROL"),
    ),
    "the session's directory": Attempt(
        """
def is_taken(path):
    try:
        os.mkdir(path)
    except OSError as error:
        return error.errno == errno.EEXIST
    os.rmdir(path)
    return False
root = os.open("/", os.O_RDONLY)
out_by_each({
    "path": os.path.lexists(session),
    "journal": os.path.lexists(f"{session}/journal"),
    "root": os.path.lexists(f"/proc/self/root{session}"),
    "descriptor": os.path.lexists(f"/proc/self/fd/{root}{session}/journal"),
    "from the project": os.path.lexists(f"{project}/{os.path.relpath(session, project)}"),
    "listing": os.path.isdir(above := os.path.dirname(session)) and os.path.basename(session) in os.listdir(above),
    "its name": is_taken(session),
})
""",
        without=("--bind VIEW /",),
        extra=("--bind", "/", "/"),
    ),
    "the link to the session's directory": Attempt(
        """
out_by_each({
    "path": os.path.lexists(f"{project}/.yolofs"),
    "where it leads": os.path.exists(f"{project}/.yolofs/journal"),
    "by another link": os.path.exists(f"{project}/link/journal"),
    "from beside": os.path.exists(f"{project}/../project/.yolofs/journal"),
    "listing": ".yolofs" in os.listdir(project),
})
""",
        without=("--bind VIEW /",),
        extra=("--bind", "/", "/"),
    ),
    "a file in a directory that comes straight from base": Attempt(
        """
def write():
    os.close(os.open(f"{static}/file", os.O_WRONLY))
out(works(write) or works(os.mkdir, f"{static}/made") or works(os.rename, f"{static}/file", f"{static}/moved"))
""",
        without=(),
        extra=("--bind", "STATIC", "STATIC"),
    ),
    "a lease on a file that comes straight from base, for which the host would wait": Attempt(
        """
held = os.open(f"{static}/file", os.O_RDONLY)
out(works(fcntl.fcntl, held, fcntl.F_SETLEASE, fcntl.F_WRLCK))
""",
        without=("--seccomp",),
    ),
    "a device node in a directory that comes straight from base": Attempt(
        'out(works(lambda: os.close(os.open(f"{static}/node", os.O_RDONLY))))',
        without=(),
        extra=("--dev-bind", "STATIC", "STATIC"),
    ),
    "a socket of a program outside": Attempt(
        """
with socket.socket(socket.AF_UNIX) as sock:
    out(works(sock.connect, f"{live}/socket/socket"))
""",
        without=(),
        extra=("--ro-bind", "LIVE", "LIVE"),
    ),
    "a fifo that a program outside reads": Attempt(
        'out(works(os.open, f"{live}/fifo/fifo", os.O_WRONLY | os.O_NONBLOCK))',
        without=(),
        extra=("--ro-bind", "LIVE", "LIVE"),
    ),
    "the directory of another session": Attempt(
        'out(os.path.lexists(f"{other_session}/journal"))',
        without=("--bind VIEW /",),
        extra=("--bind", "/", "/"),
    ),
    "the directory of a session of an earlier version": Attempt(
        'out(os.path.exists(f"{live}/session/.yolofs/journal"))',
        without=(),
        extra=("--ro-bind", "LIVE", "LIVE"),
    ),
    "the real files": Attempt(
        """
with contextlib.suppress(OSError):
    open(f"{project}/real", "w").write("changed")
out(open(f"{project}/real").read() == "changed" and os.path.lexists(f"{session}/journal"))
""",
        without=("--bind VIEW /",),
        extra=("--bind", "/", "/"),
    ),
    "keys that the kernel keeps for the user": Attempt(
        """
number = 250 if os.uname().machine == "x86_64" else 219
out(libc.syscall(number, 0, -4, 1) >= 0)
""",
        without=("--seccomp",),
    ),
    "shared memory of System V": Attempt(
        """
import pathlib
out(shm_key in pathlib.Path("/proc/sysvipc/shm").read_text())
""",
        without=("--unshare-ipc",),
    ),
}
