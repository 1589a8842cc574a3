"""What is done with a selection of hunks: it is committed, dropped or edited, and everything else
stays as it is.

An *old* state (base, or a generation) and the view are compared; the hunks of what differs are what
is picked from.  In all that changes something the session is open for writing, and a mount of it
paused.  ::

    listing      the hunks of two states, and finding those that were picked
    kept         which of them are to be there
    places       where things lie while some changes are taken back
    together     what cannot be without the rest
    taking_back  the view without what is not to be there
    actions      dropping, committing, editing
"""

from yolofs.session.selecting.actions import Dropped, Selected, drop_hunks, select_hunks, stage_text
from yolofs.session.selecting.finding_hunks import Hunks
from yolofs.session.selecting.together import HeldHunk

__all__ = ["Dropped", "HeldHunk", "Hunks", "Selected", "drop_hunks", "select_hunks", "stage_text"]
