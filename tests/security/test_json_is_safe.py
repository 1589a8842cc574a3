"""All that yolofs prints can be shown on a terminal, whatever programs and other users have called
things.

As JSON it says the same: a reader gets back exactly what was there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from tests.support.asking import Reader, reader
from tests.support.fault_points import points
from tests.support.program import COMMAND, Done, Program, wait_until
from tests.support.terminal import Terminal
from tests.support.watching import alone, waiting
from yolofs.session import feedback
from yolofs.session.feedback import Dropped
from yolofs.text.json_text import encode_json

pytestmark = pytest.mark.mount

CONTROLS = "".join(map(chr, [*range(1, 0x20), *range(0x7F, 0xA0)]))
TURNS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
UNSEEN = "\u00ad\u034f\u180e\u200b\u200c\u200d\u2028\u2029\u2060\u2063\u3164\ufeff\ufe0f\ufff9\U000e0041\U000e0100"
HOSTILE = "\x1b[2Jé日" + CONTROLS + TURNS + UNSEEN + "end"
NAMES = [
    b"\x1b]0;title\x07",
    CONTROLS.encode(),
    TURNS.encode() + b".txt",
    UNSEEN.encode(),
    b"\x9b31m\xff",  # no UTF-8; the first byte steers terminals of another time
    b"\xed\xa0\x80",  # a surrogate
    "é日本\U0001f600".encode(),
    b'quote"back\\slash',
]


@pytest.fixture(scope="module")
def yolofs(tmp_path_factory: pytest.TempPathFactory, traces: object) -> Iterator[Program]:
    """A mounted project in which everything has a hostile name: files, snapshots, commands, rules,
    processes.
    """
    project = tmp_path_factory.mktemp("json") / os.fsdecode(b"p\x1b[31m\xc2\x9b\xe2\x80\xae\xff")
    project.mkdir()
    for at, name in enumerate(NAMES):
        (project / os.fsdecode(b"base%d" % at + name)).write_text("old\n")
    (project / "secret").mkdir()
    for name in NAMES:
        (project / "secret" / os.fsdecode(name)).write_text("s\n")
    program = Program(project)
    program.start_session()
    (project / ".yolofs.toml").write_text('scratch = []\n[rules]\n"." = "allow"\nsecret = "ask"\n')
    program.trust()
    view = Path(program("mount", "--root", "/").out.rstrip("\n")) / str(project)[1:]
    try:
        for at, name in enumerate(NAMES):
            (view / os.fsdecode(name)).write_text("new\n")
            (view / os.fsdecode(b"base%d" % at + name)).rename(view / os.fsdecode(name + b"moved"))
            program("snapshot", name)
            program("run", "--no-snapshot", "--", "true", name)
            program("rule", "deny", os.fsdecode(b"secret/denied" + name))
        program("travel", os.fsdecode(NAMES[0]))
        program("travel", "-")
        root = os.fsencode(project)[1:] + b"/"
        things = [Dropped(root + name, "text", (b"+" + name,)) for name in NAMES]
        feedback.add(os.fsencode(program.session), things, "\x1b[2J\u202e")
        yield program
    finally:
        program("unmount", "--force")


def check(text: str) -> None:
    """Fail if there is anything in a text that a terminal must not get."""
    bad = {
        f"U+{ord(char):04X}"
        for char in set(text)
        if char != "\n" and (not char.isprintable() or char in UNSEEN or unicodedata.category(char).startswith("C"))
    }
    assert not bad, f"{sorted(bad)} in {text!r}"


def all_strings(document: Any) -> Iterator[str]:
    match document:
        case str():
            yield document
        case dict():
            for key, value in document.items():
                yield from all_strings(key)
                yield from all_strings(value)
        case list():
            for value in document:
                yield from all_strings(value)


def names_in(document: Any) -> set[bytes]:
    """Return the names of all paths, exactly."""
    found = set()

    def look(value: Any) -> None:
        match value:
            case dict():
                for key, one in value.items():
                    if isinstance(one, str) and not key.endswith("_bytes"):
                        exact = value.get(f"{key}_bytes")
                        raw = unquote_to_bytes(exact) if exact is not None else one.encode()
                        found.add(raw)
                        found.add(os.path.basename(raw))
                    look(one)
            case list():
                for one in value:
                    look(one)

    look(document)
    return found


JSON_COMMANDS: dict[str, tuple[str, ...]] = {
    "status": ("status", "--json", "--hidden"),
    "diff": ("diff", "--json", "all"),
    "hunks": ("hunks", "--json", "--hidden"),
    "log": ("log", "--json"),
    "feedback": ("feedback", "--json"),
    "runs": ("runs", "--json"),
    "timeline": ("timeline", "--json"),
    "sessions": ("sessions", "--json"),
    "trust": ("trust", "--json"),
    "rule list": ("rule", "list", "--json"),
    "rule test": ("rule", "test", "--json"),
    "asks": ("asks", "--json"),
    "doctor": ("doctor", "--json"),
    "snapshot": ("snapshot", "--json", "--if-changed"),
    "commits": ("commits", "--json"),
    "gc": ("gc", "--json", "--dry-run"),
}


def shown(yolofs: Program, *words: str | bytes | Path, **how: Any) -> Done:
    done = yolofs(*words, **how)
    check(done.out)
    check(done.err)
    return done


@pytest.mark.parametrize("command", JSON_COMMANDS)
@pytest.mark.some(4)
def test_json_with_hostile_names_is_safe_for_a_terminal(yolofs: Program, command: str) -> None:
    code = 0
    if command == "doctor":
        code = subprocess.run([*COMMAND, "doctor"], cwd=yolofs.project, capture_output=True).returncode
    document = json.loads(shown(yolofs, *JSON_COMMANDS[command], code=code).out)
    assert document


def test_json_gives_back_the_same_names(yolofs: Program) -> None:
    assert set(NAMES) <= names_in(shown(yolofs, "status", "--json").json)
    assert set(NAMES) <= names_in(shown(yolofs, "diff", "--json").json)
    assert set(NAMES) <= names_in(shown(yolofs, "hunks", "--json").json)
    assert set(NAMES) <= names_in(shown(yolofs, "log", "--json").json)
    assert set(NAMES) <= names_in(shown(yolofs, "feedback", "--json").json)
    assert set(NAMES) <= names_in(shown(yolofs, "timeline", "--json").json)
    runs = shown(yolofs, "runs", "--json").json["runs"]
    words = [list(map(unquote_to_bytes, run["command_bytes"])) for run in runs if "command_bytes" in run]
    words += [[word.encode() for word in run["command"]] for run in runs if "command_bytes" not in run]
    assert {one[-1] for one in words} >= set(NAMES)


@pytest.mark.parametrize("name", points(NAMES, "said of one path", some=3))
def test_messages_about_one_hostile_path_are_safe_for_a_terminal(yolofs: Program, name: bytes) -> None:
    path = os.fsdecode(b"./" + name)
    assert name in names_in(shown(yolofs, "blame", "--json", path).json)
    assert name in names_in(shown(yolofs, "rule", "explain", "--json", path).json)
    shown(yolofs, "blame", path)
    shown(yolofs, "rule", "explain", path)
    shown(yolofs, "rule", "unset", path, code=2)
    shown(yolofs, "blame", path + "nowhere", code=2)
    shown(yolofs, "diff", "--list", "--", path)
    shown(yolofs, "hunks", "--", path)
    shown(yolofs, "commit", "--yes", path + "nowhere", code=2)
    shown(yolofs, "travel", path + "nowhere", code=7)
    shown(yolofs, path, code=2)
    shown(yolofs, "run", "--", path + "nowhere", code=127)
    shown(yolofs, "status", os.fsdecode(b"--" + name), code=2)


@pytest.mark.parametrize(
    "words",
    [
        ("status", "--hidden"),
        ("log",),
        ("runs",),
        ("timeline",),
        ("rule", "list", "--all"),
        ("rule", "test"),
        ("asks",),
        ("feedback",),
    ],
    ids=" ".join,
)
def test_lists_with_hostile_names_are_safe_for_a_terminal(yolofs: Program, words: tuple[str, ...]) -> None:
    shown(yolofs, *words)


def test_the_summary_of_a_run_is_safe_and_says_the_same(yolofs: Program) -> None:
    made = [f"printf x > made{shlex.quote(os.fsdecode(name))}" for name in NAMES]
    done = yolofs("run", "--json", "--", "sh", "-c", "; ".join(made))
    line = done.err.splitlines()[-1]
    check(done.err)
    assert {b"made" + name for name in NAMES} <= names_in(json.loads(line))
    shown(yolofs, "run", "--", "sh", "-c", "; ".join(made).replace("made", "more"))


def test_commit_and_travel_are_safe(yolofs: Program) -> None:
    (Path(yolofs.daemon["mountpoint"]) / os.fsdecode(bytes(yolofs.project)[1:]) / os.fsdecode(NAMES[4])).write_text("c")
    path = os.fsdecode(b"./" + NAMES[4])
    assert NAMES[4] in names_in(shown(yolofs, "commit", "--yes", "--json", path).json)
    (number,) = (node["number"] for node in shown(yolofs, "timeline", "--json").json["generations"] if node["present"])
    shown(yolofs, "travel", "--json", str(number))


ASK = "import sys; open(sys.argv[1])"


def test_asks_and_watch_are_safe(yolofs: Program, tmp_path: Path) -> None:
    view = Path(unquote_to_bytes(yolofs.daemon["mountpoint"]).decode()) / os.fsdecode(bytes(yolofs.project)[1:])
    python = tmp_path / os.fsdecode(b"\x1b[2J\xc2\x9b\xff")
    python.symlink_to(sys.executable)
    for name in NAMES:
        with reader(view / "secret" / os.fsdecode(name), script=ASK + f"  # {HOSTILE[:20]!r}"):
            wait_until(lambda: waiting(yolofs), "it asks")
            assert name in names_in(shown(yolofs, "asks", "--json").json)
            shown(yolofs, "asks")
            number = yolofs("asks", "--json").json["asks"][0]["id"]
            shown(yolofs, "answer", str(number), "deny")
    seen = tmp_path / "seen"
    with alone(yolofs, "--answer-with", f"cat > {seen}; echo deny") as process:
        Reader(view / "secret" / os.fsdecode(NAMES[1])).end()
        wait_until(seen.exists, "the command has got the ask")
        assert process.stdout is not None
        check(process.stdout.readline().decode())
    check(seen.read_text())
    assert NAMES[1] in names_in(json.loads(seen.read_text()))
    shown(yolofs, "log")
    assert set(NAMES) <= names_in(shown(yolofs, "log", "--json").json)
    assert set(NAMES) <= names_in(shown(yolofs, "feedback", "--json").json)
    for line in (yolofs.session / "audit.jsonl").read_text().splitlines():
        check(line)
    check(yolofs.log)


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "copilot", "cursor"])
def test_a_hook_is_safe_and_says_the_same(agent: str, tmp_path: Path) -> None:
    request = {"tool_name": "Bash", "tool_input": {"command": f"echo {HOSTILE}", "description": HOSTILE}}
    done = subprocess.run(
        [*COMMAND, "hook", agent], input=json.dumps(request).encode(), cwd=tmp_path, capture_output=True, check=False
    )
    check(done.stdout.decode())
    check(done.stderr.decode())
    answers = list(all_strings(json.loads(done.stdout)))
    assert not answers or any(HOSTILE in shlex.split(one, posix=False)[-1] or HOSTILE in one for one in answers)


def test_restore_cat_and_ls_with_hostile_names_are_safe_and_say_the_same(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    small = Program(project)
    small.start_session()
    with small.mounted() as view:
        for name in NAMES:
            Path(os.fsdecode(os.fsencode(view) + b"/" + name)).write_text(HOSTILE)
        small("snapshot", "all of them")
        for name in NAMES:
            os.unlink(os.fsencode(view) + b"/" + name)
        paths = [os.fsdecode(b"./" + name) for name in NAMES]
        shown(small, "ls", "-lR", "all of them:.")
        shown(small, "ls", *(f"all of them:{path}" for path in paths))
        assert set(NAMES) <= names_in(shown(small, "ls", "--json", "all of them:.").json)
        shown(small, "cat", paths[0] + "nowhere:x", code=7)
        with Terminal(project, ["cat", f"all of them:{paths[0]}"]) as terminal:
            assert terminal.wait() == 0
            check(terminal.seen.replace("\r\n", "\n").replace("\t", " "))
            assert "<202e>" in terminal.seen
        shown(small, "ls", f":{paths[0]}", code=2)
        shown(small, "restore", paths[0] + "nowhere", code=2)
        document = shown(small, "restore", "--json", "--from", "all of them", *paths).json
        assert set(NAMES) <= names_in(document)
        shown(small, "restore", *paths)
        shown(small, "diff", *(f"all of them:{path}" for path in paths[:2]), "--list")


def test_every_command_that_prints_json_is_tested() -> None:
    """One that is added has to be added here."""
    found = set()
    for path in (Path(__file__).parents[2] / "cli").rglob("*.py"):
        if '"--json"' in path.read_text():
            found.add(path.stem)
    tested = {name.split()[0] for name in JSON_COMMANDS} | {
        "blame",
        "ls",
        "restore",
        "run",
        "commit",
        "travel",
        "undo",
    }
    assert found == tested


def test_no_module_makes_json_for_people_by_itself() -> None:
    """All goes through one function; what goes over the socket and into the session's own files is
    not printed.
    """
    for path in (Path(__file__).parents[2] / "cli").rglob("*.py"):
        assert not re.search(r"json\.(encode|format)\(", path.read_text()), path


def test_patches_are_exact_in_a_pipe_and_safe_on_a_terminal(yolofs: Program) -> None:
    view = Path(unquote_to_bytes(yolofs.daemon["mountpoint"]).decode()) / os.fsdecode(bytes(yolofs.project)[1:])
    content = HOSTILE.replace("\n", "").replace("\r", "").encode() + b" \x9b \xff\ttab\n"
    (view / "patched").write_bytes(content)
    done = subprocess.run([*COMMAND, "diff", "--", "patched"], cwd=yolofs.project, capture_output=True, check=True)
    assert b"+" + content in done.stdout
    for name, value in (("LANG", "C.UTF-8"), ("NO_COLOR", "1"), ("TERM", "dumb")):
        with Terminal(
            yolofs.project, [f"{name}={value}", *COMMAND, "diff", "--", "patched"], command=["/usr/bin/env"]
        ) as terminal:
            assert terminal.wait() == 0
            text = re.sub(r"\x1b\[[0-9;]*m", "", terminal.seen).replace("\r\n", "\n").replace("\t", " ")
            check(text)
            assert "<202e>" in text
            assert "<9b>" in text
            assert "é日" in text


def test_encode_json_keeps_every_character(yolofs: Program) -> None:
    """All of Unicode in one string; of what is assigned some characters one by one, too."""
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
    assigned = [char for char in every if unicodedata.category(char) not in ("Cn", "Co")]
    assert len(assigned) > 100_000
    alone = points(assigned, "characters", some=5_000)
    mixed = {HOSTILE: [HOSTILE, {"": None}]}
    for document, indent in (("".join(every), 0), (alone, 2), (mixed, 0), (mixed, 2)):
        data = encode_json(document, indent=indent)
        assert json.loads(data) == document
        if document is not alone:
            check(data.decode())
    assert json.loads(encode_json({"a": "x\udc9b\udcff"})) == {"a": "x\ufffd\ufffd"}
