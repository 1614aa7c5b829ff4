"""The checkpoint of a fit: which data and settings it is for."""

import zlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from typing import Any

import numpy as np

from .. import __version__
from ..matrix.matrix import Csr, Matrix
from ..settings import Settings
from .checkpoint import Checkpoint

# settings that may be others when a run goes on: they say when it ends, not where it goes
FREE = ("max_iter", "time_limit", "callback", "checkpoint", "checkpoint_every", "resume")


def opened(
    settings: Settings, data: Any, **facts: Any
) -> AbstractContextManager[Checkpoint | None]:
    """The checkpoint that the settings ask for, of a fit with these facts; None if they do not.

    `data` is called for checksums of all that the result depends on, if they are needed.
    """
    if settings.checkpoint is None:
        return nullcontext()
    asked = {f.name: _plain(getattr(settings, f.name)) for f in fields(settings)}
    key = {
        "program": f"nesvm-jit {__version__}",
        **{name: value for name, value in asked.items() if name not in FREE},
        **facts,
        "data": data(),
    }
    return Checkpoint(settings.checkpoint, settings.checkpoint_every, key, settings.resume)


def data_of(X: Matrix, *arrays: Any) -> list:
    """Checksums of a matrix in memory and of arrays."""
    return [matrix_checksum(X), *checksums(*arrays)]


def checksums(*arrays: Any) -> list:
    """Of arrays, or None."""
    return [None if a is None else _checksum(a) for a in arrays]


def matrix_checksum(X: Matrix) -> list:
    """Of a matrix in memory."""
    return [X.n_cols, *checksums(*X[:3])] if isinstance(X, Csr) else checksums(X)


def _checksum(a: Any) -> list:
    array = np.ascontiguousarray(a)
    crc = zlib.crc32(array.reshape(-1).view(np.uint8).data)
    return [array.dtype.str, list(array.shape), crc]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
