"""``python -m yolofs.daemon``: what ``yolofs mount`` starts."""

from __future__ import annotations

import sys

from yolofs.daemon.runs import survey_process


def run() -> int:
    """Run the daemon and return its exit status."""
    survey = survey_process.start_first(sys.argv[1:])
    from yolofs.daemon.main import main  # takes as long as the survey

    return main(first_survey=survey)


if __name__ == "__main__":
    sys.exit(run())
