"""A session and what is done with it.

Opening it::

    session          a session: its directory, and all that belongs to it
    opening/         what comes before it is open
      opening        where it lies, and that it can be used
      root           which directory is its base
      lock           its holder alone changes the session
      earlier_versions sessions that lay in the project, as ``.yolofs/``
      moved_project  goes on in the place that the project was moved to
      misfits        finds what is wrong with a journal, and where
      salvage        repairing a damaged journal
    interrupted      a commit that stopped half way
    forget           removing a session

What it shows now::

    generations      the states of a journal, and the changes between them
    state_files      the files of one state
    looking_again    looks again at what a program changes meanwhile
    attribution      which runs made which change

What was before::

    archive          the journals that commits have ended
    history/         the commits that have ended, and the states before them
      chapters       what happened before the commits that are kept
      past_base      base as it was then
      past_store     the store as these states need it
      fetched        where things are now that commits keep
      base_as_taken_over  base as it was when a run changed it
      named_states   the states that a user names: a generation, a run, a commit, base
      last_change    which record made a path what it is
      ended_commits  which commits there are, and which of them are undone
      other_commits  what commits before and after one mean for its undo
      commit_counts  how many changes each made, and of which runs
      kept_size      how much of the disk they take
      retention      which of them are kept

Changing what is staged::

    restore          bringing paths back
    selecting/       hunks that are picked
      finding_hunks  finds the hunks between two states
      wanted_hunks   which hunks the result shall have
      separate_changes  finds changes that depend on no others
      placing        where things lie while some changes are taken back
      dropping       takes changes out of the view
      dependencies   holds back what needs hunks that were not picked
      actions        drops, commits and edits hunks
    merge            settling conflicts in the view
    view_writer      making files in the view without a mount
    journal_copy     a journal that takes the place of the present one, whole or not at all
    authors          which run made each change that is written anew
    dead_generations drops generations that the present is not built on

Committing it, and taking that back::

    commit           commit and abort
    ending_interrupted  finishes an interrupted commit, takes it back, or gives it up
    up_to            committing an earlier generation
    forced_files     what a commit replaces although the host has changed it
    undo             undoing a commit
    undo_changes     lists what an undo changes, name by name
    undo_notes       which commit a commit undoes
    undo_part        which part of an undo is done: not files of which hard links are staged

What belongs to the session besides::

    feedback         what the user tells the agent about dropped changes
    run_tmp          the private ``/tmp`` of its runs
"""
