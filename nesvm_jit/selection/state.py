"""The finished columns of a path on disk, so that an interrupted run can go on."""

import contextlib
import dataclasses
import hashlib
import json
import os
import threading
import time
from typing import Any

import numpy as np

from .. import __version__
from ..errors import NesvmError
from ..files.ondisk.matrix import OnDisk
from ..files.text import writing
from ..matrix.matrix import Csr, Matrix
from .columns import Column
from .stage import Fit

EVERY = 1.0  # seconds between two writes
IRRELEVANT = ("callback", "C")  # settings that change no result of a column


def key_of(X: Matrix | OnDisk, arrays: list[Any], facts: dict[str, Any]) -> str:
    """A digest of the data and of all that was asked for."""
    digest = hashlib.blake2b(digest_size=16)
    parts: list[Any] = []
    if isinstance(X, OnDisk):
        digest.update(X.digest())
    else:
        parts = [X.data, X.indices, X.indptr] if isinstance(X, Csr) else [X]
    for a in [*parts, *arrays]:
        a = np.ascontiguousarray(a) if a is not None else np.empty(0)
        digest.update(f"{a.dtype} {a.shape} ".encode())
        digest.update(a.data if a.size else b"")
    digest.update(repr(sorted(facts.items())).encode())
    digest.update(__version__.encode())
    return digest.hexdigest()


class State:
    """Finished columns by γ and repeat, kept in a file; without a name, nowhere."""

    def __init__(self, path: str | None = None, key: str = ""):
        self.path, self.key = path, key
        self.ignored = False  # a file of another run was there
        self._columns: dict[str, list] = {}
        self.resumed = 0
        self._lock = threading.Lock()
        self._written, self._fresh = time.monotonic(), True
        if path is not None:
            self._read(path)

    def _read(self, path: str) -> None:
        try:
            with open(path, encoding="utf-8") as f:
                stored = json.load(f)
            columns = {k: _checked(v) for k, v in stored["columns"].items()}
            self.ignored = stored["key"] != self.key
        except FileNotFoundError:
            return
        except OSError as e:
            raise NesvmError(f"{path}: cannot be read: {e.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise NesvmError(
                f"{path}: must be absent or left by an interrupted path, it is another file"
            ) from None
        if not self.ignored:
            self._columns, self.resumed = columns, len(columns)
        elif path == self.path:  # left as it is: it may be hours of another run
            self.path = f"{path}.{self.key[:8]}"
            self._read(self.path)
            self.ignored = True

    def get(self, gamma: int, repeat: int, folds: tuple[int, ...], n_costs: int) -> dict | None:
        """The fits of a column by fold and cost, if it was finished."""
        stored = self._columns.get(_name(gamma, repeat, folds))
        if stored is None or len(stored) != len(folds) * n_costs:
            return None
        return {(fold, i): Fit(**fit) for fold, i, fit in stored}

    def add(self, column: Column) -> None:
        """Keep a finished column."""
        stored = [[*place, dataclasses.asdict(fit)] for place, fit in sorted(column.fits.items())]
        with self._lock:
            self._columns[_name(*column.key, column.folds)] = stored
            self._fresh = False
        if self.path is not None and time.monotonic() - self._written > EVERY:
            self.write()

    def write(self) -> None:
        """Bring the file up to date."""
        with self._lock:
            if self.path is None or self._fresh:
                return
            text = json.dumps({"key": self.key, "columns": self._columns})
            with writing(self.path) as f:
                f.write(text.encode())
            self._written, self._fresh = time.monotonic(), True

    def forget(self) -> None:
        """Remove the file."""
        if self.path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)


def _name(gamma: int, repeat: int, folds: tuple[int, ...]) -> str:
    return f"{gamma} {repeat} {' '.join(map(str, folds))}"


def _checked(stored: list) -> list:
    """What is no list of fits raises an error."""
    names = {field.name for field in dataclasses.fields(Fit)}
    for _, _, fit in stored:
        if {*fit} != names:
            raise ValueError
    return stored
