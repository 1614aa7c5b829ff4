"""How much memory there is, and what limits the group of the process has."""

import contextlib
import os

USUAL_MEMORY = 2.0**33  # bytes, where the system does not tell
# Bytes that every process can use: it could not have started with less, since the compiler alone
# takes more.
ALWAYS_THERE = 2.0**26

LINE = 64  # bytes of a cache line


def memory_bytes() -> float:
    """The memory of the machine, or a usual one where the system does not tell; less where this
    process may not have all of it."""
    try:
        most = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        most = USUAL_MEMORY
    return min(most, *_memory_limits())


def _memory_limits() -> list[float]:
    """Of the process (`ulimit -v`) and of its group."""
    found = [float("inf")]
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        found += [float(soft)] if soft != resource.RLIM_INFINITY else []
    for text in group_limits("memory.max"):
        with contextlib.suppress(ValueError):  # "max" is no number
            found.append(float(text))
    return found


def group_limits(name: str) -> list[str]:
    """What the files of this name say of the control group of this process and of all groups
    around it."""
    texts: list[str] = []
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as f:
        groups = [line.strip()[3:] for line in f if line.startswith("0::")]
        folder = f"/sys/fs/cgroup{groups[0]}".rstrip("/") if groups else ""
        while folder.startswith("/sys/fs/cgroup"):
            with contextlib.suppress(OSError), open(f"{folder}/{name}") as limit:
                texts.append(limit.read())
            folder = os.path.dirname(folder)
    return texts
