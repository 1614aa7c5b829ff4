"""Which data and settings a saved run is of."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from .. import __version__
from ..files.ondisk.matrix import OnDisk
from ..matrix.matrix import Csr
from ..settings import Settings

DIGEST_BYTES = 16  # of a digest: two data sets have the same one with a chance of 2⁻¹²⁸
# Settings that may be others when a run goes on: they say when it ends, not where it goes.
FREE = ("max_iter", "time_limit", "callback", "checkpoint", "checkpoint_every", "resume")


def settings_fingerprint(
    settings: Settings, data: list[Any], free: Sequence[str] = FREE, **facts: Any
) -> dict[str, Any]:
    """All that the result of a run depends on: the program, the settings but those that are free,
    the data, and further facts."""
    asked = {f.name: _plain(getattr(settings, f.name)) for f in fields(settings)}
    return {
        "program": f"nesvm-jit {__version__}",
        **{name: value for name, value in asked.items() if name not in free},
        **facts,
        "data": data,
    }


def data_fingerprint(*data: Any) -> list[str | None]:
    """A digest of each matrix or array, in memory or on disk; None of None."""
    return [None if part is None else _digest(part) for part in data]


def short_name(fingerprint: dict[str, Any]) -> str:
    """Eight letters that tell fingerprints apart, for the name of a file."""
    text = json.dumps(fingerprint, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def _digest(data: Any) -> str:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    if isinstance(data, OnDisk):
        digest.update(data.digest())
        return digest.hexdigest()
    if isinstance(data, Csr):
        digest.update(f"{data.n_cols} ".encode())
    for part in [data.data, data.indices, data.indptr] if isinstance(data, Csr) else [data]:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str} {array.shape} ".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
