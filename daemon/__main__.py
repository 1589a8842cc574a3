"""``python -m yolofs.daemon``: what ``yolofs mount`` starts."""

from __future__ import annotations

import sys

from yolofs import checkout_core


def run() -> int:
    """Run the daemon and return its exit status."""
    checkout_core.use()  # before anything of the core is imported
    from yolofs.daemon.runs import survey_process

    survey = survey_process.start_first(sys.argv[1:])
    from yolofs.daemon.main import main  # takes as long as the survey

    return main(first_survey=survey)


if __name__ == "__main__":
    sys.exit(run())
