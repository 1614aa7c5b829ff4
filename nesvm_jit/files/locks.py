"""Locks of files. The system releases them when a process ends, even if it is killed."""

import sys


def try_lock(file: int) -> bool | None:
    """Lock an open file. Return True if this process holds the lock now, False if another one
    does, and None where files cannot be locked, as on some network disks."""
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
