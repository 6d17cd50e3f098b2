"""Finds the process that holds a port we want, so that an error can name it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rlprof.errors import one_line

_LISTENING = "0A"


def holder(port: int) -> str:
    """Name the process that listens on *port* of this host, as far as Linux shows it."""
    sockets = _sockets(port)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            for link in (process / "fd").iterdir():
                if str(link.readlink()) in sockets:
                    words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    return f"{one_line(words, longest=100)!r} (pid {process.name})"
    for owner in sockets.values():
        return f"a process of user {owner}"
    return "another process"


def _sockets(port: int) -> dict[str, str]:
    """Return the sockets that listen on *port*, as named in `/proc/PID/fd`, and their users."""
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                _, local, _, state, _, _, _, user, _, inode, *_ = line.split()
                if state == _LISTENING and int(local.rpartition(":")[2], 16) == port:
                    found[f"socket:[{inode}]"] = _name(int(user))
    return found


def _name(user: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
