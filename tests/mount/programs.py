"""Real programs, to be run in the view and in a plain directory, and compared.

``python programs.py NAME...`` runs the functions of these names in the current directory, which
:func:`prepare` has filled, and prints as one JSON document what came out of each.  The functions
delete what differs between any two runs: files that hold times, inode numbers or absolute paths.
"""

from __future__ import annotations

import concurrent.futures
import dbm
import hashlib
import json
import multiprocessing
import os
import pty
import re
import select
import shelve
import shutil
import sqlite3
import struct
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PACKAGES = "json", "email", "logging"
DEADLINE_S = 60.0
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON", "VIRTUAL_ENV"))},
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_EDITOR": "true",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def sh(script: str, at: str | Path = ".") -> str:
    """Run a shell script, which has to succeed; return what it prints."""
    done = subprocess.run(["sh", "-euc", script], cwd=at, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def prepare(root: Path) -> None:
    """Fill a directory: a library of Python, a repository with some history, a database, a project
    in C.
    """
    stdlib = Path(sysconfig.get_path("stdlib"))
    for package in PACKAGES:
        shutil.copytree(stdlib / package, root / "library" / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(root / "library", root / "repo")
    sh(
        """
        git init -q -b main . && git config gc.auto 0 && git config pack.threads 1
        git add -A && git commit -qm one
        git checkout -qb topic && sed -i 's/self/SELF/' json/*.py && git commit -qam 'on topic'
        echo more >> json/tool.py && git commit -qam 'more on topic'
        git checkout -q main && git mv email post && git commit -qm 'a move' && git tag v1
        """,
        root / "repo",
    )
    for name, mode in (("rollback.db", "delete"), ("wal.db", "wal")):
        with sqlite3.connect(root / name) as database:
            database.execute(f"pragma journal_mode = {mode}")
            database.execute("create table entries (writer integer, number integer, text text)")
            database.executemany("insert into entries values (-1, ?, ?)", [(n, "x" * n) for n in range(100)])
        database.close()
    _prepare_c_project(root / "c")
    (root / "notes.txt").write_text("first line\nlast line\n")
    (root / "notes.txt").chmod(0o640)


def _prepare_c_project(directory: Path) -> None:
    directory.mkdir()
    count = 8
    objects = " ".join(f"part{n}.o" for n in range(count))
    (directory / "common.h").write_text("#define STEP 1\n" + "".join(f"int part{n}(void);\n" for n in range(count)))
    for n in range(count):
        (directory / f"part{n}.c").write_text(f'#include "common.h"\nint part{n}(void) {{ return {n} * STEP; }}\n')
    total = " + ".join(f"part{n}()" for n in range(count))
    (directory / "main.c").write_text(
        f'#include <stdio.h>\n#include "common.h"\nint main(void) {{ printf("%d\\n", {total}); return 0; }}\n'
    )
    (directory / "Makefile").write_text(
        f"program: main.o libparts.a\n\tcc -o $@ main.o libparts.a\n"
        f"libparts.a: {objects}\n\trm -f $@ && ar rcsD $@ {objects}\n"
        "%.o: %.c common.h\n\tcc -c -o $@ $<\n"
        'check: program\n\ttest "$$(./program)" = 28\n\t@echo passed\n'
        "clean:\n\trm -f *.o *.a program\n"
    )


# ---- version control


def git() -> Any:
    """Clone, commit, rebase, worktree, stash, merge, gc and fsck."""
    results = {
        "status": sh("git status --porcelain", "repo"),
        "clone": sh("git clone -q repo clone && git clone -q --no-local --bare repo bare.git && ls bare.git"),
    }
    sh("git config gc.auto 0 && git config pack.threads 1 && git branch topic origin/topic", "clone")
    results |= {
        "commit": sh("echo new > new && git add new && git commit -qm new && git rev-parse HEAD", "clone"),
        "rebase": sh("git rebase -q main topic && git rev-parse HEAD && git ls-files | sort && git status -s", "clone"),
        "interactive": sh(
            "GIT_SEQUENCE_EDITOR='sed -i 2s/pick/squash/' git rebase -qi main && git log -1 --format=%T", "clone"
        ),
        "worktree": sh(
            "git worktree add -q ../tree v1 && cd ../tree && git mv post letters && git commit -qam letters "
            "&& git rev-parse HEAD && git status -s && cd ../clone && git worktree list | wc -l",
            "clone",
        ),
        "stash": sh("echo x >> new && git stash -q && git status -s && git stash pop -q && git diff --stat", "clone"),
        "merge": sh(
            "git checkout -q . && git checkout -q main && git merge -q --no-ff -m merged topic "
            "&& git rev-parse HEAD^{tree}",
            "clone",
        ),
        "reset": sh("git reset -q --hard HEAD~1 && git clean -qfdx && git status -s && git rev-parse HEAD", "clone"),
        "remove the worktree": sh(
            "git worktree remove ../tree && git worktree prune && git worktree list | wc -l", "clone"
        ),
        "gc": sh("git gc -q --prune=now && git count-objects -v && git fsck --full --strict 2>&1", "clone"),
        "in place": sh("git gc -q --aggressive --prune=now && git fsck --full --strict 2>&1 && git status -s", "repo"),
        "push": sh(
            "git push -q --force ../bare.git topic v1 && cd ../bare.git && git fsck --full --strict && git show-ref",
            "clone",
        ),
        "objects": sh("git rev-list --objects --all | sort | sha256sum", "clone"),
        "bundle": sh(
            "git bundle create -q ../all.bundle --all && git bundle verify -q ../all.bundle && echo good", "clone"
        ),
    }
    results["gc"] = re.sub(r"size-pack: .*", "", results["gc"])
    for name in ("clone/.git", "bare.git", "repo/.git", "all.bundle"):
        sh(f"rm -rf {name}")
    return results


# ---- databases


def _write_entries(path: str, writer: int, count: int) -> None:
    database = sqlite3.connect(path, timeout=DEADLINE_S, isolation_level=None)
    for number in range(count):
        database.execute("begin immediate")
        (seen,) = database.execute("select count(*) from entries where writer = ?", (writer,)).fetchone()
        assert seen == number, f"{seen} entries of {number} are there"
        database.execute("insert into entries values (?, ?, ?)", (writer, number, "y" * (number * 37 % 3000)))
        if number % 10 == 9:
            database.execute("update entries set text = text || '!' where writer = -1")
        database.execute("commit")
    database.close()


def _sqlite(path: str, writers: int, count: int) -> Any:
    processes = [multiprocessing.Process(target=_write_entries, args=(path, n, count)) for n in range(writers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    database = sqlite3.connect(path)
    results: list[Any] = [
        [process.exitcode for process in processes],
        database.execute("pragma integrity_check").fetchall(),
        database.execute("pragma journal_mode").fetchall(),
        database.execute("select writer, count(*), sum(number), sum(length(text)) from entries group by 1").fetchall(),
    ]
    database.close()
    results += [sh(f"sqlite3 {path} 'pragma integrity_check; select count(*) from entries'"), sorted(os.listdir())]
    os.unlink(path)
    return results


def sqlite_in_rollback_mode() -> Any:
    """Two processes write to a database that keeps a rollback journal."""
    return _sqlite("rollback.db", 2, 100)


def sqlite_in_wal_mode() -> Any:
    """Two processes write to a database with a write-ahead log, whose index they share by mmap."""
    return _sqlite("wal.db", 2, 150)


def _fill_shelf(number: int) -> int:
    with shelve.open(f"shelves/{number}") as shelf:
        for key in range(60):
            shelf[f"key {key}"] = {"number": number, "text": "z" * key}
        shelf.sync()
        for key in range(0, 60, 3):
            del shelf[f"key {key}"]
        shelf["last"] = number
    with shelve.open(f"shelves/{number}", "r") as shelf:
        return len(shelf)


def shelves_of_a_process_pool() -> Any:
    """Four processes write a dozen shelves."""
    os.mkdir("shelves")
    with concurrent.futures.ProcessPoolExecutor(4) as pool:
        counts = list(pool.map(_fill_shelf, range(12)))
    contents = []
    for number in range(12):
        with shelve.open(f"shelves/{number}", "r") as shelf:
            contents.append(sorted((key, repr(shelf[key])) for key in shelf))
    kind = dbm.whichdb("shelves/0")
    names = sorted(os.listdir("shelves"))
    shutil.rmtree("shelves")
    return [counts, kind, names, hashlib.sha256(repr(contents).encode()).hexdigest()]


# ---- copying


def _make_everything(directory: Path) -> None:
    """Add one of each kind that copying programs know to a directory."""
    os.link(directory / "json/tool.py", directory / "hard")
    os.link(directory / "json/tool.py", directory / "email/hard")
    os.symlink("json/tool.py", directory / "soft")
    os.symlink("nowhere", directory / "dangling")
    os.mkfifo(directory / "fifo")
    (directory / "names").mkdir(mode=0o2750)
    for name in ("with space", "n" * 255, "new\nline", "ümlaut"):
        (directory / "names" / name).write_text(name)
    with (directory / "sparse").open("wb") as file:
        file.seek(5 << 20)
        file.write(b"data" * 5000)
        file.truncate(16 << 20)
    (directory / "email/mime").chmod(0o700)
    os.utime(directory / "json", ns=(1_111_111_111_222_333_444, 1_222_222_222_333_444_555))


def rsync() -> Any:
    """With everything it can keep; a second run finds nothing to do, a third only what has
    changed.
    """
    _make_everything(Path("library"))
    sh("touch -d @1000000000 library")  # rsync compares seconds, and it changes again below
    copy = "rsync -aHAX --sparse --delete --itemize-changes library/ copy/"
    results: list[Any] = [len(sh(copy).splitlines()), sh(copy), sh(f"{copy} --checksum")]
    assert results[1] == "", "the second run transfers something"
    sh("echo changed >> copy/json/tool.py; rm copy/soft; touch library/json/scanner.py; mv library/hard library/firm")
    sh("touch -d @1000000001 library")  # the copy's has changed too, perhaps in the same second
    results += [sorted(sh(copy).splitlines()), sh(copy), os.lstat("copy/sparse").st_blocks < 1000]
    return [*results, sh("rm library/fifo copy/fifo; diff -r --no-dereference library copy")]


def rsync_of_xattrs() -> Any:
    """The same where there are extended attributes, an ACL among them."""
    acl = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, rights, who)
        for tag, rights, who in (
            (1, 6, 0xFFFFFFFF),
            (2, 4, 12345),
            (4, 4, 0xFFFFFFFF),
            (16, 4, 0xFFFFFFFF),
            (32, 0, 0xFFFFFFFF),
        )
    )
    os.setxattr("library/json/tool.py", "user.note", b"kept")
    os.setxattr("library/json", "user.of a directory", b"\0\xff")
    os.setxattr("library/json/decoder.py", "system.posix_acl_access", acl)
    copy = "rsync -aHAX --delete --itemize-changes library/ copy/"
    results: list[Any] = [len(sh(copy).splitlines()), sh(copy)]
    assert results[1] == "", "the second run transfers something"
    os.setxattr("library/json/tool.py", "user.note", b"changed")
    results += [sh(copy), sh(copy)]
    for name in ("json", "json/tool.py", "json/decoder.py"):
        path = f"copy/{name}"
        attributes = {key: os.getxattr(path, key).hex() for key in os.listxattr(path)}
        results.append([name, attributes, oct(os.stat(path).st_mode)])
    return results


def tar() -> Any:
    """A round trip with hard links, sparse files, times and modes; tar finds no difference, nor
    does diff.
    """
    _make_everything(Path("library"))
    sh("tar --sparse --format=posix -cf library.tar library && mkdir out && tar -xpf library.tar -C out")
    results = [
        sh("tar --compare -f library.tar -C out 2>&1 || true"),
        sh("tar -tf library.tar | sort"),
        os.stat("out/library/hard").st_nlink,
        os.path.samefile("out/library/hard", "out/library/email/hard"),
        os.lstat("out/library/sparse").st_blocks < 1000,
        os.stat("library.tar").st_size < 4 << 20,
        os.stat("out/library/json").st_mtime_ns,
        sh("cd out && find . -printf '%P %y %m %s %l\\n' | sed 's|^\\(.*\\) d \\(.*\\) .*|\\1 d \\2|' | sort"),
    ]
    os.unlink("library.tar")
    return results


def make() -> Any:
    """A parallel build, its test, and the rebuild of what has changed."""
    results: dict[str, Any] = {
        "all": sorted(sh("make -j2 check", "c").splitlines()),
        "again": sh("make -j2 check | tail -1; make -q program && echo 'up to date'", "c"),
        "one": sorted(sh("sleep 0.01; touch part3.c && make -j2 program", "c").splitlines()),
        "header": len(sh("sleep 0.01; touch common.h && make -j2 check", "c").splitlines()),
        "run": sh("./program", "c"),
        "clean": sh("make clean && ls", "c"),
    }
    assert "passed" in results["all"]
    return results


# ---- installing


def _make_wheel(directory: Path) -> Path:
    """Write a wheel with a package and a command."""
    path = directory / "greeting-1.0-py3-none-any.whl"
    files = {
        "greeting/__init__.py": "def main():\n    print('hello from', __name__)\n",
        "greeting/data/list.txt": "data\n",
        "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
        "greeting-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "greeting-1.0.dist-info/entry_points.txt": "[console_scripts]\ngreet = greeting:main\n",
    }
    record = "".join(f"{name},,\n" for name in files) + "greeting-1.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in (files | {"greeting-1.0.dist-info/RECORD": record}).items():
            wheel.writestr(zipfile.ZipInfo(name), text)
    return path


def _installed(environment: str) -> list[str]:
    """Return what an environment's library holds, without what Python compiled on the way."""
    found = Path(environment).glob("lib/python*/site-packages/**/*")
    return sorted(str(path.relative_to(environment)) for path in found if "__pycache__" not in path.parts)


def pip() -> Any:
    """Make a virtual environment, install into it, run what was installed, and uninstall it."""
    wheel = _make_wheel(Path())
    sh(f"{sys.executable} -m venv --without-pip env")
    pip = f"{sys.executable} -m pip --python env/bin/python -q --disable-pip-version-check --no-input"
    results = [
        sh(f"{pip} install --no-index ./{wheel} && env/bin/greet"),
        sh("env/bin/python -c 'import greeting, sys; print(greeting.__file__.partition(\"/env/\")[2])'"),
        _installed("env"),
        sh(f"{pip} uninstall -y greeting && ls env/bin | sort"),
        _installed("env"),
    ]
    shutil.rmtree("env")
    return results


# ---- editors


def _at_terminal(command: Sequence[str], keys: str) -> int:
    """Run a command at a pseudo-terminal and type ``keys`` once it has drawn its screen; return its
    exit code.
    """
    pid, master = pty.fork()
    if pid == 0:
        os.execvpe(command[0], list(command), ENVIRONMENT | {"TERM": "xterm", "HOME": os.getcwd()})
    deadline = time.monotonic() + DEADLINE_S
    is_drawn = is_typed = False
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 0.1)
        try:
            if ready:
                is_drawn = bool(os.read(master, 65536))
                if not is_drawn:
                    break
            elif is_drawn and not is_typed:
                os.write(master, keys.encode())
                is_typed = True
        except OSError:  # EIO: it has ended
            break
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def vim() -> Any:
    """Saves of all its kinds, in a terminal: over the file itself, by rename, with a backup
    kept.
    """
    assert shutil.which("vim"), "vim is not there; scripts/setup.sh installs it"
    results: list[Any] = []
    os.link("notes.txt", "linked.txt")
    Path("other.txt").write_text("other\n")
    for number, (name, options) in enumerate(
        (
            ("notes.txt", "set backupcopy=auto"),
            ("other.txt", "set backupcopy=no"),
            ("other.txt", "set backupcopy=yes backup"),
            ("new.txt", "set undofile backupcopy=no"),
        )
    ):
        before = os.stat(name).st_ino if os.path.exists(name) else 0
        command = ["vim", "-Nu", "NONE", "-i", "NONE", "-c", f"{options} backupskip=", name]
        code = _at_terminal(command, f"Go{number} typed\x1b:wq\r")
        st = os.stat(name)
        results.append([code, Path(name).read_text(), oct(st.st_mode), st.st_nlink, st.st_ino == before])
        results.append(sorted(entry for entry in os.listdir() if entry.endswith(("~", ".swp", ".un~", ".viminfo"))))
    Path(".new.txt.un~").unlink()
    return results


def saves_as_emacs_does() -> Any:
    """What Emacs does to save: a lock, an autosave, a backup by renaming or copying, a precious
    file by rename.
    """
    results: list[Any] = []
    for number, (by_copying, is_precious) in enumerate(((False, False), (True, False), (False, True), (True, True))):
        os.symlink(f"user@host.{os.getpid()}:1", ".#notes.txt")
        mode = os.stat("notes.txt").st_mode & 0o7777
        Path("#notes.txt#").write_text("autosaved")
        if by_copying:
            shutil.copy2("notes.txt", "notes.txt~")
        elif not is_precious:
            os.rename("notes.txt", "notes.txt~")
        target = f"notes.txt.{number}.tmp" if is_precious else "notes.txt"
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.write(fd, f"saved {number}\n".encode() * 3000)
        os.fsync(fd)
        os.close(fd)
        os.chmod(target, mode)
        if is_precious:
            os.rename(target, "notes.txt")
        Path("#notes.txt#").unlink()
        Path(".#notes.txt").unlink()
        results += [sorted(os.listdir()), oct(os.stat("notes.txt").st_mode), Path("notes.txt~").read_text()[:20]]
    return results


# ---- only by night: what needs the network, or minutes


def pip_from_an_index() -> Any:
    """Install packages from the index, compiled ones among them, and use them."""
    sh(f"{sys.executable} -m venv env")
    sh("env/bin/pip install -q --disable-pip-version-check --no-input 'rich==13.9.4' 'msgspec==0.19.0' 'six==1.17.0'")
    use = "import msgspec, six; from rich.text import Text; print(msgspec.json.encode([1]), six.PY3, Text('x').plain)"
    results = [sh(f'env/bin/python -c "{use}"'), sh("env/bin/pip freeze"), _installed("env")]
    shutil.rmtree("env")
    return results


def npm() -> Any:
    """Install packages from the registry, use them, and install again from the lock file."""
    assert shutil.which("npm"), "npm is not there; scripts/setup.sh --nightly installs it"
    os.mkdir("app")
    install = "npm {} --no-audit --no-fund --no-update-notifier --loglevel=error --cache ../npm-cache"
    Path("app/package.json").write_text('{"name": "app", "version": "1.0.0", "private": true}\n')
    sh(install.format("install express@4.21.2 left-pad@1.3.0"), "app")
    use = "const e = require('express'); console.log(typeof e(), require('left-pad')('x', 5))"
    listed = "find node_modules -type f -o -type l | sort"
    results = [sh(f'node -e "{use}"', "app"), sh(listed, "app"), sh("cat package-lock.json", "app")]
    sh(install.format("ci"), "app")
    results += [sh(f'node -e "{use}"', "app"), sh(listed, "app"), sh("npm ls --all | tail -n +2", "app")]
    shutil.rmtree("npm-cache")
    Path("app/node_modules/.package-lock.json").unlink(missing_ok=True)
    return results


def debian_package() -> Any:
    """Configure, build with two jobs and test a source package of Debian, whose archive was fetched
    before.
    """
    (archive,) = Path(os.environ["YOLOFS_TEST_SOURCE"]).glob("*.orig.tar.?z")
    sh(f"tar -xf {archive} && mv gzip-* gzip")
    sh("./configure -q --disable-dependency-tracking >configure.log 2>&1", "gzip")
    sh("make -j2 >make.log 2>&1", "gzip")
    done = subprocess.run(
        ["make", "-j2", "check"], cwd="gzip", env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    summary = re.findall(r"^# (TOTAL|PASS|SKIP|XFAIL|FAIL|XPASS|ERROR): +(\d+)$", done.stdout, re.MULTILINE)
    tests = sorted(re.findall(r"^(?:PASS|FAIL|SKIP|XFAIL|ERROR): .*$", done.stdout, re.MULTILINE))
    results = [done.returncode, summary, tests, sh("./gzip -c configure.ac | ./gzip -dc | cmp - configure.ac", "gzip")]
    shutil.rmtree("gzip")
    return results


if __name__ == "__main__":
    print(json.dumps({name: globals()[name]() for name in sys.argv[1:]}))  # noqa: T201 - what the test reads
