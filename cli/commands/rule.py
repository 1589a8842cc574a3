"""``yolofs rule``: the rules on paths, listed, changed and explained."""

from __future__ import annotations

import click

from yolofs.access.questions import Operation
from yolofs.cli import output
from yolofs.cli.path_types import PATH
from yolofs.cli.project.project import find_project
from yolofs.cli.rules.in_force import sources_in_force
from yolofs.cli.rules.learning import forget_rule, learn_rules
from yolofs.cli.rules.rule_keys import read_key
from yolofs.cli.rules.rule_lines import emit_explanation, emit_rules, explanation_document, rules_document
from yolofs.cli.rules.untrusted_settings import say_what_waits, waiting_fields, waiting_or_warned
from yolofs.rules import RuleBook, RuleState


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """List, change and explain the rules on paths.

    A rule gives a path a state: allow, read-only, write-ask, ask, deny or hidden. It holds for
    everything below the path that has no nearer rule. These commands write to .yolofs/rules.toml,
    and take effect at once; .yolofs.toml and your own config.toml are yours to edit.

    PATH is a path as in the shell, or a pattern in quotes: '**/NAME', '**/*.EXT', 'DIR/**/*.EXT';
    'PATH/**' is PATH with everything in it, whatever patterns say. A path in the mount stands for
    the same path in base. Links on the way are followed as base has them, or, where base has
    nothing, as the view has them. Where the view has a directory in place of a link of base, the
    rule holds for that directory, and also where the link leads.
    """


@command.command("list")
@click.option("--all", "with_preset", is_flag=True, help="List the built-in rules, too.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document, with all rules.")
def list_command(with_preset: bool, as_json: bool) -> None:
    """List the rules, nearest level first.

    The levels are: answers for this session, rules.toml, .yolofs.toml, your own config.toml, and
    the built-in rules. Their order counts only for rules about the same path; otherwise the nearest
    rule above a path decides. A rule is marked as overridden if a nearer level has a rule for the
    same path.
    """
    project = find_project()
    sources = sources_in_force(project)
    waiting = waiting_or_warned(project, warned=sources.notes)
    if as_json:
        output.emit_json(rules_document(sources) | {"waiting": waiting_fields(waiting)})
    else:
        emit_rules(sources, project, with_preset=with_preset)
    for note in sources.notes:
        output.warn(note)
    say_what_waits(len(waiting))


def _add_state_command(state: RuleState, summary: str) -> None:
    @command.command(state.value, help=summary)
    @click.argument("paths", metavar="PATH...", type=PATH, nargs=-1, required=True)
    def state_command(paths: tuple[bytes, ...]) -> None:
        project = find_project()
        rules = [read_key(project, path, state) for path in paths]  # all of them are right before one is learned
        learn_rules(project, rules)


_add_state_command(RuleState.ALLOW, "Allow everything to be done with each PATH.")
_add_state_command(RuleState.READ_ONLY, "Allow each PATH to be read, and refuse changes.")
_add_state_command(RuleState.WRITE_ASK, "Allow each PATH to be read, and ask before changes.")
_add_state_command(RuleState.ASK, "Ask before each PATH is read or changed.")
_add_state_command(RuleState.DENY, "Refuse to have each PATH read or changed; it still shows.")
_add_state_command(RuleState.HIDDEN, "Hide each PATH, as if it did not exist.")


@command.command("unset")
@click.argument("path", metavar="PATH", type=PATH)
def unset_command(path: bytes) -> None:
    """Remove the learned rule about PATH.

    This removes the rule about exactly that PATH in .yolofs/rules.toml, and the one that an answer
    made for this session.
    """
    project = find_project()
    forget_rule(project, read_key(project, path, RuleState.ASK))


@command.command("explain")
@click.argument("path", metavar="PATH", type=PATH)
@click.option(
    "--op",
    "operation",
    type=click.Choice([operation.value for operation in Operation]),
    help="Explain this operation only.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def explain_command(path: bytes, operation: str | None, as_json: bool) -> None:
    """Say which rule decides over PATH, and where it is written.

    PATH need not exist. Links in it are followed as the view has them: explain judges the path that
    they lead to. If PATH itself is a link, explain judges the link; with a slash at the end, or
    with --op read, write, execute or list, it judges what the link leads to.
    """
    from yolofs.cli.rules.explaining import explain_typed

    project = find_project()
    only = Operation(operation) if operation is not None else None
    found = explain_typed(project, path, only)
    if as_json:
        output.emit_json(explanation_document(found, only))
    else:
        emit_explanation(found, project, only)
    say_what_waits(len(waiting_or_warned(project)))


@command.command("test")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def test_command(as_json: bool) -> None:
    """Try the rules on what was accessed so far.

    It says how many of the accesses that this session recorded the present rules would allow,
    refuse or ask about. It suggests the rules that would have spared most questions, and what
    speaks for each. It changes nothing.

    The session records every ask and refusal. What rules allowed it records once for each path and
    operation: changes since the last commit, and the first 20,000 reads, executions and listings
    since the mount.
    """
    from yolofs.cli.rules.replay_report import emit_replay, read_accesses, replay_document

    project = find_project()
    recorded = read_accesses(project)
    book = RuleBook(*sources_in_force(project).sets())
    if as_json:
        output.emit_json(replay_document(book, recorded, project))
    else:
        emit_replay(book, recorded, project)
