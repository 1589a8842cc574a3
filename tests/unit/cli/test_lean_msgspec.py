"""msgspec is imported without what yolofs has no use for, and whole where it wants more."""

from __future__ import annotations

import subprocess
import sys

LEFT_OUT = "uuid decimal platform datetime typing_extensions textwrap msgspec.inspect msgspec.toml msgspec._json_schema"


def said_by(script: str) -> str:
    """Return what a script prints that begins without any module of ours."""
    return subprocess.run(
        [sys.executable, "-P", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def test_structs_are_read_and_written_without_the_rest() -> None:
    script = f"""
from yolofs.cli.lean_msgspec import import_msgspec
import_msgspec()
print(sorted(set("{LEFT_OUT}".split()) & sys.modules.keys()))
import msgspec
class Some(msgspec.Struct):
    number: int
    names: tuple[str, ...] = ()
print(msgspec.json.encode(Some(1, ("a",))), msgspec.json.decode(b'{{"number": 2}}', type=Some))
"""
    assert said_by(script) == """[]\nb'{"number":1,"names":["a"]}' Some(number=2, names=())\n"""


def test_modules_that_msgspec_was_imported_without_can_be_imported() -> None:
    script = """
from yolofs.cli.lean_msgspec import import_msgspec
import_msgspec()
import decimal, msgspec, uuid
print(hasattr(msgspec, "inspect"), hasattr(msgspec.json, "schema"))
from msgspec import inspect
print(inspect.type_info(int), len(str(uuid.uuid4())), decimal.Decimal("1.5"))
import datetime
print(datetime.__name__, msgspec.json.encode(datetime.datetime(2000, 1, 2)))
"""
    assert said_by(script).splitlines() == [
        "False False",
        "IntType(gt=None, ge=None, lt=None, le=None, multiple_of=None) 36 1.5",
        """datetime b'"2000-01-02T00:00:00"'""",
    ]


def test_a_core_that_wants_more_of_a_module_is_imported_with_all() -> None:
    script = """
from yolofs.cli import lean_msgspec
lean_msgspec._CLASSES = {"uuid": (), "decimal": ("Decimal",)}
lean_msgspec.import_msgspec()
import msgspec, uuid
print(msgspec.json.encode(uuid.UUID(int=1)), msgspec.json.schema(int), hasattr(msgspec, "inspect"))
"""
    assert said_by(script) == """b'"00000000-0000-0000-0000-000000000001"' {'type': 'integer'} True\n"""


def test_modules_that_were_imported_before_msgspec_stay_as_they_are() -> None:
    script = """
import msgspec, uuid
from yolofs.cli.lean_msgspec import import_msgspec
import_msgspec()
print(msgspec.json.encode(uuid.UUID(int=1)), msgspec.json.schema(int))
"""
    assert said_by(script) == """b'"00000000-0000-0000-0000-000000000001"' {'type': 'integer'}\n"""


def test_short_commands_have_nothing_compiled_that_is_text() -> None:
    """The first text makes Python build the classes of its syntax tree."""
    script = """
from yolofs.cli.lean_msgspec import import_msgspec
import builtins, functools
texts = []
compiled = builtins.compile
def compile(source, *rest, **options):
    if isinstance(source, str):
        texts.append(source)
    return compiled(source, *rest, **options)
builtins.compile = compile
import_msgspec()
import msgspec
import yolofs.cli.main, yolofs.cli.command_line, yolofs.cli.without_click.snapshot, yolofs.cli.without_click.status
import yolofs.cli.without_click.diff, yolofs.cli.show.shortening, yolofs.hostcode.mark_finder, yolofs.hostcode.commands
import yolofs.cli.run.sandboxed_command, yolofs.cli.run.around_a_run, yolofs.sandbox.confine
from yolofs.daemon.rpc import daemon_files, hidden_messages, protocol, run_messages
from yolofs.registry.registry import SessionEntry
from yolofs.sandbox.confine import SandboxInfo
from yolofs.session.opening.root import SessionFile
for structure in (
    SessionEntry, SessionFile, daemon_files.DaemonFile, protocol.RpcMessage, protocol.Info, protocol.SnapshotResult,
    hidden_messages.HiddenResult, run_messages.BeginRunResult, run_messages.EndRunResult, SandboxInfo,
):
    msgspec.json.Decoder(structure)
print(texts)
"""
    assert said_by(script) == "[]\n"
