"""How much memory there is."""

import contextlib
import os

USUAL_MEMORY = 2.0**33  # bytes, where the system does not tell


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
    with contextlib.suppress(OSError, ValueError), open("/proc/self/cgroup") as f:
        groups = [line.strip()[3:] for line in f if line.startswith("0::")]
        folder = f"/sys/fs/cgroup{groups[0]}" if groups else ""
        while folder.startswith("/sys/fs/cgroup"):
            with contextlib.suppress(OSError, ValueError), open(f"{folder}/memory.max") as limit:
                found.append(float(limit.read()))  # "max" is no number
            folder = os.path.dirname(folder)
    return found
