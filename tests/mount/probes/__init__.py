"""What programs do to files, to be done in the view and in a plain directory, and compared.

``python MODULE.py NAME`` runs the function of that name in the current directory, which
:func:`.tools.prepare` has filled, and prints what it saw as one JSON document: results, errnos and
attributes, but nothing that differs between any two directories of ext4 (times of now, inode
numbers).  Each runs as a process of its own, as some map files.
"""
