"""How rows are cut into chunks: by the size of the data alone. Partial sums are added in the order
of chunks, so that every result has the same bits for any number of threads."""

import numpy as np

from .policy import helper

MOST_CHUNKS = 64
CHUNK_CELLS = 1 << 13  # numbers that a chunk reads at least: some 10 µs, what a second thread costs
SUM_CELLS = 1 << 20  # the partial sums of all chunks together stay below 8 MB of float64 ...
SERIAL_CELLS = 1 << 26  # ... or there are two chunks; partial sums above 512 MB each leave one


def chunk_count(n_rows: int, n_cells: int, n_sums: int = 0) -> int:
    """How many chunks a pass over `n_rows` rows of `n_cells` numbers in all is cut into when each
    chunk has `n_sums` partial sums: never a matter of threads."""
    if n_sums > SERIAL_CELLS:
        return 1
    by_memory = max(2, SUM_CELLS // max(n_sums, 1))
    return max(1, min(MOST_CHUNKS, n_rows, n_cells // CHUNK_CELLS, by_memory))


@helper
def chunk_bounds(n_rows: int, n_chunks: int, k: int) -> tuple[int, int]:
    """Rows of chunk k: consecutive, and as equal in number as can be."""
    return n_rows * k // n_chunks, n_rows * (k + 1) // n_chunks


def partial_sums(n_chunks: int, n_cells: int) -> np.ndarray:
    """Zeros for `n_chunks` partial sums of length `n_cells`, no two in one cache line."""
    padded = -(-n_cells // 8) * 8 + 8
    return np.zeros((n_chunks, padded))
