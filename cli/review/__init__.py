"""``yolofs review``: the staged changes on a terminal's whole screen, to be accepted, dropped,
edited and committed.

::

    first_screen    what is shown while prompt_toolkit is imported
    screen          the terminal: keys in, lines out, and what goes on meanwhile
    worker          what the screen has done in other threads
    session_changes dropping, editing, taking back
    committing      the page before a commit, and the commit
    picking         the hunks of what was chosen, read once more
    conflicts       what base has changed, too: merged, or one side taken
    diff_tool       another program's diff instead of the screen; end_state: what it has selected
    reader          what differs, read from a session; first_look: the beginning of it
    painter         colours of source code, asked of a process that may be killed: lexing
    drawing         a model as lines of styled text
    differing_words which words of two lines differ
    keys            what keys do, without a terminal or a session; help: the keys in words
    moving          where the cursor goes
    review_state    all that the user sees
    effects         what the keys want done
    accepted        what is accepted
    change_tree     the left side: sections, directories, changes
    diff_view       the right side: the lines of one change
    comparison      what a comparison is
"""
