"""Linear machines on rows that stay on the workers of a dask cluster."""

from .cluster import connected
from .train import solve, train

__all__ = ["connected", "solve", "train"]
