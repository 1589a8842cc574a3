"""Committing: base becomes what the view shows, or of it what was selected
(``docs/design/commit.md``).

In the order in which a commit goes through them::

    select/  what is applied, and what stays staged
      selection    which changes are asked for
      units        what belongs together and goes or stays as one
      choice       which of these a selection takes, and what is held back
      split        the state in two: what is applied, and what stays staged
      compose      what stays staged when base is what one tree shows, and the view another
      base_afterwards  base as it is then
      staged_anew  what it loses or gets otherwise, staged so that the view goes on showing it
      back_in_base  whether what is staged is just what base gets back by itself
      linked_anew  the same for files with hard links of which both states change names
      linked_files  files with hard links, which are not told name by name
      left_times   files with hard links that are committed without their time
      what_base_had  what base had where something stays staged
      written_at   which record made the file at each path, whatever was moved
      restate      the state said anew, as merged, or without what base wins over
    merge/  where base has changed, too
      conflicts    where that is
      drift_descriptions  how, and when: what is said of it
      gone_from_base  what base has no more, and about which something is staged
      merging      what merging with base comes to, path by path
      text_merge   merging a text, by git's merge-file
      separate_places  the same where no way to compare could tell it otherwise
      diff3        the same without git
      git_indexes  git's index, where the host has only looked
      base_as_kept  a text that is what it was, whatever its times say
    plan/  which object goes where
      overridden_names  what base has now at every name of the tree
      seen_twice   no name of base is changed at two places
      spellings    nor under two spellings, where the disk takes them for one
      survivors    which object of base lives on under which name of the view
      kept_objects  what earlier commits keep of base, as something that a tree can show
      planner      the plan
      link_changes  whether it does anything where no change is to be seen
      plan         its form on the disk, before the first step
      last_check   it leaves base the names that the view shows: found anew
      recheck      it is still one for this base, after an interruption
      moves        where things are before it and after it
      cut_links    which hard links it cuts, as names move to another disk
      script       it as a shell script
      plan_text    it as a person reads it
    apply/  doing it
      commit_directory  the files in a commit's directory
      places       where a commit works: its folders, and base
      directories  reaching directories of base so that nothing leads astray
      preparing    what comes before the first step
      make_file    making a file of the store anew, which is what most of that needs
      lost_writes  store inodes made anew of which a disk may have lost something
      linking      which new files are the store inodes themselves, and not copies
      other_devices  folders there, in which is made what goes there, or gets a group of theirs
      ready        what is known, and looked at, when all is made and base is not touched yet
      cross_device_copies  what has to be copied to another device or mount, looked at then, too
      execution    carries the plan out
      steps        the steps of it
      moving_out   those that move something out of its place
      bringing_in  those that put something in place
      changing_in_place  those that change what stays where it is
      keeping      what all steps do: keep what base had, and leave notes
      step_log     those that are done, with the identities of what came and went
      interrupts   Ctrl-C, which is never in the middle of a step
      trees        copying and comparing whole directories, where no rename reaches
      by_names     moving a directory name by name, where the filesystem renames none
      copy_log     what was copied to another device, and which copy it is
      part_links   what is kept of a file that lost a name gets apart from the others
      given_ctimes  the ctimes that things have got by all that, which are not the host's doing
      unset_metadata  what could not be set of times, modes and the like, told also after a kill
      interrupted_progress  how far a commit came that was interrupted, for people
      identities   which thing is where after a kill
      done_steps   which steps are done then, by what is where
      resume       finishes a commit that was killed
      swapped_out  tells what the host has made of what was put in place, and keeps it
      rollback     undoes the steps
      back_in_place  the same for what was changed in place
      taking_back  takes a commit back by these, and removes what it leaves
      host_edits   what the host has changed since the look for drift
      found_files  what the host had put in the way meanwhile
      displaced    where base has its things while a commit stands half way
    undo/  taking it out of base again, once it is done
      applied      what it has made of base, and whether that is there still
      homes        what it had renamed, and edited
      git_indexes_left  git's index, where the host has only looked since
      kept_texts   copies of texts that it brings back under what is staged
      inverse      the state that base had before it, as a tree over base as it is
      undoable_names  what of that may go back, as nobody has changed it since
      links_again  which names become hard links again
      made_anew    what was copied or made anew, and stands for what is gone
      left_by_commit  where that is which the commit has left, once a part of it is undone
      as_records   the state written as records
"""

from yolofs.commit.apply.execution import CommitOutcome, execute, resume
from yolofs.commit.merge.conflicts import find_conflicts
from yolofs.commit.plan.plan import Plan, describe_step
from yolofs.commit.plan.planner import plan_commit

__all__ = ["CommitOutcome", "Plan", "describe_step", "execute", "find_conflicts", "plan_commit", "resume"]
