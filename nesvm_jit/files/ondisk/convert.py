"""Convert LIBSVM text to an on-disk matrix, in bounded memory, resumable by a journal."""

import contextlib
import os
import stat
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...errors import FormatError, InputError
from ...matrix.checks import whole_number
from ...matrix.matrix import CsrArrays
from ..libsvm.parse import form_of
from ..libsvm.stream import BLOCK_BYTES, START, Place, placed_blocks
from ..text import display_name
from .workfolder import Done, WorkFolder


class Conversion(NamedTuple):
    """The size of a converted matrix; `resumed` is True if an interrupted run was continued."""

    n_rows: int
    n_cols: int
    n_cells: int
    nbytes: int
    resumed: bool


def convert(
    paths: Any,
    folder: Any,
    n_features: int | None = None,
    dtype: Any = np.float64,
    zero_based: bool = False,
    resume: bool = True,
    progress: Callable[[dict], Any] | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Conversion:
    """Write the rows of LIBSVM text files, one after the other, as an on-disk matrix in `folder`.

    `paths` is whatever `read_libsvm` takes, or a list of file names. About `block_bytes` of text
    are held in memory at a time. The folder appears when the matrix is complete; an older matrix
    there is replaced. Until then a journal in a hidden folder beside it lists every finished
    block: if a run is killed, the next one with the same files and options continues it, unless
    `resume` is false. After every block, `progress` is called with a dict of `rows`, `cells`,
    `text_bytes` and `file`.
    """
    sources = _sources(paths)
    form = form_of(sources[0], n_features, dtype, zero_based)
    whole_number("block_bytes", block_bytes, 1)
    display_name(folder)
    inputs = [_identity(source) for source in sources]
    job = {
        "inputs": inputs,
        "n_features": form.n_features,
        "dtype": form.dtype.name,
        "first_index": form.base,
    }
    with WorkFolder(folder, job, resumable=None not in inputs) as work:
        resumed = work.begin(resume)
        report = partial(_report, progress, work, sources)
        report()
        read = partial(
            placed_blocks,
            n_features=n_features,
            dtype=form.dtype,
            zero_based=zero_based,
            block_bytes=block_bytes,
        )
        _write_all(work, _rows_of(sources, inputs, work.done, read), report)
        width = work.done.n_cols if form.n_features is None else form.n_features
        header = work.finish(width, form.dtype, form.base)
    nbytes = sum(kind.itemsize * length for kind, length in header.shapes.values())
    return Conversion(header.n_rows, header.n_cols, header.n_cells, nbytes, resumed)


def _rows_of(
    sources: list, inputs: list, done: Done, read: Callable
) -> Generator[tuple[int, CsrArrays, np.ndarray, Place], None, None]:
    """Yield (number of the file, rows, labels, the place after them) of all unfinished blocks."""
    for k in range(done.file, len(sources)):
        start = done.place if k == done.file else START
        with contextlib.closing(read(sources[k], start=start)) as blocks:
            for X, labels, place in blocks:
                yield k, X, labels, place
        if _identity(sources[k]) != inputs[k]:
            raise FormatError(f"{display_name(sources[k])}: the file changed while it was read")


def _write_all(work: WorkFolder, blocks: Generator, report: Callable[[], None]) -> None:
    """Write every block in a thread while the next one is read."""
    with ThreadPoolExecutor(1, "nesvm-jit-write") as pool, contextlib.closing(blocks):
        written = None
        for block in blocks:
            if written is not None:
                written.result()
                report()
            written = pool.submit(work.append, *block)
        if written is not None:
            written.result()
            report()


def _report(progress: Callable[[dict], Any] | None, work: WorkFolder, sources: list) -> None:
    if progress is not None:
        done = work.done
        facts = {"rows": done.n_rows, "cells": done.n_cells, "text_bytes": done.text_bytes}
        progress({**facts, "file": display_name(sources[done.file])})


def _sources(paths: Any) -> list:
    several = isinstance(paths, (list, tuple))
    sources = list(paths) if several else [paths]
    if not sources:
        raise InputError("at least one text file is required")
    for source in sources:
        display_name(source)
        if len(sources) > 1 and (hasattr(source, "read") or source == "-"):
            raise InputError("standard input or an open file must be the only one to convert")
    return sources


def _identity(source: Any) -> list | None:
    """Return path, size and time of a file, by which a later run knows it again; None if it cannot
    be read a second time."""
    if hasattr(source, "read") or source == "-":
        return None
    try:
        status = os.stat(source)
    except (OSError, ValueError) as e:
        why = getattr(e, "strerror", None) or e
        raise FormatError(f"{display_name(source)}: cannot be read: {why}") from None
    if not stat.S_ISREG(status.st_mode):
        return None
    return [os.path.abspath(os.fsdecode(source)), status.st_size, status.st_mtime_ns]
