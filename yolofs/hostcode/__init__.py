"""Code for the host: files that something on the host executes, or obeys, by itself.

::

    mark        what a file becomes by a change, in a word
    table       which paths those are, and why
    row         the form of the table's lines
    rows_of_homes, rows_of_projects, rows_of_systems, rows_of_tools  the lines
    table_links  where else they lie, as links and git's settings in base have it
    git_config  git's settings: read as git reads them, and which of them are harmless
    git_files   what in a repository is code
    unseen_places  where a link may lead to anything, as no commit looks there
    git_index   whether an index names anything outside of the work tree
    git_work_trees  which index belongs to which work tree
    git_ignored  what git ignores and what it tracks
    code_files  which changes make such files
    commands    commands on PATH, and files that run with the rights of their owner
    mark_finder  all of that together
"""
