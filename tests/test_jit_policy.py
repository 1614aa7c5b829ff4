"""The compile policy piece by piece: flags of every decorator, when a kernel runs on all threads,
the limits of memory, BLAS held and given back."""

import io
import os
import resource
import threading
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from nesvm_jit import InputError, get_threads, jit, set_threads
from nesvm_jit.jit.cache import CodeCache

FAST = {"reassoc", "nsz", "arcp", "contract", "afn"}
needs_two = pytest.mark.skipif(jit.most_threads() < 2, reason="one core")


def body(x):
    return x


# ---------------------------------------------------------------- decorators


@pytest.mark.parametrize(
    ("decorator", "exact", "more"),
    [
        (jit.loop, False, {"parallel": False}),
        (jit.exact_loop, True, {"parallel": False}),
        (jit.helper, False, {}),
        (jit.exact_helper, True, {"_nrt": False}),
        (jit.exact_inline, True, {"_nrt": False, "forceinline": True}),
    ],
)
def test_flags_of_every_decorator(decorator, exact, more):
    options = decorator(body).targetoptions
    assert options["fastmath"] == (False if exact else FAST)
    assert options["nogil"] is True
    assert options["error_model"] == "numpy"
    for name, value in more.items():
        assert options[name] is value
    assert ("_nrt" in options, "forceinline" in options) == ("_nrt" in more, "forceinline" in more)


@pytest.mark.parametrize(("decorator", "exact"), [(jit.kernel, False), (jit.exact_kernel, True)])
def test_kernels_have_a_serial_and_a_parallel_variant(monkeypatch, decorator, exact):
    monkeypatch.setattr(jit.Kernel, "registry", {})
    made = decorator(body)
    for variant, parallel in ((made.serial, False), (made.parallel, True)):
        assert variant.targetoptions["parallel"] is parallel
        assert variant.targetoptions["fastmath"] == (False if exact else FAST)
        assert isinstance(variant._cache, CodeCache)
        assert f"parallel={parallel} exact={exact}" in variant._cache._variant
    assert made.__wrapped__ is body
    assert made.__name__ == "body"
    assert jit.Kernel.registry == {f"{__name__}.body": made}


def test_helpers_are_not_kept_and_nothing_is_when_the_cache_is_off(monkeypatch):
    assert not isinstance(jit.helper(body)._cache, CodeCache)
    assert isinstance(jit.loop(body)._cache, CodeCache)
    monkeypatch.setenv("NESVM_JIT_CACHE", "0")
    assert not isinstance(jit.loop(body)._cache, CodeCache)


def test_nothing_is_kept_while_compilation_is_off(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert not hasattr(jit.loop(body), "_cache")


def test_bodies_chosen_by_type_are_inlined_and_may_be_reordered(monkeypatch):
    seen = []
    monkeypatch.setattr(jit.policy, "_overload", lambda f, **options: seen.append((f, options)))
    jit.overload(body)
    options = {"fastmath": FAST, "error_model": "numpy"}
    assert seen == [(body, {"inline": "always", "jit_options": options})]


# ---------------------------------------------------------------- one thread or all


class Variants:
    """A kernel whose variants say which they are, and on how many threads."""

    def __init__(self):
        self.kernel = jit.Kernel.__new__(jit.Kernel)
        self.kernel.serial = lambda *args: ("serial", args)
        self.kernel.parallel = lambda *args: ("parallel", args)

    def way(self, *args):
        name, seen = self.kernel(*args)
        assert seen == args
        return name


@pytest.fixture
def variants(monkeypatch):
    monkeypatch.setattr(
        jit.threads, "crowd", SimpleNamespace(here=lambda: False, watch=lambda *_: None)
    )
    monkeypatch.setattr(jit.threads, "_threads", 2)
    monkeypatch.setattr(jit.threads, "_openmp_before_fork", False)
    monkeypatch.setattr(numba, "set_num_threads", lambda n: None)
    return Variants()


def test_kernels_run_on_all_threads_from_a_quarter_of_a_megabyte_on(variants):
    enough = np.zeros(2**18, np.uint8)
    assert variants.way(enough) == "parallel"
    assert variants.way(enough[:-1]) == "serial"
    assert variants.way(enough[:-1], 7, (1.0, (enough[:1],))) == "parallel"
    assert variants.way() == "serial"


def test_sizes_are_those_of_all_arrays_also_in_tuples():
    eight = np.zeros(1)
    assert jit.policy._size_of(()) == 0
    assert jit.policy._size_of((eight, 3, "x", None)) == 8
    assert jit.policy._size_of((eight, (eight, (np.zeros((2, 3), np.float32), 1.0)), [eight])) == 40


def test_one_thread_is_enough_for_one_thread(variants, monkeypatch):
    monkeypatch.setattr(jit.threads, "_threads", 1)
    assert variants.way(np.zeros(10**6)) == "serial"


def test_eager_and_serial_workers(variants):
    big = np.zeros(2**18, np.uint8)
    with jit.eager_kernels():
        assert variants.way() == "parallel"
        with jit.serial_kernels():
            assert variants.way(big) == "serial"
            with jit.serial_kernels():
                assert variants.way(big) == "serial"
            assert variants.way(big) == "serial"
        assert variants.way() == "parallel"
    assert variants.way() == "serial"
    assert variants.way(big) == "parallel"


def test_workers_are_what_they_were_after_an_error(variants):
    for context in (jit.eager_kernels, jit.serial_kernels):
        with pytest.raises(KeyError), context():
            raise KeyError
    assert variants.way() == "serial"
    assert variants.way(np.zeros(2**18, np.uint8)) == "parallel"


def test_another_thread_is_not_a_serial_worker(variants):
    found = []
    big = np.zeros(2**18, np.uint8)
    with jit.serial_kernels():
        thread = threading.Thread(target=lambda: found.append(variants.way(big)))
        thread.start()
        thread.join()
    assert found == ["parallel"]


def test_a_child_of_a_process_with_openmp_runs_on_one_thread(variants, monkeypatch):
    monkeypatch.setattr(jit.threads, "_openmp_before_fork", True)
    with jit.eager_kernels():
        assert variants.way() == "serial"


def test_only_one_parallel_kernel_at_a_time(variants):
    def parallel(*_):
        assert jit.threads.in_parallel.locked()
        return variants.kernel()[0], ()

    variants.kernel.parallel = parallel
    with jit.eager_kernels():
        assert variants.way() == "serial"  # the inner of the two
        assert not jit.threads.in_parallel.locked()
        variants.kernel.parallel = lambda: 1 / 0
        with pytest.raises(ZeroDivisionError):
            variants.kernel()
    assert not jit.threads.in_parallel.locked()


@needs_two
def test_numba_has_the_threads_asked_for_while_a_kernel_runs(monkeypatch):
    monkeypatch.setattr(
        jit.threads, "crowd", SimpleNamespace(here=lambda: False, watch=lambda *_: None)
    )
    monkeypatch.setattr(jit.threads, "_threads", 2)
    kernel = Variants().kernel
    kernel.parallel = lambda: numba.get_num_threads()
    before = numba.get_num_threads()
    try:
        for outside in (1, 2):
            numba.set_num_threads(outside)
            with jit.eager_kernels():
                assert kernel() == 2
            assert numba.get_num_threads() == outside
    finally:
        numba.set_num_threads(before)


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


def test_openmp_is_known_by_its_name(monkeypatch):
    def none():
        raise ValueError

    for layer, started in ((lambda: "omp", True), (lambda: "workqueue", False), (none, False)):
        monkeypatch.setattr(numba, "threading_layer", layer)
        assert jit.threads._openmp_started() is started


@pytest.mark.parametrize(
    ("before", "started", "after"),
    [(False, False, False), (False, True, True), (True, False, True), (True, True, True)],
)
def test_a_forked_child_has_free_locks_and_remembers_openmp(monkeypatch, before, started, after):
    for name in ("in_parallel", "_blas_lock"):
        lock = threading.Lock()
        lock.acquire()
        monkeypatch.setattr(jit.threads, name, lock)
    monkeypatch.setattr(jit.threads, "_openmp_before_fork", before)
    monkeypatch.setattr(jit.threads, "_openmp_started", lambda: started)
    jit.threads._after_fork()
    assert not jit.threads.in_parallel.locked()
    assert not jit.threads._blas_lock.locked()
    assert jit.threads._openmp_before_fork is after


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_during_a_kernel_leaves_the_child_free():
    with jit.threads.in_parallel, jit.threads._blas_lock:
        pid = os.fork()
        if pid == 0:
            os._exit(jit.threads.in_parallel.locked() + 2 * jit.threads._blas_lock.locked())
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


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
