"""Rows on workers, here in this process: clients, what is known of rows, `solve` and `train`."""

import inspect
import re
import sys
from typing import ClassVar

import numpy as np
import pytest
from nesvm_jit import FormatError, InputError, NesvmError, convert, set_threads
from nesvm_jit.checkpoint.snapshot import read_snapshot
from nesvm_jit.jit import most_threads
from nesvm_jit.matrix.rows import Size
from scipy.sparse import csr_matrix

pytest.importorskip("distributed")
from nesvm_jit import distributed
from nesvm_jit.distributed import connected
from nesvm_jit.distributed.rows import RowsOnWorkers
from nesvm_jit.distributed.worker import forget, serve, summarise
from nesvm_jit.machine import estimate

import distributed as dask
from tests.endings import solve, train, watched
from tests.fake_dask import A, B, Future, fake_client, killed, raising

solve_there, train_there = watched(distributed.solve), watched(distributed.train)


@pytest.fixture
def client():
    with fake_client() as found:
        yield found


X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0], [4.0, 1.0, 0.0], [0.0, 0.0, 5.0], [2.0, 2.0, 1.0]])
X = np.vstack([X, [[1.0, 5.0, 3.0]]])
Y = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])

# ---------------------------------------------------------------- clients


class Opened:
    """Stands for dask's Client or LocalCluster; remembers how it was made, and that it ended."""

    made: ClassVar[list] = []

    def __init__(self, *args, **options):
        self.made.append((type(self).__name__, args, options))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.made.append(f"{type(self).__name__} ended")


class FakeDaskClient(Opened):
    scheduler = None


class FakeLocalCluster(Opened):
    pass


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(dask, "Client", FakeDaskClient)
    monkeypatch.setattr(dask, "LocalCluster", FakeLocalCluster)
    monkeypatch.setattr(Opened, "made", [])
    return Opened.made


def test_a_client_that_is_given_is_left_open(client, made):
    with connected(client) as found:
        assert found is client
    assert made == []


def test_a_scheduler_is_asked_at_its_address(made):
    with connected("tls://there:8786") as found:
        assert type(found) is FakeDaskClient
    assert made == [
        ("FakeDaskClient", ("tls://there:8786",), {"timeout": 5}),
        "FakeDaskClient ended",
    ]


def test_a_scheduler_without_tls_is_warned_of(made):
    with (
        pytest.warns(UserWarning, match=r"^tcp://there:8786: whoever reaches this scheduler can"),
        connected("tcp://there:8786") as found,
    ):
        assert type(found) is FakeDaskClient
    assert made[-1] == "FakeDaskClient ended"


@pytest.mark.parametrize("error", [OSError, ValueError, TimeoutError, TypeError])
def test_an_address_without_a_scheduler_is_one_line(monkeypatch, error):
    monkeypatch.setattr(dask, "Client", raising(error("timed\n out " + "x" * 300)))
    with (
        pytest.raises(
            NesvmError, match=rf"^there:1: no dask scheduler answers there: timed out {'x' * 190}$"
        ),
        connected("there:1"),
    ):
        pass


@pytest.mark.parametrize(
    ("workers", "count", "threads"),
    [
        (None, most_threads(), 1),
        (1, 1, most_threads()),
        (most_threads() + 1, most_threads() + 1, 1),
    ],
)
def test_local_workers_share_the_cores(made, workers, count, threads):
    set_threads(most_threads())
    with connected("local", workers) as found:
        assert type(found) is FakeDaskClient
    (_, none, options), (_, (cluster,), more), *ended = made
    assert none == ()
    assert options.pop("security").require_encryption is True
    assert options == {
        "n_workers": count,
        "threads_per_worker": threads,
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": 50,
    }
    assert type(cluster) is FakeLocalCluster
    assert more == {}
    assert ended == ["FakeDaskClient ended", "FakeLocalCluster ended"]


def test_dask_must_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    message = "dask.distributed must be installed: pip install 'nesvm-jit[dask]'"
    with pytest.raises(NesvmError, match=f"^{re.escape(message)}$"), connected("local"):
        pass


def test_local_workers_need_the_maker_of_keys(monkeypatch):
    monkeypatch.setattr(dask.Security, "temporary", raising(ImportError()))
    message = "cryptography must be installed, to keep other users out of the workers: "
    with pytest.raises(NesvmError, match=f"^{message}pip install"), connected("local"):
        pass


# ---------------------------------------------------------------- rows on workers


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name, text):
        (tmp_path / name).write_text(text)
        return name

    return write


def loaded(client, data, y=None, n_features=None, dtype=np.float64):
    rows = RowsOnWorkers(client, data, y, n_features, dtype)
    rows.close()
    return rows


def test_what_is_known_of_rows_on_workers(client, files):
    rows = loaded(client, files("data", "3 1:1 2:1\n1 3:1\n3\n-1 1:1 2:1\n"))
    assert rows.data.size == Size(4, 3, 5, 15)
    assert rows.data.dtype == np.float64
    assert list(rows.labels.items()) == [(3.0, 2), (1.0, 1), (-1.0, 1)]
    assert client.places(summarise) == [(0, A), (1, B)]
    names = [name for name, _ in rows.sources]
    assert len(set(names)) == 2
    assert [(f, name) for f, name, _ in client.told] == [(forget, name) for name in names]
    assert [len(source.pieces) for _, source in rows.sources] == [1, 1]


def test_rows_of_several_files_have_the_width_of_the_widest_or_that_wanted(client, files):
    paths = [files("a", "1 4:1\n"), files("b", "1 2:1\n")]
    assert loaded(client, paths).data.size == Size(2, 4, 2, 12)
    assert loaded(client, tuple(paths[:1]), dtype=np.float32).data.size == Size(1, 4, 1, 8)
    rows = loaded(client, iter(paths), n_features=9)
    assert rows.data.size == Size(2, 9, 2, 12)
    assert [source[1:] for _, source in rows.sources] == [(9, np.float64)] * 2
    with pytest.raises(FormatError, match=r"a:1: index must be at most 1, got 4$"):
        loaded(client, paths, n_features=1)


def test_every_row_of_a_label_counts(client, files):
    rows = loaded(client, files("data", "1 1:1\n" * 5 + "2 1:1\n" * 2))
    assert rows.labels == {1.0: 5, 2.0: 2}


def test_rows_on_disk_have_the_width_wanted(client, files):
    convert([files("data", "1 2:1\n-1 1:1\n")], "matrix")
    assert loaded(client, "matrix").data.size.cols == 2
    assert loaded(client, "matrix", n_features=5).data.size.cols == 5
    assert solve_there("matrix", client=client, n_features=5).w.shape == (5,)


def test_groups_without_rows_are_left_out(client, files):
    rows = loaded(client, files("data", "1 " + " ".join(f"{k}:1" for k in range(1, 50)) + "\n"))
    assert client.places(summarise) == [(0, A), (1, B)]
    assert [name[-7:] for name, _ in rows.sources] == ["-rows-0"]
    assert rows.data.size == Size(1, 49, 49, 588)


def test_there_must_be_files_and_rows(client, files):
    da = pytest.importorskip("dask.array")
    with pytest.raises(InputError, match=r"^at least one file is required$"):
        RowsOnWorkers(client, [], None, None, np.float64)
    for data, y in ((files("spaces", "\n\n\n"), None), (da.zeros((0, 2)), [])):
        with pytest.raises(InputError, match=r"^the data must have rows, they have none$"):
            RowsOnWorkers(client, data, y, None, np.float64)


def test_rows_of_a_worker_that_was_killed_are_read_again(client, files):
    left = [1]

    def instead(function, name, worker):
        if left and worker == B:
            left.pop()
            del client.threads[B]
            return Future(killed())
        return None

    client.instead = instead
    rows = loaded(client, files("data", "1 1:1\n1 1:1\n-1 2:1\n1 2:1\n"))
    assert rows.data.size.rows == 4
    assert client.places(summarise) == [(0, A), (1, B), (0, A), (1, A)]


def test_checksums_are_of_all_shards_of_the_size_and_of_the_costs(client, files):
    rows = RowsOnWorkers(
        client, [files("a", "1 1:1\n"), files("b", "-1 2:2\n")], None, None, np.float64
    )
    found, size, costs = rows.checksums({1.0: 2.0, -1.0: 3.0})
    assert len(found) == 2
    assert found[0] != found[1]
    assert size == [2, 2, 2, 12]
    assert costs == [[1.0, 2.0], [-1.0, 3.0]]
    rows.close()


def test_more_features_than_there_is_memory_for_are_refused(client, files, monkeypatch):
    monkeypatch.setattr("nesvm_jit.binary.linear.memory_bytes", lambda: 1000.0)
    monkeypatch.setattr("nesvm_jit.binary.linear.ALWAYS_THERE", 0.0)
    with pytest.raises(InputError, match=r"^X must be narrower: 100 features need 0 GB of memory$"):
        solve_there(files("data", "1 1:1\n-1 1:2\n"), client=client, n_features=100)


def test_more_classes_than_there_is_memory_for_are_refused(client, files, monkeypatch):
    monkeypatch.setattr(estimate, "ALWAYS_THERE", 0.0)
    monkeypatch.setattr(estimate, "memory_bytes", lambda: 3.0 * estimate.PROBLEM_BYTES)
    text = "1 1:1\n2 1:2\n3 2:1\n"
    with pytest.raises(InputError, match=r"^y must have fewer classes: 3 of them are 3 sub"):
        train_there(files("data", text), client=client)


# ---------------------------------------------------------------- solve and train


def lines(labels=Y):
    return "".join(
        f"{label:g} " + " ".join(f"{j + 1}:{v:g}" for j, v in enumerate(x)) + "\n"
        for label, x in zip(labels, X, strict=True)
    )


@pytest.mark.parametrize(
    ("ours", "theirs"), [(distributed.solve, solve), (distributed.train, train)]
)
def test_defaults_are_those_of_one_machine(ours, theirs):
    here, there = (inspect.signature(f).parameters for f in (theirs, ours))
    for name in ("model", "C", "bias", "solver", "tol"):
        if name in here:
            assert there[name].default == here[name].default
    values = [there[name].default for name in ("model", "C", "bias", "solver", "tol", "client")]
    assert values == ["csvm", 1.0, True, "auto", 1e-3, "local"]
    assert there["dtype"].default is np.float64


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("solver", ["nesvm", "newton"])
def test_the_solution_is_that_of_one_machine(client, files, solver, bias):
    options = {"model": "csvm", "C": 0.25, "bias": bias, "solver": solver, "tol": 1e-6}
    options["class_weight"] = {1.0: 3.0}
    here = solve(csr_matrix(X), Y, **options)
    there = solve_there(files("data", lines()), client=client, **options)
    assert there.n_iter == here.n_iter
    assert there.status == here.status
    np.testing.assert_allclose(there.w, here.w, rtol=1e-9, atol=1e-12)
    assert there.b == pytest.approx(here.b, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(there.alpha, here.alpha, rtol=1e-7, atol=1e-9)
    released = [name for function, name, _ in client.told if function is forget]
    opened = [name for function, name, *_ in client.asked if function in (serve, summarise)]
    assert sorted(released) == sorted(opened)


@pytest.mark.parametrize("count", [2, 3])
def test_a_machine_of_several_classes_is_that_of_one_machine(client, files, count):
    labels = np.array([5.0, 7.0, 5.0, 7.0, 5.0, 7.0]) if count == 2 else [5, 7, 9, 5, 7, 9]
    options = {"model": "csvm", "C": 2.0, "bias": True, "solver": "newton", "tol": 1e-6}
    options["class_weight"] = {7.0: 3.0}
    here = train(csr_matrix(X), labels, multiclass="ovr", **options)
    there = train_there(files("data", lines(labels)), client=client, **options)
    assert there.classes.tolist() == here.classes.tolist()
    np.testing.assert_allclose(there.record.weights, here.record.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.record.bias, here.record.bias, rtol=1e-9, atol=1e-12)
    assert [p["status"] for p in there.problems] == [p["status"] for p in here.problems]
    assert len(there.problems) == (1 if count == 2 else 3)


def test_balanced_weights_are_those_of_one_machine(client, files):
    labels = [5, 5, 5, 5, 7, 7]
    options = {"class_weight": "balanced", "solver": "newton", "C": 0.125}
    here = train(csr_matrix(X), labels, **options)
    there = train_there(files("data", lines(labels)), client=client, **options)
    np.testing.assert_allclose(there.record.weights, here.record.weights, rtol=1e-2)


def test_arrays_are_trained_where_they_are(client):
    da = pytest.importorskip("dask.array")
    there = solve_there(da.from_array(X, chunks=(2, 2)), Y, client=client, tol=1e-6)
    here = solve(X, Y, tol=1e-6)
    np.testing.assert_allclose(there.w, here.w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ([1, 1, 1, 1, 1, 1], "1"),
        ([1, 2, 1, 2, 1, 2], "1, 2"),
        ([2, -1, 2, 2, 2, 2], "2, -1"),
        ([-2, 1, 1, 1, 1, 1], "-2, 1"),
        ([1, -1, 3, -1, 1, -1], "1, -1, 3"),
        ([1, 2, 3, 4, 5, 5], "1, 2, 3, 4, 5"),
        ([1, 2, 3, 4, 5, 6.5], "1, 2, 3, 4, 5 …"),
    ],
)
def test_labels_of_solve_must_be_minus_and_plus_one(client, files, labels, shown):
    with pytest.raises(InputError, match=rf"^labels must be -1 and \+1, got {shown}$"):
        solve_there(files("data", lines(labels)), client=client)


def test_a_machine_is_of_at_least_two_classes(client, files):
    with pytest.raises(InputError, match=r"^labels must be of at least 2 classes, got 7$"):
        train_there(files("data", lines([7] * 6)), client=client)


@pytest.mark.parametrize("solver", ["nesvm", "newton"])
def test_a_run_that_was_ended_goes_on_where_it_was(client, files, tmp_path, solver):
    path = files("data", lines())
    options = {"client": client, "solver": solver, "tol": 1e-9, "C": 10.0, "max_iter": 12}
    rounds = []

    def fit(**more):
        return solve_there(path, callback=lambda row: rounds.append(row["round"]), **more)

    whole = fit(**options)
    assert whole.n_iter > 4
    keeping = {"checkpoint": str(tmp_path / "kept"), "checkpoint_every": 1e-9}
    fit(**options | {"max_iter": 3}, **keeping)
    assert list(read_snapshot(keeping["checkpoint"])["slots"]) == ["0"]
    del rounds[:]
    resumed = fit(**options, **keeping, resume=True)
    assert min(rounds) == 4  # where the limit ended it
    assert resumed.n_iter == whole.n_iter
    assert resumed.w.tolist() == whole.w.tolist()
    with pytest.raises(InputError, match="of other data"):
        fit(**options | {"class_weight": {1.0: 3.0}}, **keeping, resume=True)


def test_classes_that_were_solved_are_not_solved_again(client, files, tmp_path):
    path, told = files("data", lines([5, 7, 9, 5, 7, 9])), []
    options = {"client": client, "solver": "newton", "checkpoint": str(tmp_path / "kept")}

    def stop(row):
        told.append((row["problem"], row["problems"]))
        return row["problem"] == 1

    ended = train_there(path, callback=stop, **options)
    assert sorted(set(told)) == [(0, 3), (1, 3), (2, 3)]
    assert ended.problems[0]["status"] == "converged"
    del told[:]
    train_there(path, callback=lambda row: told.append(row["problem"]), resume=True, **options)
    assert set(told) == {1, 2}
