"""How fast LIBSVM text is read, beside scikit-learn and svmloader: `python -m bench.read`."""

import importlib.util
from functools import partial

import numpy as np
from nesvm_jit import read_libsvm, write_libsvm

from .common import (
    DOCS,
    UNPACKED,
    data_file,
    machine_facts,
    median_time,
    note,
    table,
    verdict,
    write_page,
    write_whole,
)
from .peers.datasets.synthetic import classes, vision

FILES = ("mnist", "a9a", "ijcnn1", "news20bydate")
AIMS = {"scikit-learn": 15.0, "svmloader": 2.0}  # times faster, on mnist


def _synthetic(f) -> None:
    """Text of the shape of mnist: 20000 rows of about 150 whole numbers from 1 to 255."""
    X = vision(20000, 784, 150, np.random.default_rng(0))
    X.data = np.ceil(255 * X.data)
    write_libsvm(f, X, classes(X, 10, np.random.default_rng(1)))


def files():
    """(name, path) of all there is to read; the first is what the aims are about."""
    found = [(name, data_file(name)) for name in FILES]
    if found[0][1] is None:
        note("no mnist in the folder NESVM_DATA: reading text made up in its shape")
        path = UNPACKED / "synthetic"
        if not path.is_file():
            write_whole(path, _synthetic)
        found[0] = ("synthetic", path)
    return [(name, path) for name, path in found if path is not None]


def peers():
    """{name: (reader, repeats)} of those that are installed."""
    found = {}
    if importlib.util.find_spec("sklearn"):
        from sklearn.datasets import load_svmlight_file

        found["scikit-learn"] = (lambda path: load_svmlight_file(str(path), zero_based=False), 2)
    if importlib.util.find_spec("svmloader"):
        from svmloader import load_svmfile

        read = partial(load_svmfile, ltype="d", zero_based=False)
        found["svmloader"] = (lambda path: read(str(path)), 5)
    for name in AIMS.keys() - found.keys():
        note(f"{name} is not installed: skipped")
    return found


def same_arrays(ours, theirs) -> bool:
    """Whether two (X, y) hold the same numbers in the same places; X in our precision."""
    (X, y), (Z, z) = ours, theirs
    return (
        X.shape == Z.shape
        and np.array_equal(X.data, Z.data.astype(X.dtype))
        and np.array_equal(X.indices, Z.indices)
        and np.array_equal(X.indptr, Z.indptr)
        and np.array_equal(y, z)
    )


def measure(name, path, rivals):
    """Rows of the table for one file, and {peer: times slower than we are}."""
    size = path.stat().st_size / 1e6
    single = partial(read_libsvm, path, dtype=np.float32)
    ours, ours32 = read_libsvm(path), single()
    seconds, seconds32 = (median_time(f, 5) for f in (partial(read_libsvm, path), single))
    times = {"nesvm_jit": seconds, "nesvm_jit float32": seconds32}
    same = dict.fromkeys(times, "–")
    for peer, (read, repeats) in rivals.items():
        theirs = read(path)
        times[peer] = median_time(partial(read, path), repeats, warmups=0)
        same[peer] = "yes" if same_arrays(ours, theirs) else "no"
        if peer == "scikit-learn":
            same["nesvm_jit"] = same[peer]
            same["nesvm_jit float32"] = "yes" if same_arrays(ours32, theirs) else "no"
    rows = [
        (name, f"{size:.1f}", who, f"{t:.4f}", f"{size / t:.0f}", f"{t / seconds:.2f}", same[who])
        for who, t in times.items()
    ]
    return rows, {peer: times[peer] / seconds for peer in rivals}


def main() -> None:
    machine_facts()
    rivals = peers()
    rows, ratios, subject = [], {}, None
    for name, path in files():
        note(f"reading {name}")
        more, found = measure(name, path, rivals)
        rows += more
        if subject is None:
            subject, ratios = name, found
    headers = ("file", "MB", "reader", "seconds", "MB/s", "time / ours", "same arrays")
    aims = [
        (
            f"{subject}: times the speed of {peer}",
            f"≥ {aim:g}",
            f"{ratios[peer]:.1f}",
            verdict(ratios[peer], aim),
        )
        for peer, aim in AIMS.items()
        if peer in ratios
    ]
    what = (
        'Medians after a warm-up; float64 unless said. "Same arrays": data, indices, indptr and '
        "labels equal, ours compared with scikit-learn's (float32: rounded), "
        "svmloader's with ours."
    )
    sections = [
        ("Aims", table(aims, ("aim", "target", "measured", ""))),
        ("Readers", f"{what}\n\n{table(rows, headers)}"),
    ]
    write_page(DOCS / "bench-read.md", "Reading LIBSVM text", "python -m bench.read", sections)


if __name__ == "__main__":
    main()
