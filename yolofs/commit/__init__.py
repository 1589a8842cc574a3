"""Committing: base becomes what the view shows, or of it what was selected (``docs/design/commit.md``).

In the order in which a commit goes through them::

    units        what belongs together and goes or stays as one
    choice       which of these a selection takes, and what is held back
    split        the state in two: what is applied, and what stays staged
    survey       what base has now at every name of the tree
    conflicts    what base has changed under the staged state
    drift        how, and when: what is said of that
    merging      what merging with base comes to, path by path
    text_merge   merging a text, by git's merge-file
    diff3        the same without git
    restating    the state said anew, as merged, or without what base wins over
    holdings     which name of the view goes on using which object that base has
    planner      the plan: which object goes where
    last_check   the plan leaves base the names that the view shows: found anew, before the first step
    plan         the plan as it is written, before the first step
    moves        where things are before it and after it
    files        the files in a commit's directory
    places       where a commit works: its folders, and base
    preparing    what comes before the first step
    steps        the steps of it
    making       making a file of the store anew, which is what most of them need
    linking      which new files are the store inodes themselves, and not copies
    far          folders on other devices, in which is made what goes there
    ready        what is known, and looked at, when all is made and base is not touched yet
    directories  reaching directories of base so that nothing leads astray
    trees        copying and removing whole directories, where another device keeps them from being renamed
    separate     what is kept of a file that lost a name gets apart from the others
    script       the plan as a shell script
    log          the steps that are done, with the identities of what came and went
    interrupts   Ctrl-C, which is never in the middle of a step
    execution    carries the plan out
    recheck      looks, before that, whether the plan of an interrupted commit is still one for this base
    resume       finds out how far a commit came that was killed
    rollback     undoes the steps
    taking_back  takes a commit back by that, and removes what it leaves

And for who undoes one that is done::

    applied      what it has made of base, and whether that is there still
    kept         what it keeps of base, as something that a tree can show
    inverse      the state that base had before it, as a tree over base as it is
    compose      what is staged when base has become what one tree shows, and the view is to be what another does
"""

from yolofs.commit.conflicts import find_conflicts
from yolofs.commit.execution import Outcome, execute, resume
from yolofs.commit.plan import Plan, describe
from yolofs.commit.planner import plan_commit

__all__ = ["Outcome", "Plan", "describe", "execute", "find_conflicts", "plan_commit", "resume"]
