"""The hidden folder in which a matrix is written block by block, and its journal.

The journal lists a block only when it is on the disk: after a crash, the arrays are cut to the
lengths in the journal, and the conversion continues from there.
"""

import contextlib
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...errors import FormatError, NesvmError
from ...matrix.matrix import CsrArrays
from .. import sealed
from ..libsvm.stream import START, Place
from ..locks import try_lock
from ..text import display_name
from .format import ARRAYS, FILES, FORMAT, HEADER, Header

JOURNAL_FORMAT, JOURNAL_VERSION = "nesvm-jit conversion", 1
JOURNAL, LOCK, MATRIX, OLD = "journal.json", "lock", "matrix", "old"


class Done(NamedTuple):
    """The progress of a conversion: the file, the place in it, and the totals so far."""

    file: int = 0
    place: Place = START
    n_rows: int = 0
    n_cols: int = 0
    n_cells: int = 0
    text_bytes: int = 0


class WorkFolder:
    """A context in which this process alone owns the folder. After an error it leaves what a later
    run can continue, else it removes the folder."""

    def __init__(self, target: Any, job: dict, resumable: bool):
        self.name = display_name(target)
        self.target = os.path.realpath(os.fsdecode(target))
        self.done = Done()
        self._job = job
        self._resumable = resumable
        self._folder = work_folder(target)
        self._blocks: list[list[int]] = []
        self._files: dict[str, Any] = {}
        self._lock = -1

    def __enter__(self) -> "WorkFolder":
        with self._naming_errors():
            require_replaceable(self.target, self.name)
            self._lock = _lock_folder(self._folder, self.name)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        for f in self._files.values():
            f.close()
        if error is None:
            self._clear()
        else:
            with contextlib.suppress(OSError):
                self._put_back()
                if not self._can_resume_after(error):
                    self._clear()
        os.close(self._lock)

    def _clear(self) -> None:
        """Remove the folder, and the lock last, so that no other process takes it meanwhile."""
        with contextlib.suppress(OSError):
            for name in set(os.listdir(self._folder)) - {LOCK}:
                _remove(os.path.join(self._folder, name))
            os.unlink(os.path.join(self._folder, LOCK))
            os.rmdir(self._folder)

    def _can_resume(self) -> bool:
        return self._resumable and self.done.n_rows > 0

    def _can_resume_after(self, error: BaseException) -> bool:
        """Return True if a later run can continue; after a fault in the text it cannot, since the
        text has to change."""
        wrong = isinstance(error, FormatError) and not isinstance(error.__context__, OSError)
        return self._can_resume() and not wrong

    @contextlib.contextmanager
    def _naming_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            advice = "; run it again to go on where it stopped" if self._can_resume() else ""
            why = f"cannot be written: {e.strerror or e}{advice}"
            raise NesvmError(f"{self.name}: {why}") from None

    # ------------------------------------------------------------ work

    def begin(self, resume: bool) -> bool:
        """Open the arrays: those of an interrupted run of the same job, or new ones. Return True
        if that run is continued."""
        with self._naming_errors():
            self._put_back()
            resumed = resume and self._resumable and self._open_earlier()
            if not resumed:
                for name in (MATRIX, JOURNAL):
                    _remove(os.path.join(self._folder, name))
                os.mkdir(os.path.join(self._folder, MATRIX))
                for name in ARRAYS:
                    # kept open for many blocks, closed by __exit__
                    self._files[name] = open(self._array(name), "wb", buffering=0)  # noqa: SIM115
                _write(self._files["indptr"], np.zeros(1, dtype="<u8"))
        return resumed

    def append(self, file: int, X: CsrArrays, labels: np.ndarray, place: Place) -> None:
        """Write the rows of a block, and list it in the journal if the job can be resumed."""
        done = self.done
        parts = {
            "values": X.data.astype(X.data.dtype.newbyteorder("<"), copy=False),
            "indices": X.indices.astype("<u4", copy=False),
            "indptr": X.indptr[1:].astype("<u8") + np.uint64(done.n_cells),
            "labels": labels.astype("<f8", copy=False),
        }
        before = done.place.offset if file == done.file else 0
        with self._naming_errors():
            for name, part in parts.items():
                _write(self._files[name], part)
            crcs = [zlib.crc32(parts[name].data) for name in ARRAYS]
            self._blocks.append([len(labels), len(X.data), *crcs])
            done = Done(
                file,
                place,
                done.n_rows + len(labels),
                max(done.n_cols, X.n_cols),
                done.n_cells + len(X.data),
                done.text_bytes + place.offset - before,
            )
            if self._resumable:
                self._sync()
                self._write_journal(done)
        self.done = done

    def finish(self, n_cols: int, dtype: np.dtype, first_index: int) -> Header:
        """Write the header and move the matrix to its place."""
        done = self.done
        header = Header(
            done.n_rows, n_cols, done.n_cells, dtype.name, first_index, list(self._blocks)
        )
        matrix = os.path.join(self._folder, MATRIX)
        with self._naming_errors():
            self._sync()
            for f in self._files.values():
                f.close()
            sealed.write_sealed(os.path.join(matrix, HEADER), header.text())
            _sync_folder(matrix)
            require_replaceable(self.target, self.name)
            if os.path.isdir(self.target):
                os.rename(self.target, os.path.join(self._folder, OLD))
            os.rename(matrix, self.target)
            _sync_folder(os.path.dirname(self.target))
        return header

    def _array(self, name: str) -> str:
        return os.path.join(self._folder, MATRIX, f"{name}.bin")

    def _sync(self) -> None:
        for f in self._files.values():
            os.fsync(f.fileno())

    def _put_back(self) -> None:
        """Put an older matrix back if a crash came between the two renames of `finish`."""
        old = os.path.join(self._folder, OLD)
        if os.path.isdir(old) and not os.path.exists(self.target):
            os.rename(old, self.target)
        _remove(old)

    # ------------------------------------------------------------ journal

    def _write_journal(self, done: Done) -> None:
        facts = {"job": self._job, "done": done._asdict(), "blocks": self._blocks}
        data = sealed.seal(JOURNAL_FORMAT, JOURNAL_VERSION, facts)
        sealed.write_sealed(os.path.join(self._folder, JOURNAL), data)

    def _open_earlier(self) -> bool:
        """Open the arrays of an interrupted run and cut them to the lengths in its journal; return
        False if there is no journal of the same job."""
        try:
            with open(os.path.join(self._folder, JOURNAL), "rb") as f:
                facts = sealed.unseal(JOURNAL_FORMAT, JOURNAL_VERSION, f.read())
            if facts["job"] != json.loads(json.dumps(self._job)):
                return False
            done = Done(**{**facts["done"], "place": Place(*facts["done"]["place"])})
            header = Header(done.n_rows, 0, done.n_cells, self._job["dtype"], 0, facts["blocks"])
            for name, (dtype, length) in header.shapes.items():
                if os.path.getsize(self._array(name)) < length * dtype.itemsize:
                    return False
        except (OSError, ValueError, KeyError, TypeError):
            return False
        for name, (dtype, length) in header.shapes.items():
            array = open(self._array(name), "r+b", buffering=0)  # noqa: SIM115
            self._files[name] = array
            array.truncate(length * dtype.itemsize)
            array.seek(0, os.SEEK_END)
        self.done, self._blocks = done, facts["blocks"]
        return True


def work_folder(target: Any) -> str:
    """Return the path of the hidden folder beside `target`."""
    parent, name = os.path.split(os.path.realpath(os.fsdecode(target)))
    return os.path.join(parent, f".{name}.part")


def unfinished(target: Any) -> bool:
    """Return True if there is an interrupted conversion that can be resumed."""
    return os.path.isfile(os.path.join(work_folder(target), JOURNAL))


def require_replaceable(target: str, name: str) -> None:
    """Raise NesvmError if `target` exists and is neither a matrix nor an empty folder."""
    if not os.path.lexists(target):
        return
    if not os.path.isdir(target):
        raise NesvmError(f"{name}: cannot be written: it exists and is no on-disk matrix")
    names = set(os.listdir(target))
    if names and not (names <= FILES and _has_our_header(target)):
        raise NesvmError(
            f"{name}: cannot be written: the folder exists and holds something else than a matrix"
        )


def _has_our_header(folder: str) -> bool:
    """Return True if the folder has a header of this format, of any version."""
    try:
        with open(os.path.join(folder, HEADER), "rb") as f:
            return sealed.parse(f.read()).get("format") == FORMAT
    except (OSError, ValueError):
        return False


# ---------------------------------------------------------------- files


def _lock_folder(folder: str, name: str) -> int:
    """Return an open, locked file in the folder; no other process can lock it while it is open."""
    path = os.path.join(folder, LOCK)
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # the process that held the lock has just removed the folder
            continue
        if not _lock(lock):
            os.close(lock)
            raise NesvmError(f"{name}: another conversion into this folder is running")
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(path)):
                return lock
        os.close(lock)


def _lock(file: int) -> bool:
    """Lock a file; return False only if another process holds the lock."""
    return try_lock(file) is not False


def _write(f: Any, part: np.ndarray) -> None:
    left = part.view(np.uint8).data
    while left:
        left = left[f.write(left) :]


def _sync_folder(path: str) -> None:
    """Have the system write renames in a folder to the disk, where it can."""
    with contextlib.suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
