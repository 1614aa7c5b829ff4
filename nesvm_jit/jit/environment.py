"""Environment variables of numba that would end a program with a traceback: looked at before numba
is imported, and refused in one line."""

import importlib
import os

from ..errors import InputError

LAYERS = ("default", "safe", "forksafe", "threadsafe", "tbb", "omp", "workqueue")
# The library of numba that a layer cannot do without; it lacks where its own one is missing.
LIBRARIES = {"tbb": "tbbpool", "safe": "tbbpool", "omp": "omppool"}


def require_usable_environment() -> None:
    """Refuse values that numba reads and cannot use."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "").strip()
    if threads and not (threads.isdecimal() and int(threads) >= 1):
        raise InputError(f"NUMBA_NUM_THREADS must be a whole number from 1 on, got {threads!r:.40}")
    layer = os.environ.get("NUMBA_THREADING_LAYER", "default")
    if layer.lower() not in LAYERS:
        raise InputError(
            f"NUMBA_THREADING_LAYER must be one of {', '.join(LAYERS)}, got {layer!r:.40}"
        )
    order = os.environ.get("NUMBA_THREADING_LAYER_PRIORITY")
    if order is not None and sorted(order.split()) != ["omp", "tbb", "workqueue"]:
        raise InputError(
            "NUMBA_THREADING_LAYER_PRIORITY must be tbb, omp and workqueue in some order, "
            f"got {order!r:.60}"
        )


def require_threading_layer() -> None:
    """Refuse a threading layer that is asked for by name and cannot be loaded here."""
    layer = os.environ.get("NUMBA_THREADING_LAYER", "default").lower()
    if layer in LIBRARIES:
        try:
            importlib.import_module(f"numba.np.ufunc.{LIBRARIES[layer]}")
        except ImportError as e:
            if LIBRARIES[layer] == "tbbpool" and _has_tbb():
                return  # its library is loaded before the first kernel runs
            raise InputError(
                f"NUMBA_THREADING_LAYER={layer} needs a library that cannot be loaded here: {e}"
            ) from None


def _has_tbb() -> bool:
    """Whether the package tbb is installed, whose library the loader does not find by itself."""
    from importlib import metadata

    try:
        return bool(metadata.version("tbb"))
    except metadata.PackageNotFoundError:
        return False
