"""Whether a plan does anything where no change is to be seen."""

from __future__ import annotations

import stat

from yolofs.commit.plan.plan import Create, Duplicate, Link, Place, Plan, Remove
from yolofs.store.base import Base


def may_change_links(plan: Plan, base: Base) -> bool:
    """Tell whether a plan may part or join hard links: it makes some, or works on a name of a file
    that has others.

    Raises:
        OSError: base cannot be read.
    """
    return any(isinstance(step, Link | Duplicate) for step in plan.steps) or any(
        _has_other_names(base, step) for step in plan.steps if isinstance(step, Create | Place | Remove)
    )


def _has_other_names(base: Base, step: Create | Place | Remove) -> bool:
    here = base.look(step.path)
    return here is not None and not stat.S_ISDIR(here.st_mode) and here.st_nlink > 1
