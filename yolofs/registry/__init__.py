"""The places of sessions, their owners, and the session of each project
(``docs/design/sessions.md``).

In the order in which they build on each other::

    private          directories that only the user can write to, opened through no link
    state_directory  the user's state directory
    identity         what tells a directory from all others, whatever it is called
    registry         one small file for each session: which directory it is about
    search           from the current directory to its project and its session
    start            starts a session, and chooses the disk that it lies on
    runtime          where its mountpoint and its sockets are
    link             the link in the project, for people: yolofs does not read it
    trust            which settings of a project the user has agreed to
    seal             proves that this user wrote a commit's plan, here, for this session
"""
