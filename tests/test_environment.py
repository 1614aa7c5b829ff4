"""What numba would be told from outside and could not use is refused in one line."""

import os
import subprocess
import sys
from importlib import metadata

import pytest
from nesvm_jit import InputError
from nesvm_jit.jit import environment

LAYERS = "default, safe, forksafe, threadsafe, tbb, omp, workqueue"


@pytest.fixture
def clean(monkeypatch):
    for name in [name for name in os.environ if name.startswith("NUMBA_")]:
        monkeypatch.delenv(name)
    return monkeypatch


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("NUM_THREADS", "0", "a whole number from 1 on, got '0'"),
        ("NUM_THREADS", "-2", "a whole number from 1 on, got '-2'"),
        ("NUM_THREADS", "many", "a whole number from 1 on, got 'many'"),
        ("NUM_THREADS", "1.5", "a whole number from 1 on, got '1.5'"),
        ("THREADING_LAYER", "junk", f"one of {LAYERS}, got 'junk'"),
        ("THREADING_LAYER", "", f"one of {LAYERS}, got ''"),
        (
            "THREADING_LAYER_PRIORITY",
            "omp",
            "tbb, omp and workqueue in some order, got 'omp'",
        ),
    ],
)
def test_what_numba_cannot_use_is_refused(clean, name, value, why):
    clean.setenv(f"NUMBA_{name}", value)
    with pytest.raises(InputError) as e:
        environment.require_usable_environment()
    assert str(e.value) == f"NUMBA_{name} must be {why}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NUM_THREADS", "1"),
        ("NUM_THREADS", " 2 "),
        ("NUM_THREADS", ""),
        ("THREADING_LAYER", "OMP"),
        ("THREADING_LAYER", "workqueue"),
        ("THREADING_LAYER_PRIORITY", "omp workqueue tbb"),
    ],
)
def test_what_numba_can_use_is_not(clean, name, value):
    clean.setenv(f"NUMBA_{name}", value)
    assert environment.require_usable_environment() is None


def test_a_layer_that_cannot_be_loaded_is_refused(clean):
    def fail(name):
        raise ImportError(f"no {name}")

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    clean.setattr(environment.importlib, "import_module", fail)
    clean.setattr(metadata, "version", missing)
    for layer, library in {"tbb": "tbbpool", "safe": "tbbpool", "OMP": "omppool"}.items():
        clean.setenv("NUMBA_THREADING_LAYER", layer)
        with pytest.raises(InputError) as e:
            environment.require_threading_layer()
        assert str(e.value) == (
            f"NUMBA_THREADING_LAYER={layer.lower()} needs a library that cannot be loaded here: "
            f"no numba.np.ufunc.{library}"
        )
    clean.setenv("NUMBA_THREADING_LAYER", "workqueue")
    assert environment.require_threading_layer() is None
    clean.setattr(metadata, "version", lambda name: "2022.0")
    clean.setenv("NUMBA_THREADING_LAYER", "tbb")
    assert environment.require_threading_layer() is None


@pytest.mark.parametrize(
    ("name", "value"), [("NUMBA_THREADING_LAYER", "junk"), ("NUMBA_NUM_THREADS", "0")]
)
def test_a_command_ends_with_one_line(tmp_path, name, value):
    (tmp_path / "data").write_text("1 1:1\n-1 1:2\n")
    ended = subprocess.run(
        [sys.executable, "-m", "nesvm_jit", "train", "data"],
        env={**os.environ, name: value},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"nesvm-jit: {name} must be ")
    assert ended.stderr.count("\n") == 1
