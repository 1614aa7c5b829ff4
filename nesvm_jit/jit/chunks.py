"""How rows are cut into chunks: by the size of the data alone. Partial sums are added in the order
of chunks, so that every result has the same bits for any number of threads."""

import numpy as np

from .policy import helper

MOST_CHUNKS = 32
CHUNK_ROWS = 256  # a chunk of fewer rows costs more to start than to run
CHUNK_CELLS = 1 << 20  # the partial sums of all chunks together stay below 8 MB of float64 ...
SERIAL_CELLS = 1 << 26  # ... or there are two chunks; partial sums above 512 MB each leave one


def chunk_count(n_rows: int, n_cells: int) -> int:
    """How many chunks `n_rows` rows are summed in when each chunk has `n_cells` partial sums.

    It depends on the shape alone, never on threads.
    """
    if n_cells > SERIAL_CELLS:
        return 1
    by_rows = -(-n_rows // CHUNK_ROWS)
    by_memory = max(2, CHUNK_CELLS // max(n_cells, 1))
    return max(1, min(MOST_CHUNKS, by_rows, by_memory))


@helper
def chunk_bounds(n_rows: int, n_chunks: int, k: int) -> tuple[int, int]:
    """Rows of chunk k: consecutive, and as equal in number as can be."""
    return n_rows * k // n_chunks, n_rows * (k + 1) // n_chunks


def partial_sums(n_chunks: int, n_cells: int) -> np.ndarray:
    """Zeros for `n_chunks` partial sums of length `n_cells`, no two in one cache line."""
    padded = -(-n_cells // 8) * 8 + 8
    return np.zeros((n_chunks, padded))
