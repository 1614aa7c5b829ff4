"""Model files to and from LIBLINEAR and LIBSVM, and accuracy beside theirs on real data.

NESVM_DATA names a folder with a9a.xz, a9a.t.xz, usps.xz, ...; tests on those skip without it.
"""

import contextlib
import io
import os
import shutil
import subprocess
import time
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from nesvm_jit import load_model, read_libsvm, write_libsvm
from scipy.sparse import csr_matrix

from tests.endings import train

LIBLINEAR = ("liblinear-train", "liblinear-predict")
LIBSVM = ("svm-train", "svm-predict")
POINTS = 0.3  # of accuracy


def run(*command):
    subprocess.run([str(c) for c in command], check=True, capture_output=True)


class Programs:
    """Command-line tools: they read and write files."""

    def __init__(self, names):
        if not all(shutil.which(name) for name in names):
            pytest.skip(f"no {names[0]}")
        self.train_name, self.predict_name = names

    def fit(self, options, X, y, path):
        write_libsvm(f"{path}.x", X, y)
        run(self.train_name, "-q", *options.split(), f"{path}.x", path)

    def labels(self, X, path):
        write_libsvm(f"{path}.z", X, np.zeros(X.shape[0]))
        run(self.predict_name, f"{path}.z", path, f"{path}.out")
        return np.loadtxt(f"{path}.out")


class Library:
    """The packages on PyPI, which read and write the same files from Python."""

    def __init__(self, kind):
        name = {"liblinear": "liblinear.liblinearutil", "libsvm": "libsvm.svmutil"}[kind]
        self.module = pytest.importorskip(name)
        self.prefix = "" if kind == "liblinear" else "svm_"

    def call(self, name, *arguments):
        with contextlib.redirect_stdout(io.StringIO()):
            return getattr(self.module, self.prefix + name)(*arguments)

    def fit(self, options, X, y, path):
        model = self.call("train", y, csr_matrix(X), f"{options} -q")
        self.call("save_model", str(path), model)

    def labels(self, X, path):
        X = csr_matrix(X)
        model = self.call("load_model", str(path))
        return np.array(self.call("predict", np.zeros(X.shape[0]), X, model, "-q")[0])


@pytest.fixture(params=["programs", "library"])
def liblinear(request):
    return Programs(LIBLINEAR) if request.param == "programs" else Library("liblinear")


@pytest.fixture(params=["programs", "library"])
def libsvm(request):
    return Programs(LIBSVM) if request.param == "programs" else Library("libsvm")


def small(name):
    """Scaled data of scikit-learn, in two halves; of breast_cancer the labels are −1 and +1."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    X = X / np.maximum(np.abs(X).max(axis=0), 1e-12)
    order = np.random.default_rng(0).permutation(len(y))[:500]
    X, y = X[order], y[order].astype(float)
    y = 2 * y - 1 if name == "breast_cancer" else y
    half = len(y) // 2
    return csr_matrix(X[:half]), y[:half], csr_matrix(X[half:]), y[half:]


def stored(name, rows=None):
    """A data set of NESVM_DATA in two parts; the last fifth is the test where there is none."""
    folder = os.environ.get("NESVM_DATA")
    path = Path(folder or "", f"{name}.xz")
    if not folder or not path.exists():
        pytest.skip(f"no NESVM_DATA with {path.name}")
    X, y = read_libsvm(path)
    test = Path(folder, f"{name}.t.xz")
    if test.exists():
        Z, z = read_libsvm(test, n_features=X.shape[1])
    else:
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
        cut = int(0.8 * len(y))
        X, y, Z, z = X[:cut], y[:cut], X[cut:], y[cut:]
    return (X, y, Z, z) if rows is None else (X[:rows], y[:rows], Z, z)


def ours_read_by(peer, m, Z, path):
    m.save(path)
    np.testing.assert_array_equal(peer.labels(Z, path), m.predict(Z))


def theirs_read_by_us(peer, options, X, y, Z, path):
    peer.fit(options, X, y, path)
    np.testing.assert_array_equal(load_model(path).predict(Z), peer.labels(Z, path))


# ---------------------------------------------------------------- model files

SMALL = ("breast_cancer", "iris", "digits")


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("model", ["csvm", "lpsvm", "lssvm"])
@pytest.mark.parametrize("name", SMALL)
def test_liblinear_predicts_as_we_do_with_our_models(liblinear, tmp_path, name, model, bias):
    X, y, Z, _ = small(name)
    ours_read_by(liblinear, train(X, y, model, bias=bias), Z, tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *product(SMALL, ("-s 3 -B 1", "-s 2", "-s 0 -B 1", "-s 5")),
        # of two classes, their predict writes two scores into room for one
        *product(("iris", "digits"), ("-s 4 -B 1",)),
    ],
)
def test_we_predict_as_liblinear_does_with_its_models(liblinear, tmp_path, name, options):
    X, y, Z, _ = small(name)
    theirs_read_by_us(liblinear, options, X, y, Z, tmp_path / "m")


KERNELS = {
    "linear": {"multiclass": "ovo"},
    "rbf": {"kernel": "rbf", "gamma": 0.5, "C": 10.0},
    "poly": {"kernel": "poly", "gamma": 0.5, "coef0": 1.0, "degree": 2},
    "rbf lssvm": {"kernel": "rbf", "gamma": 0.5, "model": "lssvm"},
    "rbf probability": {"kernel": "rbf", "gamma": 0.5, "probability": True},
}


@pytest.mark.parametrize("case", [k for k in KERNELS if k != "linear"])
@pytest.mark.parametrize("name", SMALL)
def test_libsvm_predicts_as_we_do_with_our_models(libsvm, tmp_path, name, case):
    X, y, Z, _ = small(name)
    ours_read_by(libsvm, train(X, y, **KERNELS[case]), Z, tmp_path / "m")


@pytest.mark.parametrize(
    "options", ["-t 0", "-t 1 -g 0.5 -r 1 -d 2", "-t 2 -g 0.5 -c 10", "-t 3 -g 0.01", "-b 1"]
)
@pytest.mark.parametrize("name", SMALL)
def test_we_predict_as_libsvm_does_with_its_models(libsvm, tmp_path, name, options):
    X, y, Z, _ = small(name)
    theirs_read_by_us(libsvm, options, X, y, Z, tmp_path / "m")


@pytest.mark.parametrize("name", ["breast_cancer", "digits"])
def test_libsvm_has_our_probabilities(tmp_path, name):
    peer = Library("libsvm")
    X, y, Z, z = small(name)
    m = train(X, y, kernel="rbf", probability=True)
    m.save(tmp_path / "m")
    theirs = peer.call("load_model", str(tmp_path / "m"))
    p = np.array(peer.call("predict", z, Z, theirs, "-b 1 -q")[2])
    # their iteration stops at 0.005/k, ours at the optimum
    np.testing.assert_allclose(m.predict_proba(Z), p, atol=1e-6 if name != "digits" else 5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a9a", "usps"])
def test_every_label_of_real_data_is_the_same_with_liblinear(liblinear, tmp_path, name):
    X, y, Z, _ = stored(name)
    ours_read_by(liblinear, train(X, y), Z, tmp_path / "ours")
    theirs_read_by_us(liblinear, "-s 2 -B 1", X, y, Z, tmp_path / "theirs")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "gamma"), [("a9a", 1 / 123), ("usps", 1 / 256)])
def test_every_label_of_real_data_is_the_same_with_libsvm(libsvm, tmp_path, name, gamma):
    X, y, Z, _ = stored(name, rows=5000)
    ours_read_by(libsvm, train(X, y, kernel="rbf", gamma=gamma), Z, tmp_path / "ours")
    theirs_read_by_us(libsvm, f"-t 2 -g {gamma}", X, y, Z, tmp_path / "theirs")


# ---------------------------------------------------------------- accuracy


def compared(name, ours, theirs, peer, data, path):
    """Percent right, ours and theirs, and a line of the table (pytest -s shows it)."""
    X, y, Z, z = data
    train(X, y, max_iter=1, **ours)  # compiles
    times = [time.perf_counter()]
    m = train(X, y, **ours)
    times.append(time.perf_counter())
    peer.fit(theirs, X, y, path)
    times.append(time.perf_counter())
    here, there = np.mean(m.predict(Z) == z), np.mean(load_model(path).predict(Z) == z)
    seconds, their_seconds = np.diff(times)
    print(
        f"\n| {name} | {ours} | {100 * here:.2f} | {100 * there:.2f} | "
        f"{100 * (here - there):+.2f} | {seconds:.2f} | {their_seconds:.2f} |"
    )
    return 100 * here, 100 * there


@pytest.mark.slow
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("name", ["a9a", "w8a", "usps", "scene15.gist512", "news20bydate"])
def test_linear_machines_are_as_accurate_as_liblinears(tmp_path, name, bias):
    """LIBLINEAR's -B 1 penalises the bias, ours is free: the same problem without alone."""
    peer = Library("liblinear")
    ours, theirs = {"C": 1.0, "bias": bias}, f"-s 3 -c 1 -B {1 if bias else -1}"
    here, there = compared(name, ours, theirs, peer, stored(name), tmp_path / "m")
    assert abs(here - there) <= POINTS


@pytest.mark.slow
@pytest.mark.parametrize("C", [1.0, 10.0])
@pytest.mark.parametrize("name", ["a9a", "usps", "scene15.gist512"])
def test_kernel_machines_are_as_accurate_as_libsvms(tmp_path, name, C):
    data = stored(name, rows=10_000)
    gamma = 1 / data[0].shape[1]
    ours, theirs = {"kernel": "rbf", "C": C, "gamma": gamma}, f"-t 2 -c {C} -g {gamma}"
    here, there = compared(name, ours, theirs, Library("libsvm"), data, tmp_path / "m")
    assert abs(here - there) <= POINTS
