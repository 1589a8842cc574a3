"""Where sessions lie, whose they are, and which one is a project's (``docs/design/sessions.md``).

In the order in which they build on each other::

    private     directories that only the user can write to, opened so that nobody can lead astray
    state       the user's state directory
    identity    what tells a directory from all others, whatever it is called
    registry    one small file for each session: which directory it is about
    search      from the current directory to its project and its session
    start       starting a session, and on which disk it is to lie
    runtime     where its mountpoint and its sockets are
    link        the convenience link in the project, which nothing reads
    trust       which settings of a project the user has agreed to, and which are in force for that
    seal        what tells that a commit's plan was written by this user, here, for this session
"""
