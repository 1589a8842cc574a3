"""What becomes code on the host: files that something there executes, or goes by, without being
told to.

::

    mark        what a file becomes by a change, in a word
    table       which paths those are, and why
    links       where else they lie, as links and git's settings in base have it
    git_config  git's settings: read as git reads them, and which of them are harmless
    git_files   what in a repository is code
    files       which changes make any
    commands    commands on PATH, and files that run with the rights of their owner
    marker      all of that together
"""
