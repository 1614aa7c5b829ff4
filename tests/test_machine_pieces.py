"""What machines are made of, piece by piece: records scored by hand, the facts of their
sub-problems, the order of work."""

import pickle
import threading

import numpy as np
import pytest
from nesvm_jit import InputError, __version__, get_threads, set_threads
from nesvm_jit.binary.solution import Solution
from nesvm_jit.errors import FormatError
from nesvm_jit.files.model.record import ModelRecord
from nesvm_jit.jit import one_blas_thread
from nesvm_jit.jit.threads import own_threads
from nesvm_jit.kernels.gram import columns_of, sums_of_columns
from nesvm_jit.kernels.public import as_spec
from nesvm_jit.machine import parallel, scoring
from nesvm_jit.machine.assembled import linear_machine
from nesvm_jit.machine.jobs import make_job
from nesvm_jit.machine.machine import Machine
from nesvm_jit.machine.parallel import run_all, run_chains
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.matrix import shape
from nesvm_jit.matrix.rows import as_scipy
from nesvm_jit.settings import Settings
from scipy.sparse import csr_matrix
from scipy.special import expit

from tests.endings import train

from . import oracle
from .compare import refusal

X = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [-1.0, 0.5, 0.0], [0.25, 0.0, -1.0], [0, 0, 0]])
V = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0], [1.0, 0.0, -1.0]])


@pytest.fixture
def two_threads():
    before = get_threads()
    if before < 2:
        pytest.skip("one core")
    set_threads(2)
    yield
    set_threads(before)


def linear(classes, weights, bias, **facts):
    weights = np.array(weights, dtype=float)
    return Machine(
        ModelRecord(np.array(classes, float), len(weights), bias, weights=weights, **facts)
    )


def with_support(kernel="rbf", coefs=((1.0,), (-2.0,), (0.5,)), bias=(0.25,), **facts):
    classes = facts.pop("classes", [1.0, -1.0])
    record = ModelRecord(
        np.array(classes),
        3,
        np.array(bias),
        kernel=kernel,
        support=csr_matrix(V),
        coefs=np.array(coefs),
        **{"gamma": 0.5, "coef0": 1.0, "degree": 2, **facts},
    )
    return Machine(record)


# ---------------------------------------------------------------- scores of records


def test_linear_scores_are_a_column_per_problem():
    W, b = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 1.0], [0.0, 1.0, 3.0]]), np.array([1.0, -2.0, 0])
    m = linear([5, 3, 4], W, b)
    expected = X @ W + b
    for rows in (X, csr_matrix(X)):
        np.testing.assert_allclose(m.decision_function(rows), expected, rtol=1e-15, atol=1e-15)
        assert m.predict(rows).tolist() == [[5, 3, 4][k] for k in expected.argmax(axis=1)]
    narrow = csr_matrix(X[:, :2])
    np.testing.assert_allclose(m.decision_function(narrow), X[:, :2] @ W[:2] + b, atol=1e-15)
    wide = csr_matrix(np.hstack([X, np.ones((5, 2))]))
    np.testing.assert_allclose(m.decision_function(wide), expected, atol=1e-15)
    assert m.n_features == 3


def test_the_only_score_of_two_classes_is_a_vector():
    m = linear([2, 7], [[1.0], [0.0], [-0.5]], [0.0])
    scores = m.decision_function(X)
    assert scores.tolist() == [0.0, -0.5, -1.0, 0.75, 0.0]
    assert m.predict(X).tolist() == [7, 7, 7, 2, 7]
    assert m.scores(as_matrix(X)).shape == (5, 1)


@pytest.mark.parametrize("width", [2, 4])
def test_dense_rows_must_have_the_machines_columns(width):
    rows = np.ones((2, width))
    for m in (linear([2, 7], np.ones((3, 1)), [0.0]), with_support()):
        assert refusal(m.predict, rows) == f"X must have 3 columns, got {width}"


@pytest.mark.parametrize("cells", [1, 6, 7, 15, 1 << 22])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear"])
def test_kernel_scores_are_sums_over_support_vectors_in_blocks_of_any_size(
    monkeypatch, kernel, cells
):
    sizes = blocks_of(monkeypatch)
    K = {
        "rbf": oracle.gram(X, V, "rbf", 0.5, 0, 0),
        "poly": (0.5 * X @ V.T + 1.0) ** 2,
        "sigmoid": np.tanh(0.5 * X @ V.T + 1.0),
        "linear": X @ V.T,
    }[kernel]
    m = with_support(kernel)
    expected = K @ m.record.coefs + 0.25
    scores = scoring.expansion(m.record, cells)
    np.testing.assert_allclose(scores(as_matrix(X)), expected, rtol=1e-12, atol=1e-14)
    block = max(1, cells // 3)
    assert sizes == [min(block, 5 - k) for k in range(0, 5, block)]
    for rows in (X, csr_matrix(X)):
        np.testing.assert_allclose(scores(as_matrix(rows)), expected, rtol=1e-12, atol=1e-14)
        found = m.decision_function(rows)
        np.testing.assert_allclose(found, expected[:, 0], rtol=1e-12, atol=1e-14)


def blocks_of(monkeypatch):
    """How many rows each kernel matrix has that scores ask for."""
    sizes, real = [], scoring.kernel_between
    note = lambda name, A, columns: sizes.append(shape(A)[0]) or real(name, A, columns)  # noqa: E731
    monkeypatch.setattr(scoring, "kernel_between", note)
    return sizes


def test_one_support_vector_fills_its_blocks(monkeypatch):
    sizes = blocks_of(monkeypatch)
    record = ModelRecord(
        np.array([1.0, -1.0]),
        3,
        np.array([0.25]),
        kernel="rbf",
        gamma=0.5,
        support=csr_matrix(V[:1]),
        coefs=np.array([[2.0]]),
    )
    expected = 2.0 * oracle.gram(X, V[:1], "rbf", 0.5, 0, 0)[:, 0] + 0.25
    scores = scoring.expansion(record, 2)(as_matrix(X))
    np.testing.assert_allclose(scores[:, 0], expected, rtol=1e-12)
    assert sizes == [2, 2, 1]
    assert scoring.BLOCK_CELLS * np.dtype(float).itemsize == 32 * 2**20


def test_features_that_support_vectors_lack_count_in_distances():
    m = with_support()
    wide = np.hstack([X, 2.0 * np.ones((5, 1))])
    K = oracle.gram(wide, np.hstack([V, np.zeros((3, 1))]), "rbf", 0.5, 0, 0)
    np.testing.assert_allclose(
        m.decision_function(csr_matrix(wide)), K @ m.record.coefs[:, 0] + 0.25, rtol=1e-12
    )
    K = oracle.gram(np.hstack([X[:, :2], np.zeros((5, 1))]), V, "rbf", 0.5, 0, 0)
    np.testing.assert_allclose(
        m.decision_function(csr_matrix(X[:, :2])), K @ m.record.coefs[:, 0] + 0.25, rtol=1e-12
    )


@pytest.mark.parametrize("width", [2, 3, 4, 5000])
def test_rows_and_support_vectors_are_moved_by_the_mean_of_these_in_every_column(width):
    """A centre with fewer entries than the rows have columns would be read beyond its end."""
    centred = columns_of("Z", as_matrix(csr_matrix(V)), as_spec("rbf", 0.5, 0.0, 3, 3))
    rows = np.zeros((5, width))
    rows[:, :3] = X[:, :width]
    rows[:, -1] = 7.0
    found, columns = scoring._of_one_width(as_matrix(csr_matrix(rows)), centred)
    found, columns = scoring._without_empty_columns(found, columns)
    assert shape(found)[1] == shape(columns.Z)[1] == min(max(width, 3), 4)
    mean = as_scipy(columns.Z).toarray().mean(axis=0)
    np.testing.assert_allclose(columns.centre, mean, rtol=1e-15)
    assert np.count_nonzero(mean) == 2


def test_support_vectors_are_prepared_once(monkeypatch):
    prepared = []
    for name in ("as_matrix", "as_spec", "columns_of"):
        real = getattr(scoring, name)
        monkeypatch.setattr(
            scoring, name, lambda *a, name=name, real=real: prepared.append(name) or real(*a)
        )
    m = with_support()
    first = m.scores(as_matrix(X))
    assert prepared == ["as_spec", "as_matrix", "columns_of"]
    assert np.array_equal(m.scores(as_matrix(X)), first)
    assert len(prepared) == 3
    again = pickle.loads(pickle.dumps(m))
    assert np.array_equal(again.scores(as_matrix(X)), first)
    assert len(prepared) == 6


def precomputed(coefs=((1.0, 0.5, 0.0), (2.0, 0.0, -1.0))):
    index = np.array([3, 1])
    bias = np.array([0.5, 0.0, -1.0])
    return Machine(
        ModelRecord(
            np.array([1.0, 2.0, 3.0]),
            4,
            bias,
            multiclass="ovo",
            kernel="precomputed",
            support_index=index,
            coefs=np.array(coefs),
        )
    )


def test_precomputed_scores_take_the_columns_of_support_vectors():
    m, K = precomputed(), np.arange(8.0).reshape(2, 4)
    expected = K[:, [3, 1]] @ m.record.coefs + m.record.bias
    np.testing.assert_allclose(m.decision_function(K), expected, rtol=1e-15)
    np.testing.assert_allclose(m.decision_function(csr_matrix(K)), expected, rtol=1e-15)
    for width in (3, 5):
        message = f"X must have a column for each of 4 samples, got {width}"
        assert refusal(m.predict, csr_matrix(np.ones((2, width)))) == message


# ---------------------------------------------------------------- choices and probabilities

SCORES = np.array([[1.0, -2.0, 0.5], [-1.0, 0.0, 2.0], [0.5, 3.0, -1.0], [0.0, 1.0, 0.5]])
A, B = np.array([-1.0, -2.0, -0.5]), np.array([0.1, 0.0, -0.3])


def of_three(how, **facts):
    return linear([7, 8, 9], np.zeros((2, 3)), np.zeros(3), multiclass=how, **facts)


def test_three_classes_have_three_scores_both_ways_and_are_chosen_otherwise():
    assert of_three("ovr").chosen(SCORES).tolist() == [0, 2, 1, 1]
    assert of_three("ovo").chosen(SCORES).tolist() == [0, 1, 0, 1]


def test_one_against_the_rest_probabilities_are_normalised():
    p = expit(-(A * SCORES + B))
    got = of_three("ovr", probability=(A, B)).probabilities(SCORES)
    np.testing.assert_allclose(got, p / p.sum(axis=1, keepdims=True), rtol=1e-13)


def test_probabilities_of_pairs_are_coupled():
    p = expit(-(A * SCORES + B))
    got = of_three("ovo", probability=(A, B)).probabilities(SCORES)
    assert len(got) == len(SCORES) > 0
    for row, (r01, r02, r12) in zip(got, p, strict=True):
        r = np.array([[0, r01, r02], [1 - r01, 0, r12], [1 - r02, 1 - r12, 0]])
        Q = -r * r.T + np.diag((r**2).sum(axis=0))
        bordered = np.block([[Q, np.ones((3, 1))], [np.ones((1, 3)), np.zeros((1, 1))]])
        np.testing.assert_allclose(row, np.linalg.solve(bordered, [0, 0, 0, 1])[:3], rtol=1e-10)


@pytest.mark.parametrize("how", ["ovr", "ovo"])
def test_probabilities_of_two_classes_are_a_sigmoid_and_the_rest(how):
    m = linear([2, 7], np.ones((3, 1)), [0.0], multiclass=how, probability=([-2.0], [0.5]))
    p = expit(2.0 * X.sum(axis=1) - 0.5)
    np.testing.assert_allclose(m.predict_proba(X), np.column_stack([p, 1 - p]), rtol=1e-13)


def test_a_machine_without_probabilities_says_so():
    message = "the model has no probabilities; train it with probability on"
    assert refusal(linear([2, 7], np.ones((3, 1)), [0.0]).predict_proba, X) == message


# ---------------------------------------------------------------- what is known of a machine


@pytest.mark.parametrize(
    ("extra", "count"),
    [({}, 0), ({"n_support": 5}, 5), ({"n_support": 1}, 1), ({"n_support": 0}, 0)]
    + [({"n_support": said}, 0) for said in (-1, True, 2.0, "3", None)],
)
def test_support_vectors_of_a_linear_machine_are_those_it_was_said_to_have(extra, count):
    assert linear([2, 7], np.ones((3, 1)), [0.0], extra=extra).n_support == count


def test_a_machine_of_another_program_has_no_certificate():
    m = with_support()
    assert (m.n_support, m.problems, m.support_rows, m.duals) == (3, [], None, None)
    assert np.isnan(m.gap)
    assert m.solutions is None


def test_a_certificate_that_is_damaged_is_refused():
    m = linear([2, 7], np.ones((3, 1)), [0.0], extra={"problems": [{"gap": 0.5}]})
    with pytest.raises(FormatError, match="the certificate in the model is damaged"):
        m.problems  # noqa: B018


def a_solution(w, alpha, b=0.5, **changes):
    facts = {
        "objective": 2.0,
        "dual_objective": 1.5,
        "gap": 0.25,
        "certified": False,
        "n_iter": 7,
        "status": "iteration_limit",
        "solver": "newton",
        "why": "because",
        "model": "csvm",
        "margins": np.zeros(len(alpha)),
        "history": {"seconds": np.array([0.1, 0.2, 0.25 + 1e-9])},
    }
    return Solution(w=np.array(w), beta=None, b=b, alpha=np.array(alpha), **(facts | changes))


def test_all_facts_of_a_machine_of_solved_problems():
    solutions = [
        a_solution([1.0, 0.0], [0.0, 1.0, 2.0, 0.0]),
        a_solution([2.0, 3.0], [0.5, 0.0, 0.0, 0.0], b=-1.0, gap=0.5),
        a_solution([0.0, -1.0], [0.0, 1.0, 0.0, 0.0], certified=True),
    ]
    settings = Settings(C=3, bias=False, tol=1, solver="newton")
    m = linear_machine(settings, np.array([4.0, 2.0, 9.0]), 2, solutions)
    assert m.record.weights.tolist() == [[1.0, 2.0, 0.0], [0.0, 3.0, -1.0]]
    assert m.record.bias.tolist() == [0.5, -1.0, 0.5]
    assert (m.record.multiclass, m.record.model, m.record.kernel) == ("ovr", "csvm", "linear")
    assert m.record.probability is None
    assert (m.n_support, m.gap) == (3, 0.5)
    problems = m.record.extra.pop("problems")
    assert m.record.extra == {
        "program": f"nesvm-jit {__version__}",
        "C": 3.0,
        "bias": False,
        "tol": 1.0,
        "solver": "newton",
        "n_samples": 4,
        "n_support": 3,
    }
    assert problems[0] == {
        "classes": [4.0],
        "n_samples": 4,
        "objective": 2.0,
        "dual_objective": 1.5,
        "gap": 0.25,
        "certified": False,
        "iterations": 7,
        "status": "iteration_limit",
        "solver": "newton",
        "why": "because",
        "n_support": 2,
        "seconds": 0.25,
    }
    assert [p["classes"] for p in problems] == [[4.0], [2.0], [9.0]]
    assert [p["n_support"] for p in problems] == [2, 1, 1]


def test_the_only_problem_of_two_classes_is_of_both():
    settings = Settings()
    m = linear_machine(settings, np.array([4.0, 2.0]), 2, [a_solution([1.0, 0.0], [0.0, 1.0])])
    assert m.problems[0]["classes"] == [4.0, 2.0]
    assert m.record.weights.shape == (2, 1)


def blobs_of_three(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array([4.0, 2.0, 9.0])[np.arange(n) % 3]
    return rng.standard_normal((n, 3)) + 1.5 * np.eye(3)[np.arange(n) % 3], y


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_facts_of_pairs_are_those_of_their_rows(kernel):
    rows, y = blobs_of_three()
    m = train(rows, y, kernel=kernel, gamma=0.5, C=0.7, multiclass="ovo", keep_solutions=True)
    alphas = np.zeros((30, 3))
    for k, f in enumerate(m.solutions):
        alphas[f.problem.rows, k] = f.solution.alpha
        assert m.problems[k]["n_samples"] == len(f.problem.rows) == 20
        assert m.problems[k]["n_support"] == np.count_nonzero(f.solution.alpha)
        assert m.problems[k]["objective"] == f.solution.objective
        assert m.problems[k]["seconds"] == round(f.seconds, 6)
        assert f.costs.tolist() == [0.7] * 20
    assert [p["classes"] for p in m.problems] == [[4.0, 2.0], [4.0, 9.0], [2.0, 9.0]]
    assert m.record.extra["n_samples"] == 30
    assert m.n_support == (alphas != 0).any(axis=1).sum()
    assert 3 < m.n_support < 30


def test_support_vectors_are_kept_by_class_and_otherwise_in_order():
    rows, y = blobs_of_three()
    m = train(rows, y, kernel="rbf", gamma=0.5, keep_solutions=True)
    beta = np.zeros((30, 3))
    for k, f in enumerate(m.solutions):
        beta[f.problem.rows, k] = f.solution.beta
    used = [r for label in m.classes for r in np.flatnonzero(y == label) if beta[r].any()]
    assert m.support_rows.tolist() == used
    assert m.record.coefs.tolist() == beta[used].tolist()
    assert m.record.sv_class.tolist() == [m.classes.tolist().index(y[r]) for r in used]
    np.testing.assert_array_equal(m.record.support.toarray(), rows[used])
    assert (m.record.gamma, m.record.coef0, m.record.degree) == (0.5, 0.0, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stored_zeros_are_no_part_of_support_vectors(dtype):
    rows, y = blobs_of_three()
    rows[::2, 1] = 0.0
    stored = csr_matrix(rows.astype(dtype))
    stored.data[:3] = 0.0  # stored all the same
    rows = stored.toarray().astype(float)
    for given in (stored, rows.astype(dtype)):
        m = train(given, y, kernel="rbf", gamma=0.5)
        support = m.record.support
        assert support.dtype == np.float64
        np.testing.assert_array_equal(support.toarray(), rows[m.support_rows])
        assert support.nnz == np.count_nonzero(rows[m.support_rows])


def test_a_machine_of_landmarks_keeps_their_rows_by_class():
    rows, y = blobs_of_three()
    asked = {"kernel": "rbf", "gamma": 0.5, "approx": "nystroem", "landmarks": 12, "seed": 3}
    m = train(rows, y, multiclass="ovo", keep_solutions=True, **asked)
    drawn = np.sort(np.random.default_rng(3).choice(30, 12, replace=False))
    used = [r for label in m.classes for r in drawn if y[r] == label]
    assert m.support_rows.tolist() == used
    np.testing.assert_array_equal(m.record.support.toarray(), rows[used])
    assert m.record.extra["approx"] == {"kind": "nystroem", "landmarks": 12}
    assert len(m.solutions) == 3
    assert train(rows, y, **asked).solutions is None
    K = oracle.gram(rows, rows[used], "rbf", 0.5, 0, 0)
    f = K @ m.record.coefs + m.record.bias
    for k, found in enumerate(m.solutions):
        np.testing.assert_allclose(found.solution.margins, f[found.problem.rows, k], atol=1e-8)


def test_sums_of_columns_over_chunks_have_the_same_bits_on_any_threads(two_threads):
    rng = np.random.default_rng(0)
    K, coefs = rng.random((2001, 700)), rng.standard_normal((700, 20))
    with one_blas_thread():
        found = sums_of_columns(K, coefs)
        set_threads(1)
        np.testing.assert_array_equal(sums_of_columns(K, coefs), found)
    np.testing.assert_allclose(found, K @ coefs, rtol=1e-12, atol=1e-10)
    assert sums_of_columns(K[:0], coefs).shape == (0, 20)


# ---------------------------------------------------------------- tasks and threads


def who():
    return threading.current_thread()


def test_tasks_that_are_small_or_alone_run_in_the_callers_thread(two_threads):
    here = who()
    assert run_all([who, who, who], threading.Event(), True) == [here] * 3
    assert run_all([who], threading.Event(), False) == [here]
    assert run_all([], threading.Event(), False) == []
    set_threads(1)
    assert run_all([who, who], threading.Event(), False) == [here] * 2


def test_other_tasks_run_in_as_many_threads_as_there_are(two_threads):
    both = threading.Barrier(2, timeout=20)
    stop = threading.Event()

    def task(k):
        return lambda: (k, both.wait() >= 0, who(), own_threads(), both.wait())

    got = run_all([task(0), task(1)], stop, False)
    assert [g[0] for g in got] == [0, 1]
    assert len({g[2] for g in got} | {who()}) == 3
    assert [g[3] for g in got] == [1, 1]
    assert not stop.is_set()
    assert len(set(run_all([who] * 8, stop, False))) <= 2


@pytest.mark.parametrize(("small", "tiny"), [(True, False), (True, True)])
def test_tiny_tasks_keep_their_loops_on_one_thread(two_threads, small, tiny):
    expected = [1 if tiny else 2] * 2
    assert run_all([own_threads, own_threads], threading.Event(), small, tiny) == expected
    asked: list = []

    def chain():
        asked.append(own_threads())
        yield

    run_chains([chain(), chain()], threading.Event(), small, tiny)
    assert asked == expected
    assert own_threads() == 2


def test_the_worker_that_is_left_has_the_threads_of_all(two_threads):
    met, never = threading.Barrier(2, timeout=20), threading.Event()

    def together():
        return (met.wait(), own_threads(), met.wait())[1]

    def alone():
        before = together()
        for _ in range(2000):
            if own_threads() == 2:
                break
            never.wait(0.01)
        return before, own_threads()

    assert run_all([together, alone], threading.Event(), False) == [1, (1, 2)]


def test_jobs_of_few_cells_are_small_and_those_of_few_rows_are_tiny():
    def job(n, p):
        X = np.zeros((n, p))
        X[0, 0] = 1.0
        return make_job(as_matrix(X), np.arange(n) % 2, Settings())

    sizes = [(400, 10), (500, 10), (447, 447), (448, 448), (2000, 99), (2000, 101)]
    found = [(job(n, p).small, job(n, p).tiny) for n, p in sizes]
    yes, small, no = (True, True), (True, False), (False, False)
    assert found == [yes, small, yes, no, small, no]


def test_a_task_that_fails_stops_the_others(two_threads):
    stop, ended = threading.Event(), []

    def fail():
        raise InputError("this one")

    def until_stopped():
        ended.append(stop.wait(20))

    with pytest.raises(InputError, match="this one"):
        run_all([lambda: 1, fail, until_stopped], stop, False)
    assert ended == [True]


def steps(name, count, log, before=lambda: None):
    """A chain of steps that are written down."""
    for _ in range(count):
        before()
        log.append(name)
        yield


def order_of(monkeypatch, counts, workers):
    """The order of steps where one thread does the work of all."""
    monkeypatch.setattr(parallel, "get_threads", lambda: workers)
    asked = []
    monkeypatch.setattr(
        parallel, "run_all", lambda tasks, stop, small, tiny: asked.append(len(tasks)) or tasks[0]()
    )
    log: list = []
    chains = [steps(name, count, log) for name, count in zip("abcdefgh", counts, strict=False)]
    run_chains(chains, threading.Event(), False)
    return asked, "".join(log)


@pytest.mark.parametrize(
    ("counts", "workers", "asked", "order"),
    [
        ([2, 2, 2], 1, 1, "aabbcc"),
        ([3, 2], 2, 2, "ababa"),
        ([2, 2, 2, 2], 2, 2, "ababcdcd"),
        ([2, 2, 2, 2, 2], 2, 2, "abcabcdede"),
        ([1, 1, 1, 2, 2, 2, 2], 2, 2, "abcdedefgfg"),
        ([2, 2], 5, 2, "abab"),
        ([2, 2, 2, 2, 2], 3, 3, "abcdeabcde"),
        ([1, 1, 1, 1, 2, 2, 2], 3, 3, "abcdefgefg"),
        ([], 2, 1, ""),
    ],
)
def test_chains_take_turns_so_that_no_thread_is_left_over(
    monkeypatch, counts, workers, asked, order
):
    assert order_of(monkeypatch, counts, workers) == ([asked], order)


def test_small_chains_run_one_by_one_in_the_callers_thread(two_threads):
    log, threads = [], []

    def note():
        threads.append(who())

    run_chains([steps("a", 3, log, note), steps("b", 2, log, note)], threading.Event(), True)
    assert "".join(log) == "aaabb"
    assert set(threads) == {threading.main_thread()}


def test_chains_end_where_they_are_stopped():
    log, stop = [], threading.Event()

    def stop_at_the_third():
        if len(log) == 2:
            stop.set()

    chains = [steps(name, 5, log, stop_at_the_third) for name in "ab"]
    run_chains(chains, stop, True)
    assert "".join(log) == "aaa"


def test_a_chain_that_fails_stops_all(two_threads):
    log, stop = [], threading.Event()

    def fail():
        raise InputError("no step")

    with pytest.raises(InputError, match="no step"):
        run_chains([steps("a", 5, log, fail), steps("b", 5, log)], stop, True)
    assert stop.is_set()
    assert log == []


def test_chains_run_side_by_side_and_all_to_their_ends(two_threads):
    log, met = [], threading.Barrier(2, timeout=20)
    chains = [steps("a", 3, log, met.wait), steps("b", 3, log, met.wait), steps("c", 4, log)]
    run_chains(chains[:2], threading.Event(), False)
    assert sorted(log) == ["a"] * 3 + ["b"] * 3
    run_chains([chains[2], steps("d", 1, log), steps("e", 2, log)], threading.Event(), False)
    assert sorted(log[6:]) == ["c"] * 4 + ["d"] + ["e"] * 2
