"""``yolofs shell``."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

import click

from yolofs.cli.run.around_a_run import Manner, passed_on, run_command

_MARK = "(yolofs) "
_BASH = f'case $PS1 in "{_MARK}"*) ;; *) PS1="{_MARK}$PS1" ;; esac'
"""What bash does before each prompt: its start files may have set another one."""


def mark_prompt(environment: MutableMapping[str, str]) -> None:
    """Have a shell with this environment begin its prompt with a mark."""
    before = environment.get("PROMPT_COMMAND", "")
    if _BASH not in before:
        environment["PROMPT_COMMAND"] = f"{before}; {_BASH}" if before.strip() else _BASH
    prompt = environment.get("PS1", "$ ")
    environment["PS1"] = prompt if prompt.startswith(_MARK) else _MARK + prompt


@click.command()
@click.option("--no-review", is_flag=True, help="Do not say what was changed.")
def command(no_review: bool) -> None:
    """Start an interactive shell in the view, as `yolofs run` does.

    It is $SHELL, or sh. What is changed in it becomes one generation, at its end. The prompt of
    bash, and of a sh that takes its prompt from the environment, begins with "(yolofs)"; for others
    YOLOFS_RUN is there to be shown.
    """
    shell = os.environb.get(b"SHELL") or b"sh"
    mark_prompt(os.environ)
    manner = Manner(is_reviewed=not no_review, name=b"shell")
    raise click.exceptions.Exit(passed_on(run_command([shell], manner)))
