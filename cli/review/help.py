"""The keys of a review in words."""

HELP = """\
space        accept what the cursor is on, or not: a line, a hunk, a file, a directory
y            accept it, and go on to the next
a            accept everything, or nothing
enter        commit what is accepted, after a page that says what will happen
m o t M O T  on that page, where base has changed, too: merge, take ours, take base's; capitals: all
d            drop it: what was there before is staged again; the agent can be told why
e            edit the hunk in your editor: what comes back is staged
s            split the hunk, so that single lines can be accepted or dropped
u            take the last thing back: what was accepted, dropped or edited
[ ]          walk the generations, and see the work grow
/ n N        search (paths on the left, lines on the right), the next one, the one before
j k          down and up; also the arrow keys, page up and down, < and >
l h tab      to the lines of a file, back to the list; open and close a directory
J K          the next hunk, the one before
H L          what lies left or right of the screen in long lines
- =          close and open all directories
? q          these keys; leave without doing anything

x is accepted, ~ in part; ! was accepted and has changed since, so it is to be looked at again.
What the host would run or trust is accepted one by one, never with its directory.
"""
