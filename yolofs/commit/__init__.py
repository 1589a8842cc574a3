"""Committing: base becomes what the view shows, or of it what was selected
(``docs/design/commit.md``).

In the order in which a commit goes through them::

    select/  what is committed, and what stays staged
      selection    which changes were asked for
      units        which changes belong together, and are committed together or not at all
      choice       which units a selection takes, and which changes are held back
      split        divides the state: what is committed, what stays staged
      entry_authors  when each entry was last changed, and by which run
      compose      what stays staged once base is what a first state shows
      base_afterwards  what base will have after the commit
      staged_anew  stages copies of what base loses, so that the view goes on showing it
      back_in_base  notices what need not stay staged, as base gets just that back
      linked_anew  what stays staged of files with hard links of which two states change names
      linked_files  finds all names of such files
      shown_paths  where the view shows what base has
      left_times   files with hard links that are committed without their time
      made_again   what else is staged in directories that base lost and that are made again
      what_base_had  records of what base had where something stays staged
      written_at   which record made the file at each path, through renames
      restate      writes the state anew, without some changes and with others merged
    merge/  base has changed under what is staged
      conflicts    finds where
      drift_descriptions  says how base changed, and when
      gone_from_base  what is staged in directories, or about files, that base no longer has
      merging      merges with base, path by path
      text_merge   merges a text, by git's merge-file
      separate_places  merges texts that changed in separate places, so that every diff agrees
      diff3        merges a text without git
      git_indexes  tells that the host has only refreshed git's index
      base_as_kept  tells that a file of base is as it was, whatever its times say
    plan/  from a tree to steps
      overridden_names  what base has at each name of the tree
      seen_twice   refuses to change one name of base at two places
      spellings    refuses to change one name of base under two spellings
      survivors    which object of base lives on under which name of the view
      kept_objects  what earlier commits keep of base, numbered like store inodes
      planner      makes the plan
      link_changes  tells that a plan does something though no change is listed
      plan         the steps, and their form on the disk
      last_check   checks that base will have just the names that the view shows
      recheck      checks that the plan of an interrupted commit still fits base
      moves        where things are before the commit and after it
      cut_links    which hard links a commit cuts, as names move to another disk
      script       the plan as a shell script
      plan_text    the plan as a person reads it
    apply/  carrying the plan out
      commit_directory  the files in a commit's directory
      places       the folders of a commit, and base
      directories  opens directories of base so that no link leads astray
      preparing    makes all new files before the first step
      make_file    makes one file of the store anew
      lost_writes  what a disk may have lost of the files that a commit is made from
      linking      which new files are the store inodes themselves, and no copies
      given_attributes  extended attributes that steps give, and others
      other_devices  folders on other devices, or of other groups
      ready        what is known and checked when all is made and base is untouched
      cross_device_copies  checks what steps will have to copy to another device or mount
      execution    carries the plan out
      steps        does one step
      moving_out   steps that move something out of its place
      bringing_in  steps that put something in its place
      changing_in_place  steps that change what stays where it is
      keeping      keeps what base had, and leaves notes, for all steps
      step_log     the log of the steps that are done
      interrupts   holds Ctrl-C back while a step is done
      trees        copies and compares whole directories, where no rename reaches
      by_names     moves a directory name by name, where the filesystem renames none
      copy_log     what was copied to another device, and which copy it is
      kept_copies  copies what a commit keeps of files that still have other names
      given_ctimes  ctimes that a commit itself has changed, and not the host
      unset_metadata  which times, modes, owners and attributes could not be set
      host_edits   what the host has changed since the look for drift
      recovery/    finishing a commit that a crash interrupted, and taking one back
        interrupted_progress  how far it came, for people
        identities   finds which thing is where
        done_steps   finds which steps are done
        resume       finishes it
        swapped_out  keeps what the host has made of what was put in place
        rollback     undoes the steps
        back_in_place  undoes changes of what stays where it is
        taking_back  takes a commit back, and removes what it leaves
        restored_things  finds what is as it was again after that
        hosts_metadata  which metadata the host has given meanwhile
        found_files  what the host had put in the way
        displaced    where base has its files while a commit is half done
    undo/  taking a commit out of base again, once it is done
      applied      what the commit made of base, and whether that is there still
      commits_around  what later commits have changed, and directories' times before earlier ones
      homes        which files the commit had renamed and edited
      git_indexes_left  tells that the host has only refreshed an index that the commit left
      kept_texts   keeps copies of texts that come back under another staged version
      inverse      the state that base had before, as a tree over base as it is
      undoable_names  which names may go back, as nobody has changed them since
      links_again  which names become hard links again
      made_anew    what was copied or made anew, and stands for what is gone
      left_by_commit  where things are that the commit has left, once a part of it is undone
      as_records   the state that is left, written as records
"""

from yolofs.commit.apply.execution import CommitOutcome, execute, resume
from yolofs.commit.merge.conflicts import find_conflicts
from yolofs.commit.plan.plan import Plan, describe_step
from yolofs.commit.plan.planner import plan_commit

__all__ = ["CommitOutcome", "Plan", "describe_step", "execute", "find_conflicts", "plan_commit", "resume"]
