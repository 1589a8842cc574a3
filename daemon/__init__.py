"""The daemon: hosts the mount and answers on the control socket."""
