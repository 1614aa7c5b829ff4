"""Differential fuzzing of the LIBSVM reader: `python -m tests.fuzz_reader --cases 1000000`.

Every input ends at a page that must not be read, so that one byte too far is a crash, and
every verdict and array is compared with the plain Python reader of the oracle.
"""

import ctypes
import lzma
import mmap
import os
import random
import sys
import time
from pathlib import Path

import numpy as np
from nesvm_jit import FormatError, set_threads
from nesvm_jit.files.libsvm.explain import no_rows
from nesvm_jit.files.libsvm.parse import Form, parse_lines

from . import oracle

SAMPLE = (
    b"# made for tests\r\n"
    b"+1 1:0.708333 2:1 3:1 4:-0.320755 5:-0.105023 6:-1 7:1 8:-0.419847 9:-1 10:-0.225806 13:-1\n"
    b"-1 qid:12 1:0.583333 2:-1 3:0.333333 4:-0.603774 5:1 6:-1 7:1 8:0.358779 # why not\n"
    b"3.5e2 1:-2.70834e-01\t3:.5 4:5. 5:+7\r\n"
    b"\n"
    b"  -0 12:0.1000000000000000055511151231257827 4294967294:1e-320\n"
    b"2\n"
    b"1e0 1:123456789012345678901234567890 2:9007199254740993 3:1e308 4:2.2250738585072011e-308\n"
) * 6
WORDS = [
    b" ", b"\t", b"\n", b"\r\n", b":", b"#", b"qid:", b"qid:7 ", b"+", b"-", b".", b"e", b"E-",
    b"0", b"1", b"9", b"00", b"1e400", b"1e-400", b"nan", b"inf", b"4294967294", b"4294967295",
    b"18446744073709551617", b"\x00", b"\xff", b"1:1", b" 2:2", b"0:1", b"99999999999999999999",
    b".0000000000000000000000000001", b"1.00000000000000011102230246251565404236316680908203125",
]  # fmt: skip
PAGE = mmap.PAGESIZE


class GuardedPage:
    """Memory that ends at a page nobody may read (where the system has such a thing)."""

    def __init__(self, pages=4):
        self.map = mmap.mmap(-1, (pages + 1) * PAGE)
        self.size = pages * PAGE
        self.bytes = np.frombuffer(self.map, dtype=np.uint8)
        if sys.platform == "linux":
            address = self.bytes.ctypes.data + self.size
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.mprotect(ctypes.c_void_p(address), PAGE, 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")

    def place(self, text):
        start = self.size - len(text)
        self.bytes[start : self.size] = np.frombuffer(text, dtype=np.uint8)
        view = self.bytes[start : self.size]
        view.flags.writeable = False
        return view


GUARDED = GuardedPage()


def agree(text, base=1, n_features=None):
    """Our reader and the oracle's accept the same text as the same arrays."""
    try:
        labels, rows = oracle.read_libsvm(text, base, n_features)
    except ValueError:
        labels = rows = None
    try:
        form = Form("fuzz", base, n_features, np.dtype(np.float64))
        X, y = parse_lines(GUARDED.place(text), form)
        if not len(y):
            raise no_rows("fuzz")
        message = None
    except FormatError as e:
        message = str(e)
    if message is not None:
        assert rows is None, (text, message)
        assert "\n" not in message, text
        return
    assert rows is not None, ("accepted", text)
    assert y.tobytes() == labels.tobytes(), text
    assert np.diff(X.indptr).tolist() == [len(r) for r in rows], text
    assert X.indices.tolist() == [j for r in rows for j, _ in r], text
    assert X.data.tobytes() == np.array([v for r in rows for _, v in r]).tobytes(), text


def samples():
    """The first 2 kB of our sample and of the real files in NESVM_DATA."""
    yield "sample", SAMPLE[:2048]
    folder = os.environ.get("NESVM_DATA")
    for path in sorted(Path(folder).glob("*.xz")) if folder else ():
        with lzma.open(path) as f:
            yield path.name, f.read(2048)


def truncations(step=1):
    """Every beginning of every sample; how many there were."""
    count = 0
    for _, text in samples():
        for end in range(0, len(text) + 1, step):
            agree(text[:end])
            count += 1
    return count


def mutate(rng):
    """A piece of the sample with a few bytes or words changed, put in, taken out or moved."""
    start = rng.randrange(len(SAMPLE))
    text = bytearray(SAMPLE[start : start + rng.choice((20, 60, 200))])
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                text[at:at] = rng.choice(WORDS)
            case 1:
                text[at : at + rng.randrange(1, 5)] = rng.choice(WORDS)
            case 2:
                del text[at : at + rng.randrange(1, 9)]
            case 3:
                text[at : at + 1] = bytes([rng.randrange(256)])
            case 4:
                text[at:at] = text[: rng.randrange(30)]
    return bytes(text)


def run(cases, seed=0, progress=False):
    rng = random.Random(seed)
    start = time.perf_counter()
    for k in range(1, cases + 1):
        agree(mutate(rng), base=rng.randrange(2), n_features=rng.choice((None, None, 5)))
        if progress and k % 100_000 == 0:
            print(f"{k} cases, {time.perf_counter() - start:.0f} s", flush=True)
    return cases


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    set_threads(1)  # an input is one block: a second thread would only be started and stopped
    cut = truncations()
    print(f"{cut} truncations of {', '.join(name for name, _ in samples())}", flush=True)
    run(options.cases, options.seed, progress=True)
    print(f"{options.cases} mutated inputs and {cut} truncations: no disagreement, no crash")
