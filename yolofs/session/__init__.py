"""A session and what is done with it.

Opening it::

    session          a session: its directory, and all that belongs to it
    opening          what comes before it is open: where it lies, and that it can be used
    root             which directory is its base
    lock             its holder alone changes the session
    interrupted      a commit that stopped half way
    earlier_versions sessions that lay in the project, as ``.yolofs/``
    moved_project    goes on in the place that the project was moved to
    salvage          repairing a damaged journal
    forget           removing a session

What it shows, now and before::

    generations      the states of a journal, and the changes between them
    state_files      the files of one state
    named_states     the states that a user names: a generation, a run, a commit, base
    looking_again    looks again at what a program changes meanwhile
    last_change      which record made a path what it is
    attribution      which runs made which change
    base_as_taken_over  base as it was when a run changed it
    history          what happened before the commits that are kept
    past_base        base as it was then

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

    commit           commit, abort, and what becomes of an interrupted commit
    up_to            committing an earlier generation
    forced_files     what a commit replaces although the host has changed it
    undo             undoing a commit
    other_commits    what commits before and after it mean for that
    undo_changes     lists what an undo changes, name by name
    undo_notes       which commit a commit undoes

Commits that have ended::

    archive          their journals
    ended_commits    which there are, and which of them are undone
    commit_counts    how many changes each made, and of which runs
    kept_size        how much of the disk they take
    retention        which of them are kept

What belongs to the session besides::

    feedback         what the user tells the agent about dropped changes
    run_tmp          the private ``/tmp`` of its runs
"""
