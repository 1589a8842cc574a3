"""The first program in the sandbox: undoes what only its parent needed, and starts the command.

It runs there as ``python -I -S -c SOURCE FD IGNORED LEADS DIRECTORY COMMAND…``, so it must get
along without yolofs and imports nothing that takes time.  It writes ``started`` to FD, and one more
line if the command could not be started: the errno and what it is about.  IGNORED are the numbers
of the signals that stay ignored, separated by commas.  LEADS is 1 for a shell that leads a process
group of its own.  Its present group has no number in here, and a shell that gives the terminal back
to the group that had it before (dash does) needs a number.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # signal makes enums, which takes longer than all the rest
import os
import sys

CHANGE_DIRECTORY = "directory"
EXECUTE = "command"


def main(arguments: list[str]) -> int:
    """Start a command in the place of this process; return only if that fails."""
    report = int(arguments[0])
    ignored = {int(number) for number in arguments[1].split(",") if number}
    leads, directory, command = arguments[2] == "1", arguments[3], arguments[4:]
    os.set_inheritable(report, False)
    os.write(report, b"started\n")
    what = CHANGE_DIRECTORY
    try:
        os.chdir(directory)
        if leads:
            take_terminal()
        what = EXECUTE
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(report, b"%d %s\n" % (error.errno or 0, what.encode()))
    return 1


def take_terminal() -> None:
    """Lead a process group, in the foreground if ours is there; if it is not, wait until it is."""
    import termios

    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        # In the background this stops our group, until whoever is outside gives it the terminal.
        termios.tcsetattr(fd, termios.TCSANOW, termios.tcgetattr(fd))
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.setpgid(0, 0)
        os.tcsetpgrp(fd, os.getpgrp())
    except (OSError, termios.error):
        pass
    finally:
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.close(fd)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
