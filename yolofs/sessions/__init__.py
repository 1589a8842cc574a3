"""Where sessions lie, whose they are, and which one is a project's (``docs/design/sessions.md``).

In the order in which a command goes through them::

    private     directories that only the user can write to, opened so that nobody can lead astray
    state       the user's state directory, and where on another disk a session may lie
    seal        what tells that a plan of a commit was written by this user, here and for this session
    identity    what tells a directory from all others, whatever it is called
    registry    one small file for each session: which directory it is about
    search      from the current directory to its project and its session
    link        the convenience link in the project, which nothing reads
"""
