"""The compile policy: cache, threads, fork, BLAS. Each process test starts from an empty cache."""

import itertools
import multiprocessing
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nesvm_jit
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nesvm_jit import InputError, jit, kernels
from nesvm_jit.jit import cache as codecache

PROJECT = """
import numpy as np
from nesvm_jit import kernels
from nesvm_jit.kernels.loss import _project_l1 as k
print(kernels.project_l1(np.array([-9.0, 0.25, 9.0]), 0.5).tolist())
print(sum(k.entry.stats.cache_hits.values()), sum(k.entry.stats.cache_misses.values()))
"""
ANSWER = "[-1.0, 0.5, 1.0]"
SWEEP = """
import hashlib, os, sys
import numpy as np
import nesvm_jit
from nesvm_jit import kernels
rng = np.random.default_rng(0)
n = 30_000
X, y, w = rng.standard_normal((n, 20)), rng.choice([-1.0, 1.0], n), rng.standard_normal(20)
def digest():
    s = kernels.sweep(X, y, w)
    return hashlib.sha256(s.u.tobytes() + s.ascent.tobytes() + repr(s.loss).encode()).hexdigest()
"""
FORK = """
def child():
    pid = os.fork()
    if pid == 0:
        os._exit(0 if digest() == before else 3)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
before = digest()
print([child(), child()], digest() == before)
"""
POOL = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    print(len(set(pool.map(lambda _: digest(), range(40)))))
"""


def start(program, cache, package=None, **env):
    env = {**os.environ, "NESVM_JIT_CACHE_DIR": str(cache), **env}
    folder = package or Path(nesvm_jit.__file__).parent.parent
    env["PYTHONPATH"] = str(folder)
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program],
        env=env,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.splitlines()


def run(*args, **env):
    return lines(start(*args, **env))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder with the code of one kernel; tests work on copies."""
    folder = tmp_path_factory.mktemp("filled")
    assert run(PROJECT, folder) == [ANSWER, "0 1"]
    return folder


@pytest.fixture
def cache(filled, tmp_path):
    return Path(shutil.copytree(filled, tmp_path / "cache"))


def test_compiled_once_then_found(cache):
    assert run(PROJECT, cache) == [ANSWER, "1 0"]
    assert run(PROJECT, cache, NESVM_JIT_CACHE="0")[0] == ANSWER


def test_an_edited_helper_in_another_file_is_never_run_from_the_cache(cache, tmp_path):
    source = Path(nesvm_jit.__file__).parent
    package = tmp_path / "site"
    shutil.copytree(source, package / "nesvm_jit", ignore=shutil.ignore_patterns("__pycache__"))
    assert run(PROJECT, cache, package) == [ANSWER, "1 0"]
    chunks_py = package / "nesvm_jit" / "jit" / "chunks.py"
    text = chunks_py.read_text()
    edited = text.replace("return n_rows * k // n_chunks,", "return n_rows * (k + 0) // n_chunks,")
    assert edited != text
    chunks_py.write_text(edited)
    assert run(PROJECT, cache, package) == [ANSWER, "0 1"]


DAMAGES = """
from nesvm_jit.jit import cache as codecache
from nesvm_jit.kernels.loss import _project_l1
kernel = _project_l1.entry
(file,) = codecache.cache_folders()[0].glob("*.nsc")
good, signature = file.read_bytes(), kernel.signatures[0]
bad = [b"", good[:100], good[:-1], good[:50] + b"x" + good[51:], good + b"x", b"junk" * 100]
for content in [good, *bad]:
    file.write_bytes(content)
    print(kernel._cache.load_overload(signature, kernel.targetctx) is not None)
"""


def test_damaged_cache_files_are_compiled_anew(cache):
    assert run(PROJECT + DAMAGES, cache) == [ANSWER, "1 0", "True", *["False"] * 6]
    (file,) = cache.rglob("*.nsc")
    assert file.read_bytes() == b"junk" * 100
    assert run(PROJECT, cache) == [ANSWER, "0 1"]
    assert file.read_bytes()[:32] != b"junk" * 8  # and repaired


def test_many_processes_may_fill_one_cache_at_once(tmp_path):
    processes = [start(PROJECT, tmp_path) for _ in range(4)]
    found = [lines(p) for p in processes]
    assert {answer for answer, _ in found} == {ANSWER}
    assert sorted(counts for _, counts in found) == ["0 1", "1 0", "1 0", "1 0"]  # compiled once
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.rglob("*.lock"))
    assert run(PROJECT, tmp_path) == [ANSWER, "1 0"]


def test_no_folder_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    nowhere = {"HOME": str(tmp_path / "file"), "XDG_CACHE_HOME": str(tmp_path / "file")}
    program = f"import tempfile; tempfile.tempdir = {str(tmp_path / 'file')!r}\n" + PROJECT
    assert run(program, tmp_path / "file", **nowhere) == [ANSWER, "0 1"]


def test_a_read_only_folder_is_read(cache):
    refuse = (
        "import tempfile\ndef refuse(**_): raise PermissionError\ntempfile.TemporaryFile = refuse\n"
    )
    assert run(refuse + PROJECT, cache) == [ANSWER, "1 0"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners")
def test_a_folder_that_others_can_fill_is_not_trusted(tmp_path, monkeypatch):
    (tmp_path / codecache.SOURCE_DIGEST).mkdir()
    (tmp_path / codecache.SOURCE_DIGEST).chmod(0o777)
    monkeypatch.setattr(codecache, "_base_folders", lambda: [tmp_path])
    assert codecache.cache_folders.__wrapped__() == (None, [])


def test_code_of_old_versions_is_dropped(tmp_path):
    old, new = tmp_path / ("a" * 20), tmp_path / ("b" * 20)
    for folder in (old, new):
        folder.mkdir()
        (folder / "x.nsc").touch()
    os.utime(old, (0, 0))
    codecache._prune(tmp_path, new)
    assert [p.name for p in tmp_path.iterdir()] == [new.name]


@pytest.mark.parametrize("layer", ["tbb", "omp", "workqueue"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_children_and_thread_pools(tmp_path_factory, layer):
    cache = tmp_path_factory.getbasetemp() / "sweep-cache"
    env = {"NUMBA_THREADING_LAYER": layer}
    assert run(SWEEP + FORK, cache, **env) == ["[0, 0] True"]
    assert run(SWEEP + POOL, cache, **env) == ["1"]


def test_four_threads_give_the_bits_of_one(tmp_path_factory):
    cache = tmp_path_factory.getbasetemp() / "sweep-cache"
    program = SWEEP + "for n in (1, 2, 3, 4):\n    nesvm_jit.set_threads(n)\n    print(digest())"
    assert len(set(run(program, cache, NUMBA_NUM_THREADS="4"))) == 1


def test_small_data_do_not_wake_other_threads(monkeypatch):
    used = []
    kernel = sys.modules["nesvm_jit.kernels.loss"]._project_l1

    def entry(address, n_threads, *args):
        used.append(n_threads)
        return 0

    monkeypatch.setattr(kernel, "entry", entry)
    kernels.project_l1(np.ones(100))
    kernels.project_l1(np.ones(100_000))
    assert used == [1, nesvm_jit.get_threads()]


def test_a_busy_kernel_does_not_block_other_threads(monkeypatch):
    w = np.linspace(-2, 2, 100_000)
    expect = kernels.project_l1(w)
    monkeypatch.setattr(jit.threads, "_layer", lambda: "omp")
    with jit.threads._in_parallel, ThreadPoolExecutor(1) as pool:
        got = pool.submit(kernels.project_l1, w).result(timeout=60)
    np.testing.assert_array_equal(got, expect)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_multiprocessing_by_fork():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        out = pool.map(kernels.project_l1, [np.ones(5)] * 4)
    assert all((u == 1).all() for u in out)


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, 10**6, None])
def test_wrong_numbers_of_threads(n):
    with pytest.raises(InputError, match="threads must be a whole number from 1 to"):
        nesvm_jit.set_threads(n)


def test_blas_is_held_at_one_thread_and_given_back():
    libraries = jit.threads._blas_libraries()
    before = [lib.get_num_threads() for lib in libraries]
    with jit.one_blas_thread():
        with jit.one_blas_thread():
            assert {lib.get_num_threads() for lib in libraries} <= {1}
        assert {lib.get_num_threads() for lib in libraries} <= {1}
    assert [lib.get_num_threads() for lib in libraries] == before


@given(st.integers(0, 10**10), st.integers(0, 10**12), st.integers(0, 10**10))
def test_chunks_stay_within_their_memory(n, cells, n_sums):
    chunks = jit.chunk_count(n, cells, n_sums)
    assert 1 <= chunks <= jit.chunks.MOST_CHUNKS
    assert chunks * n_sums <= max(jit.chunks.SUM_CELLS, 2 * jit.chunks.SERIAL_CELLS) or chunks == 1


@given(st.integers(0, 10**9), st.integers(1, 32))
def test_chunks_cover_every_row_once(n, chunks):
    bounds = [jit.chunk_bounds(n, chunks, k) for k in range(chunks)]
    assert bounds[0][0] == 0
    assert bounds[-1][1] == n
    assert all(a[1] == b[0] for a, b in itertools.pairwise(bounds))
