"""``yolofs review``: the staged changes on a terminal's whole screen, to be accepted, dropped, edited and committed.

::

    comparison  what differs, read from a session
    tree        the left side: sections, directories, changes
    diff_view   the right side: the lines of one change
    accepted    what of it is accepted
    desk        all that the user has before him, and what his keys do; no terminal
    drawing     a desk as lines of styled text
    lexing      colours of source code, made by a process that may be killed
    words       which words of two lines differ
    doing       dropping, committing, editing, taking back: what changes the session
    screen      the terminal: keys in, lines out, and what goes on meanwhile
    tool        another program's diff instead of the screen
"""
