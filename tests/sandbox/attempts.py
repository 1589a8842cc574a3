"""Programs that try to get out of the sandbox.  Each prints ``out`` if it did, or ``kept in``.

They are run in the sandbox as it is, where they must be kept in, and in one that lacks what keeps them in, where they
must get out: an attempt that never works shows nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = """
import contextlib, ctypes, errno, fcntl, os, signal, socket, stat, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
project, victim, control, hosts_only = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
static, live = (os.path.join(os.path.dirname(project), name) for name in ("static", "live"))
def out(is_out):
    print("out" if is_out else "kept in")
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

PLAIN_ROOT = ("--unshare-user", "--cap-drop ALL")
"""Without these root in the sandbox is root outside."""


HOST_FILES = "read-only host files"
"""Stands for what is mounted before bubblewrap is started; no option."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A way out."""

    script: str
    without: tuple[str, ...]
    """Options of bubblewrap that keep it in."""
    extra: tuple[str, ...] = ()
    """Options that open the way in their place; PROJECT and so on are replaced."""


NAMESPACE = "--unshare-pid"

ATTEMPTS: dict[str, Attempt] = {
    "the roots of other processes": Attempt(
        """
found = False
for name in os.listdir("/proc"):
    if name.isdigit() or name in ("self", "thread-self"):
        found |= os.path.lexists(f"/proc/{name}/root{project}/.yolofs/journal")
        found |= os.path.lexists(f"/proc/{name}/cwd/{project}/.yolofs/journal")
out(found)
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
st = os.stat("/proc/1/exe")
out(works(lambda: os.utime("/proc/1/exe", ns=(st.st_atime_ns, st.st_mtime_ns))))
""",
        without=(HOST_FILES,),
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
    "/sys": Attempt('out(os.path.exists("/sys/kernel"))', without=("--seccomp",), extra=("--bind", "/sys", "/sys")),
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
import glob
paths = [f"{project}/.yolofs", f"{project}/link", f"{project}/../project/.yolofs/journal"]
paths.append(f"/proc/self/cwd{project}/.yolofs")
found = any(os.path.exists(path) for path in paths) or ".yolofs" in os.listdir(project)
try:
    os.mkdir(f"{project}/.yolofs")
except FileExistsError:
    found = True
except OSError:
    pass
out(found)
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
        'out(os.path.exists(f"{live}/session/.yolofs/journal"))',
        without=(),
        extra=("--ro-bind", "LIVE", "LIVE"),
    ),
    "the real files": Attempt(
        """
with contextlib.suppress(OSError):
    open(f"{project}/real", "w").write("changed")
out(open(f"{project}/real").read() == "changed" and os.path.lexists(hosts_only.split(":")[0]))
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
out(hosts_only.split(":")[-1] in pathlib.Path("/proc/sysvipc/shm").read_text())
""",
        without=("--unshare-ipc",),
    ),
}
