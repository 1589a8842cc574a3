"""A session and what is done with it.

Opening it::

    session          a session: its directory, and all that belongs to it
    opening          what comes before it is open: where it lies, and that it can be used
    root             which directory is its base
    lock             its holder alone changes the session
    interrupted      a commit that stopped half way
    earlier_versions sessions that lay in the project, as ``.yolofs/``
    moved_project    going on where the project is now
    salvage          repairing a damaged journal
    forget           removing a session

What it shows, now and before::

    generations      the states of a journal, and the changes between them
    state_files      the files of one state
    named_states     the states that a user names: a generation, a run, a commit, base
    looking_again    looking while a program goes on in the view
    last_change      which record made a path what it is
    attribution      which runs made a difference
    base_as_taken_over  base as it was when a run changed it
    history          what happened before the commits that are kept
    past_base        base as it was then

Changing what is staged::

    restore          bringing paths back
    selecting/       hunks that are picked
      finding_hunks  those of what differs between two states
      wanted_hunks   which of them are to be there
      separate_changes  changes that have nothing to do with any other
      placing        where things lie while some changes are taken back
      dropping       taking changes back
      dependencies   parts that cannot be without the rest
      actions        dropping, committing and editing hunks
    merge            settling conflicts in the view
    view_writer      making files in the view without a mount
    journal_copy     a journal that takes the place of the present one, whole or not at all
    authors          who changed what is said anew
    dead_generations dropping what the present is not built from

Committing it, and taking that back::

    commit           commit, abort, and what becomes of an interrupted commit
    up_to            committing an earlier generation
    forced_files     what a commit replaces although the host has changed it
    undo             undoing a commit
    other_commits    what commits before and after it mean for that
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
