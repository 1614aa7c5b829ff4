"""How functions are compiled. Flags let the compiler reorder sums and contract products, but never
assume that there are no infinities or NaN; what is exact allows nothing of the kind."""

from typing import Any

FAST = frozenset({"reassoc", "nsz", "arcp", "contract", "afn"})
# Inlined, in the arithmetic of the function that calls it; without numba's memory manager.
INLINE = {"_nrt": False, "forceinline": True, "error_model": "numpy"}
# In the arithmetic of the function that calls it, with the memory manager.
ALLOCATING = {"_nrt": True, "error_model": "numpy"}


def options_of(exact: bool) -> dict[str, Any]:
    """Of a function by itself."""
    return {
        "_nrt": True,
        "fastmath": False if exact else set(FAST),
        "nogil": True,
        "error_model": "numpy",
    }
