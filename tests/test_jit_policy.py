"""The compile policy piece by piece: flags of every decorator, when a kernel runs on all threads,
the limits of memory, BLAS held and given back."""

import ctypes
import io
import os
import resource
import threading
from importlib import metadata

import numba
import numpy as np
import pytest
from nesvm_jit import InputError, get_threads, jit, set_threads
from nesvm_jit.jit import launch
from nesvm_jit.jit.cache import CodeCache
from threadpoolctl import threadpool_info, threadpool_limits

FAST = {"reassoc", "nsz", "arcp", "contract", "afn"}


def body(x):
    return x


# ---------------------------------------------------------------- decorators


@pytest.mark.parametrize(
    ("decorator", "exact", "more"),
    [
        (jit.loop, False, {"_nrt": True}),
        (jit.exact_loop, True, {"_nrt": True}),
        (jit.helper, False, {"_nrt": True}),
        (jit.exact_helper, True, {"_nrt": False}),
        (jit.exact_inline, True, {"_nrt": False, "forceinline": True}),
    ],
)
def test_flags_of_every_decorator(monkeypatch, decorator, exact, more):
    untold = []
    monkeypatch.setattr(jit.policy, "_untold", untold)
    made = decorator(body)
    if isinstance(made, jit.Loop):
        options = made.dispatcher.targetoptions
        assert untold == []  # by now numba knows that kernels may call it
    else:
        assert made is body
        ((told, chooser, options),) = untold
        assert told is body
        assert chooser("any", "types") is body
    assert options["fastmath"] == (False if exact else FAST)
    assert options["nogil"] is True
    assert options["error_model"] == "numpy"
    for name, value in more.items():
        assert options[name] is value
    assert ("forceinline" in options) == ("forceinline" in more)


def body_of_chunk(k, n, x):
    x[k] = n


@pytest.mark.parametrize(("decorator", "exact"), [(jit.kernel, False), (jit.exact_kernel, True)])
def test_kernels_have_an_entry_that_is_kept(monkeypatch, decorator, exact):
    monkeypatch.setattr(jit.Kernel, "registry", {})
    made = decorator(body_of_chunk)
    assert made.entry.targetoptions["fastmath"] == (False if exact else FAST)
    assert "parallel" not in made.entry.targetoptions
    assert isinstance(made.entry._cache, CodeCache)
    assert made.entry._cache._name == f"{__name__}.body_of_chunk"
    assert f"exact={exact} " in made.entry._cache._variant
    assert made.__wrapped__ is body_of_chunk
    assert made.__name__ == "body_of_chunk"
    assert jit.Kernel.registry == {f"{__name__}.body_of_chunk": made}


def test_loops_are_kept_and_nothing_is_when_the_cache_is_off(monkeypatch):
    assert isinstance(jit.loop(body).dispatcher._cache, CodeCache)
    monkeypatch.setenv("NESVM_JIT_CACHE", "0")
    assert not isinstance(jit.loop(body).dispatcher._cache, CodeCache)


def test_nothing_is_kept_while_compilation_is_off(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert not hasattr(jit.loop(body).dispatcher, "_cache")


def test_bodies_chosen_by_type_are_inlined_in_the_arithmetic_of_their_callers(monkeypatch):
    untold = []
    monkeypatch.setattr(jit.policy, "_untold", untold)

    def dense(X, y):
        return "dense", y

    def compressed(X, y):
        return "compressed", y

    @jit.by_layout(dense, compressed)
    def either(X, y):
        """Of two bodies."""

    assert either(np.zeros(2), 3) == ("dense", 3)
    assert either(("Csr",), 4) == ("compressed", 4)
    assert either.__doc__ == "Of two bodies."
    assert jit.inline(body) is body
    jit.overload(body)(dense)
    jit.overload(body, allocates=True)(compressed)
    chosen, inlined, overloaded, allocating = untold
    assert allocating == (body, compressed, {"_nrt": True, "error_model": "numpy"})
    assert chosen[0] is either
    assert chosen[1](numba.float64[:, ::1], numba.int64) is dense
    assert chosen[1](numba.types.Tuple([]), numba.int64) is compressed
    assert (inlined[0], overloaded[:2]) == (body, (body, dense))
    for *_, options in untold[:3]:
        assert options == {"_nrt": False, "forceinline": True, "error_model": "numpy"}


def test_loops_serve_kernels_as_they_serve_python(monkeypatch):
    monkeypatch.setenv("NESVM_JIT_CACHE", "0")
    monkeypatch.setattr(jit.Kernel, "registry", {})

    @jit.exact_loop
    def double(x):
        return 2.0 * x

    @jit.helper
    def square(x):
        return x * x

    @jit.kernel
    def both(k, n, out):
        out[k] = double(square(out[k]))

    out = np.arange(4.0)
    both(4, out)
    assert out.tolist() == [0.0, 2.0, 8.0, 18.0]
    assert double(1.5) == 3.0
    assert square(1.5) == 2.25


def test_what_is_linked_keeps_the_arithmetic_of_its_caller(monkeypatch):
    """A sum that may not be reordered, by an inlined function of an exact loop."""
    monkeypatch.setenv("NESVM_JIT_CACHE", "0")

    @jit.inline
    def total(v):
        s = 0.0
        for k in range(len(v)):
            s += v[k]
        return s

    def outer(v):
        return total(v)

    v = np.tile([1e16, 1.0, -1e16, 1.0], 64)
    plain = outer(v)
    assert jit.exact_loop(outer).dispatcher(v) == plain == 1.0
    llvm = {}
    for name, made in (("exact", jit.exact_loop(outer)), ("fast", jit.loop(outer))):
        made.dispatcher(v)
        (code,) = made.dispatcher.inspect_llvm().values()
        llvm[name] = "fadd reassoc" in code
    assert llvm == {"exact": False, "fast": True}


# ---------------------------------------------------------------- one thread or all


def count_of(n):
    """On how many threads a kernel of n chunks runs, and the address it is given for that."""
    address, n_threads, chunks, *args = jit.threads.run(lambda *given: given, n, ("x", 2.0))
    assert chunks == n
    assert args == ["x", 2.0]
    return n_threads, address


@pytest.fixture(params=["tbb", "omp", "workqueue"])
def layer(monkeypatch, request):
    monkeypatch.setattr(launch, "threads_address", lambda: 77)
    monkeypatch.setattr(jit.threads, "_layer", lambda: request.param)
    monkeypatch.setattr(jit.threads, "_threads", 3)
    monkeypatch.setattr(jit.threads, "_safe_after_fork", True)
    return request.param


def test_no_more_threads_than_chunks_or_than_asked_for(layer):
    assert [count_of(n) for n in (0, 1, 2, 3, 9)] == [(1, 0), (1, 0), (2, 77), (3, 77), (3, 77)]


class File:
    def __init__(self, folder, name):
        self.name, self.path = name, f"{folder}/{name}"

    def locate(self):
        return self.path


@pytest.fixture
def loaded(monkeypatch):
    """The libraries that are loaded, and how."""
    files = [File("bin", "libtbb.so.2"), File("lib", "libtbb.so.12"), File("bin", "tbb12.dll")]
    monkeypatch.setattr("importlib.metadata.files", lambda name: {"tbb": files}[name])
    found = []
    monkeypatch.setattr(jit.launch.ctypes, "CDLL", lambda path, mode: found.append((path, mode)))
    return found


@pytest.mark.parametrize(
    ("platform", "path"), [("linux", "lib/libtbb.so.12"), ("win32", "bin/tbb12.dll")]
)
@pytest.mark.parametrize("wanted", ["default", "safe", "threadsafe", "forksafe", "tbb"])
def test_the_library_of_tbb_is_loaded_for_all_to_see(monkeypatch, loaded, wanted, platform, path):
    monkeypatch.setattr(numba.config, "THREADING_LAYER", wanted)
    monkeypatch.setattr(jit.launch.sys, "platform", platform)
    jit.launch._load_tbb()
    assert loaded == [(path, ctypes.RTLD_GLOBAL)]


@pytest.mark.parametrize("wanted", ["omp", "workqueue"])
def test_other_threads_need_no_library(monkeypatch, loaded, wanted):
    monkeypatch.setattr(numba.config, "THREADING_LAYER", wanted)
    jit.launch._load_tbb()
    assert loaded == []


def test_a_library_that_is_missing_or_broken_is_no_error(monkeypatch, loaded):
    def broken(path, mode):
        loaded.append(path)
        raise OSError("no such library")

    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(numba.config, "THREADING_LAYER", "default")
    monkeypatch.setattr(jit.launch.ctypes, "CDLL", broken)
    jit.launch._load_tbb()
    assert len(loaded) == 1
    for files in (absent, lambda name: None):
        monkeypatch.setattr("importlib.metadata.files", files)
        jit.launch._load_tbb()
    assert len(loaded) == 1


def test_every_thread_runs_the_worker_once(monkeypatch):
    run = []
    monkeypatch.setattr(jit.launch, "_call", lambda worker, work: run.append((worker, work)))
    jit.launch._run_side_by_side(40, 50, 3)  # uncompiled, prange is range
    assert run == [(40, 50)] * 3


def test_one_thread_is_enough_for_one_thread(layer, monkeypatch):
    monkeypatch.setattr(jit.threads, "_threads", 1)
    assert count_of(9) == (1, 0)


def test_serial_workers(layer):
    with jit.serial_kernels():
        assert count_of(9) == (1, 0)
        with jit.serial_kernels():
            assert count_of(9) == (1, 0)
        assert count_of(9) == (1, 0)
    assert count_of(9) == (3, 77)


def test_workers_are_what_they_were_after_an_error(layer):
    with pytest.raises(KeyError), jit.serial_kernels():
        raise KeyError
    assert count_of(9) == (3, 77)


def test_another_thread_is_not_a_serial_worker(layer):
    found = []
    with jit.serial_kernels():
        thread = threading.Thread(target=lambda: found.append(count_of(9)))
        thread.start()
        thread.join()
    assert found == [(3, 77)]


def test_a_child_whose_threads_were_lost_runs_on_one(layer, monkeypatch):
    monkeypatch.setattr(jit.threads, "_safe_after_fork", False)
    assert count_of(9) == (1, 0)


def test_only_tbb_runs_several_kernels_on_all_threads_at_a_time(layer):
    def entry(*given):
        assert jit.threads._in_parallel.locked() is (layer != "tbb")
        return count_of(9)

    assert jit.threads.run(entry, 9, ()) == ((3, 77) if layer == "tbb" else (1, 0))
    assert not jit.threads._in_parallel.locked()
    with pytest.raises(ZeroDivisionError):
        jit.threads.run(lambda *_: 1 / 0, 9, ())
    assert not jit.threads._in_parallel.locked()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_every_chunk_is_run_once_by_any_number_of_threads(monkeypatch, n_threads):
    monkeypatch.setattr(jit.threads, "_threads", n_threads)
    monkeypatch.setattr(jit.Kernel, "registry", {})

    def count(k, n, x):
        x[k] += n

    made = jit.kernel(count)
    for n in (0, 1, 2, 1000):
        x = np.zeros(1001, np.int64)
        made(n, x)
        np.testing.assert_array_equal(x, np.where(np.arange(1001) < n, n, 0))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_in_a_chunk_is_an_error_of_the_call(monkeypatch, n_threads):
    monkeypatch.setattr(jit.threads, "_threads", n_threads)
    monkeypatch.setattr(jit.Kernel, "registry", {})

    def fail(k, n, x):
        if k == 3:
            raise ValueError
        x[k] = 1

    x = np.zeros(5)
    with pytest.raises(MemoryError, match=r"^a loop of .*fail needs more memory than there is$"):
        jit.kernel(fail)(5, x)
    np.testing.assert_array_equal(x, [1, 1, 1, 0, 1])


# ---------------------------------------------------------------- threads and forks


def test_threads_that_can_be_asked_for():
    before, most = get_threads(), jit.most_threads()
    assert most == numba.config.NUMBA_NUM_THREADS
    try:
        for n in (1, most, np.int64(1)):
            set_threads(n)
            assert get_threads() == n
            assert type(get_threads()) is int
    finally:
        set_threads(before)
    message = (
        rf"^threads must be a whole number from 1 to {most} "
        r"\(NUMBA_NUM_THREADS raises the limit\), got "
    )
    for wrong in (0, most + 1, True, 1.0, "1"):
        with pytest.raises(InputError, match=message + repr(wrong).replace(".", r"\.") + "$"):
            set_threads(wrong)
    assert get_threads() == before


def test_threads_that_run_are_known_by_their_name(monkeypatch):
    def none():
        raise ValueError

    for layer, name in ((lambda: "omp", "omp"), (lambda: "tbb", "tbb"), (none, "")):
        monkeypatch.setattr(numba, "threading_layer", layer)
        assert jit.threads._started_layer() == name


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(
    ("layer", "by_main", "safe"),
    [
        ("", True, True),
        ("", False, True),
        ("omp", True, False),
        ("omp", False, False),
        ("tbb", True, True),
        ("tbb", False, False),
        ("workqueue", False, True),
    ],
)
def test_a_forked_child_has_free_locks_and_knows_its_threads(
    monkeypatch, before, layer, by_main, safe
):
    for name in ("_in_parallel", "_blas_lock"):
        lock = threading.Lock()
        lock.acquire()
        monkeypatch.setattr(jit.threads, name, lock)
    monkeypatch.setattr(jit.threads, "_safe_after_fork", before)
    monkeypatch.setattr(jit.threads, "_forked_by_main", by_main)
    monkeypatch.setattr(jit.threads, "_started_layer", lambda: layer)
    jit.threads._after_fork()
    assert not jit.threads._in_parallel.locked()
    assert not jit.threads._blas_lock.locked()
    assert jit.threads._safe_after_fork is (before and safe)


def test_which_thread_forks_is_known(monkeypatch):
    monkeypatch.setattr(jit.threads, "_forked_by_main", None)
    thread = threading.Thread(target=jit.threads._before_fork)
    thread.start()
    thread.join()
    assert jit.threads._forked_by_main is False
    jit.threads._before_fork()
    assert jit.threads._forked_by_main is True


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_during_a_kernel_leaves_the_child_free():
    with jit.threads._in_parallel, jit.threads._blas_lock:
        pid = os.fork()
        if pid == 0:
            os._exit(jit.threads._in_parallel.locked() + 2 * jit.threads._blas_lock.locked())
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert get_threads() >= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_knows_whether_the_main_thread_forked_it():
    codes = []

    def fork():
        pid = os.fork()
        if pid == 0:
            os._exit(3 + jit.threads._forked_by_main)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    fork()
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    fork()
    assert codes == [4, 3, 4]
    assert get_threads() >= 1


# ---------------------------------------------------------------- good manners


@pytest.mark.parametrize(
    ("texts", "cores"),
    [
        ([], float("inf")),
        (["max 100000\n"], float("inf")),
        (["150000 100000\n", "max 100000\n"], 2),
        (["max 100000\n", "100000 100000\n", "300000 100000\n"], 1),
        (["nonsense\n", "5 0\n", ""], float("inf")),
    ],
)
def test_no_more_threads_than_the_group_has_time_for(monkeypatch, texts, cores):
    monkeypatch.setattr(jit.threads, "group_limits", {"cpu.max": texts}.__getitem__)
    assert jit.threads._core_quota() == cores


@pytest.mark.parametrize(
    ("value", "threads"),
    [
        ("3", 3),
        ("4,2", 4),
        (" 2 ", 2),
        ("", float("inf")),
        ("0", float("inf")),
        ("x", float("inf")),
    ],
)
def test_the_variable_of_openmp_holds_for_us_too(monkeypatch, value, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert jit.threads._openmp_threads() == threads
    monkeypatch.setattr(jit.threads, "most_threads", lambda: 8)
    monkeypatch.setattr(jit.threads, "_core_quota", lambda: 5)
    assert jit.threads._usual_threads() == min(5, threads)
    monkeypatch.setattr(jit.threads, "_core_quota", lambda: 0)
    assert jit.threads._usual_threads() == 1


def test_a_limit_of_threadpoolctl_holds_while_it_is_set(monkeypatch):
    monkeypatch.setattr(jit.threads, "_threads", 4)
    with threadpool_limits(2):
        assert get_threads() == 2
        with threadpool_limits(1, user_api="nesvm_jit"):
            assert get_threads() == 1
        assert get_threads() == 2
    assert get_threads() == 4
    with threadpool_limits(1, user_api="blas"):
        assert get_threads() == 4
    (ours,) = [i for i in threadpool_info() if i["user_api"] == "nesvm_jit"]
    assert ours["num_threads"] is None


# ---------------------------------------------------------------- memory


def test_memory_is_that_of_the_machine_or_what_is_allowed_of_it(monkeypatch):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    monkeypatch.setattr(jit.memory, "_memory_limits", lambda: [float("inf")])
    assert jit.memory_bytes() == 4096000.0
    monkeypatch.setattr(jit.memory, "_memory_limits", lambda: [float("inf"), 1e9, 5e5])
    assert jit.memory_bytes() == 5e5

    def unknown(name):
        raise ValueError

    monkeypatch.setattr(os, "sysconf", unknown)
    monkeypatch.setattr(jit.memory, "_memory_limits", lambda: [float("inf")])
    assert jit.memory_bytes() == 2.0**33


def limits(monkeypatch, files, soft=resource.RLIM_INFINITY):
    def read(path):
        if path not in files:
            raise FileNotFoundError
        return io.StringIO(files[path])

    monkeypatch.setattr(jit.memory, "open", read, raising=False)
    monkeypatch.setattr(resource, "getrlimit", lambda what: (soft, 10**12))
    return jit.memory._memory_limits()


def test_limits_of_the_process_and_of_every_group_around_it(monkeypatch):
    group = "4:cpu:/elsewhere\n0::/a/b\n"
    files = {
        "/proc/self/cgroup": group,
        "/sys/fs/cgroup/a/b/memory.max": "max\n",
        "/sys/fs/cgroup/a/memory.max": "2000\n",
        "/sys/fs/cgroup/memory.max": "3000\n",
        "/sys/fs/memory.max": "1\n",
        "/sys/fs/cgroup/elsewhere/memory.max": "2\n",
    }
    inf = float("inf")
    assert limits(monkeypatch, files) == [inf, 2000.0, 3000.0]
    assert limits(monkeypatch, files, soft=500) == [inf, 500.0, 2000.0, 3000.0]
    assert limits(monkeypatch, {}) == [inf]
    assert limits(monkeypatch, {"/proc/self/cgroup": "4:cpu:/a\n"}, soft=0) == [inf, 0.0]
    del files["/sys/fs/cgroup/a/memory.max"]
    assert limits(monkeypatch, files) == [inf, 3000.0]


# ---------------------------------------------------------------- BLAS


class Library:
    def __init__(self, n):
        self.n, self.calls = n, 0

    def get_num_threads(self):
        return self.n

    def set_num_threads(self, n):
        self.n, self.calls = n, self.calls + 1


def test_blas_has_one_thread_while_anybody_holds_it(monkeypatch):
    libraries = [Library(7), Library(3)]
    monkeypatch.setattr(jit.threads, "_blas_libraries", lambda: libraries)

    def threads():
        return [lib.n for lib in libraries]

    with jit.one_blas_thread():
        assert threads() == [1, 1]
        with jit.one_blas_thread():
            assert threads() == [1, 1]
        with pytest.raises(KeyError), jit.one_blas_thread():
            raise KeyError
        assert threads() == [1, 1]
        assert jit.threads._blas_users == 1
    assert threads() == [7, 3]
    assert jit.threads._blas_users == 0
    assert [lib.calls for lib in libraries] == [2, 2]
    with jit.one_blas_thread():
        assert threads() == [1, 1]
    assert threads() == [7, 3]


def test_the_libraries_held_are_those_of_blas():
    found = jit.threads._blas_libraries()
    assert found
    assert {lib.user_api for lib in found} == {"blas"}
    assert jit.threads._blas_libraries() is found
