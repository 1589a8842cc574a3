"""``yolofs trust``."""

from __future__ import annotations

import os

import click

from yolofs.cli.options import options
from yolofs.cli.output import emit_json
from yolofs.cli.project.project import find_project
from yolofs.cli.rules.agreeing import agree, forget_agreed
from yolofs.cli.rules.untrusted_settings import lines_to_agree_to, waiting_fields
from yolofs.errors import TrustError, UsageError
from yolofs.registry.trust import digest_of_lines
from yolofs.system.mounts import is_inside_mount


@click.command()
@click.option("--digest", metavar="DIGEST", help="Agree without a question to the lines that have this digest.")
@click.option("--forget", "forgets", is_flag=True, help="Forget all that was agreed to for this project.")
@click.option("--json", "as_json", is_flag=True, help="Print what waits as a JSON document, and agree to nothing.")
def command(digest: str | None, forgets: bool, as_json: bool) -> None:
    """Agree to what the project's .yolofs.toml lets through.

    Anybody may have written that file. Lines that only tighten something hold at once; lines that
    open something wait. trust shows these lines and what each opens, and asks. It remembers what
    you agree to, for this project on this machine: when the file changes, only new lines wait.

    Without a terminal, only --digest agrees, and only to the lines that it stands for.
    """
    if (digest is not None) + forgets + as_json > 1:
        raise UsageError("--digest, --forget and --json do not go together", hint="yolofs trust --help")
    _check_outside()
    project = find_project()
    if forgets:
        forget_agreed(project)
        return
    files, waiting = lines_to_agree_to(project)
    shown = digest_of_lines(project, waiting)
    if as_json:
        emit_json({"waiting": waiting_fields(waiting), "digest": shown, "agreed": len(files.agreed.meanings)})
        return
    agree(project, files, waiting, digest=digest, shown=shown)


def _check_outside() -> None:
    """Check that it is not a program in a view that agrees.

    Raises:
        TrustError: it is.
    """
    from yolofs.cli.run.around_a_run import is_in_sandbox

    if is_in_sandbox() or options().guard is not None or is_inside_mount(os.getcwdb()):
        raise TrustError(
            "what .yolofs.toml lets through is not agreed to from inside a view",
            hint="yolofs trust, in a shell outside of it",
        )
