"""Which variables of the environment a command in the sandbox gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yolofs.text.wildcards import Wildcards


def is_hidden(name: str, hide: Iterable[str], keep: Iterable[str]) -> bool:
    """Tell whether a variable is left out.

    ``hide`` and ``keep`` are names or patterns (``*_TOKEN``); what ``keep`` names stays in any
    case.
    """
    return bool(hidden_variables((name,), hide, keep))


def hidden_variables(names: Iterable[str], hide: Iterable[str], keep: Iterable[str]) -> list[str]:
    """Return which of the variables are left out, sorted."""
    hidden, kept = Wildcards(hide), Wildcards(keep)
    return sorted(name for name in names if hidden.fit(name) and not kept.fit(name))


OUTER_TERMINALS = ("TMUX", "TMUX_PANE")
"""Variables that name a socket of the terminal around the sandbox, which is not there inside."""
TMUX_DIRECTORY = ("TMUX_TMPDIR", "/var/tmp")
"""Where tmux has its sockets inside, as the place where the host has them is hidden."""


def with_own_tmux(environment: Mapping[str, str], keep: Iterable[str]) -> dict[str, str]:
    """Return an environment in which tmux starts, except for variables that ``keep`` names: these
    stay as they are.
    """
    kept = Wildcards(keep)
    own = without(environment, [name for name in OUTER_TERMINALS if not kept.fit(name)])
    name, directory = TMUX_DIRECTORY
    return own if name in own and kept.fit(name) else {**own, name: directory}


def without(environment: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return an environment without some variables."""
    left_out = frozenset(names)
    return {name: value for name, value in environment.items() if name not in left_out}
