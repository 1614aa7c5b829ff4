"""Locks of files, which the system takes back when a process ends, however it does."""

import sys


def try_lock(file: int) -> bool | None:
    """Lock an open file: true if it is ours now, false if another process has it, None where there
    are no locks, as on some network disks."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return None
    return True
