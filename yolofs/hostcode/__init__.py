"""Code for the host: files that something on the host executes, or obeys, by itself.

::

    mark        why a commit takes a file only by name: a word, and its text
    table       the table of paths at which host code lies
    row         one row of the table
    rows_of_homes, rows_of_projects, rows_of_systems, rows_of_tools  the rows
    table_links  where else these paths lead, by links and git's settings in base
    git_config  reads git's settings as git does
    git_settings  tells which of them are harmless, and what they lead to
    git_files   which files in a repository are code
    unseen_places  places where no commit looks, so a link there may lead to anything
    git_index   tells whether an index names anything outside of its work tree
    git_work_trees  which index belongs to which work tree
    git_ignored  what git ignores and what it tracks: lists are folded by that
    code_files  which changes make host code
    commands    commands on PATH, and files that run with the rights of their owner
    mark_finder  finds the marks of all changes
"""
