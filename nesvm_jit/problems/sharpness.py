"""Where sums over rows are made nearly exactly: where their rounding is felt beside P or beside the
tolerance, of data that are not too large for it."""

from .certificate import Vectors

# Shares of P, and of the tolerance, that rounding may take before sums are made nearly exactly; the
# first for data so small that this takes a few milliseconds, where sharper bounds cost nothing.
FELT_SMALL, FELT, FELT_OF_TOLERANCE = 2e-10, 1e-8, 0.01
SMALL_CELLS = 1 << 16  # entries of X
SHARP_CELLS = 1 << 22  # entries of X up to which sums are ever made so: about a second


def rounding_felt(shard: Vectors, objective: float, tol: float) -> float:
    """The rounding that is felt beside a P of this size."""
    return felt_share(shard.data.size.cells, tol) * objective


def felt_share(cells: int, tol: float) -> float:
    """The share of P that it is, for X of so many entries."""
    return min(FELT_SMALL if cells <= SMALL_CELLS else FELT, FELT_OF_TOLERANCE * tol)


def may_be_sharp(shard: Vectors) -> bool:
    """Whether the data are small enough for sums that are nearly exact."""
    return shard.data.size.cells <= SHARP_CELLS
