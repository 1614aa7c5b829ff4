"""How rows are cut into chunks: by the size of the data alone. Partial sums are added in the order
of chunks, so that every result has the same bits for any number of threads."""

import numpy as np

from .policy import helper

MOST_CHUNKS = 64
CHUNK_WORK = 1 << 16  # numbers that a chunk reads at least: 10 µs, what it takes to wake a thread
SUM_CELLS = 1 << 20  # the partial sums of all chunks together stay below 8 MB of float64 ...
SERIAL_CELLS = 1 << 26  # ... or there are two chunks; partial sums above 512 MB each leave one


def chunk_count(n_rows: int, work: int, n_sums: int = 0) -> int:
    """How many chunks a pass over `n_rows` rows is cut into that takes as long as reading `work`
    numbers in order, when each chunk has `n_sums` partial sums: never a matter of threads."""
    if n_sums > SERIAL_CELLS:
        return 1
    by_memory = max(2, SUM_CELLS // max(n_sums, 1))
    return max(1, min(MOST_CHUNKS, n_rows, work // CHUNK_WORK, by_memory))


@helper
def chunk_bounds(n_rows: int, n_chunks: int, k: int) -> tuple[int, int]:
    """Rows of chunk k: consecutive, and as equal in number as can be."""
    return n_rows * k // n_chunks, n_rows * (k + 1) // n_chunks


def partial_sums(n_chunks: int, n_cells: int) -> np.ndarray:
    """Zeros for `n_chunks` partial sums of length `n_cells`, no two in one cache line."""
    padded = -(-n_cells // 8) * 8 + 8
    return np.zeros((n_chunks, padded))
