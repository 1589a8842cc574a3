"""What is done with a selection of hunks: it is committed, dropped or edited, and everything else
stays as it is.

An *old* state (base, or a generation) is compared with the view, and hunks of the difference are
picked.  To change anything the session has to be open for writing, and a mount of it paused.  ::

    finding_hunks     finds the hunks between two states, and those that were picked
    wanted_hunks      which hunks the result shall have
    separate_changes  finds changes that depend on no others
    placing           where things lie while some changes are taken back
    dependencies      holds back what needs hunks that were not picked
    dropping          takes changes out of the view
    actions           drops, commits and edits hunks
"""

from yolofs.session.selecting.actions import DropResult, SelectedState, drop_hunks, select_hunks, stage_text
from yolofs.session.selecting.dependencies import HeldHunk
from yolofs.session.selecting.finding_hunks import Hunks

__all__ = ["DropResult", "HeldHunk", "Hunks", "SelectedState", "drop_hunks", "select_hunks", "stage_text"]
