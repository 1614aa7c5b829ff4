"""Rows on dask workers: the result of one machine, and what happens when workers die."""

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from nesvm_jit import InputError, NesvmError, convert, write_libsvm
from nesvm_jit.settings import MODELS, SOLVERS
from scipy.sparse import vstack

from tests.commands import command
from tests.data import first_against_rest, sparse_scores

pytest.importorskip("distributed")
from nesvm_jit import distributed
from nesvm_jit.distributed.calls import Call, Ref
from nesvm_jit.distributed.log import Log
from nesvm_jit.distributed.pieces import Text, file_pieces, group

from tests.endings import solve, train

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client():
    with distributed.connected("local", workers=2) as found:
        yield found


def several(n=3000, p=30, classes=2):
    return sparse_scores(n, p, classes)


def binary(**options):
    return first_against_rest(*several(**options))


def text(path, X, y):
    write_libsvm(path, X, y)
    return str(path)


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("solver", [s for s in SOLVERS if s not in ("auto", "coordinate")])
@pytest.mark.parametrize("model", MODELS)
def test_the_result_of_one_process(client, tmp_path, model, solver, bias):
    X, y = binary()
    options = {"model": model, "solver": solver, "bias": bias, "max_iter": 200}
    here = solve(X, y, **options)
    path = text(tmp_path / "data", X, y)
    there = distributed.solve(path, client=client, n_features=30, **options)
    assert there.n_iter == here.n_iter
    assert there.objective == pytest.approx(here.objective, rel=1e-12)
    # an α of the linear program that is balanced to the bit is made smaller until it is feasible
    # beyond doubt, by an allowance that goes with its last bits
    near = (1e-9 if model == "lpsvm" else 1e-11) if bias else 1e-12
    assert there.dual_objective == pytest.approx(here.dual_objective, rel=near)
    np.testing.assert_allclose(there.w, here.w, rtol=1e-9, atol=1e-12 * np.abs(here.w).max())
    np.testing.assert_allclose(there.alpha, here.alpha, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(there.margins, here.margins, rtol=1e-9, atol=1e-9)


def test_files_ranges_matrices_and_arrays_are_the_same_data(client, tmp_path):
    import dask.array

    X, y = binary()
    options = {"client": client, "solver": "newton", "tol": 1e-9}
    whole = distributed.solve(text(tmp_path / "a", X, y), n_features=30, **options)
    halves = [text(tmp_path / f"h{k}", X[k::2], y[k::2]) for k in range(2)]
    convert([str(tmp_path / "a")], str(tmp_path / "matrix"), n_features=30)
    arrays = dask.array.from_array(X.toarray(), chunks=(700, 10)), dask.array.from_array(y)
    in_order, by_halves = np.arange(len(y)), np.r_[0 : len(y) : 2, 1 : len(y) : 2]
    for found, order in (
        (distributed.solve(halves, n_features=30, **options), by_halves),
        (distributed.solve(str(tmp_path / "matrix"), n_features=30, **options), in_order),
        (distributed.solve(*arrays, **options), in_order),
    ):
        assert found.certified
        assert found.objective == pytest.approx(whole.objective, rel=2e-9)
        np.testing.assert_allclose(found.w, whole.w, atol=1e-3 * np.abs(whole.w).max())
        np.testing.assert_allclose(found.margins, whole.margins[order], atol=1e-3)


def test_several_classes(client, tmp_path):
    X, y = several(classes=3)
    path = text(tmp_path / "data", X, y)
    there = distributed.train(path, client=client, solver="newton", class_weight={2.0: 3.0})
    here = train(X, y, solver="newton", class_weight={2.0: 3.0})
    np.testing.assert_array_equal(there.classes, here.classes)
    np.testing.assert_allclose(there.record.weights, here.record.weights, rtol=1e-9, atol=1e-12)
    assert there.record.extra["n_support"] == here.record.extra["n_support"]


@pytest.mark.parametrize("solver", ["newton", "homotopy"])
def test_a_worker_that_is_killed_costs_time_not_the_result(client, tmp_path, solver):
    X, y = binary()
    X, y = vstack([X] * 20, format="csr"), np.tile(y, 20)
    path = text(tmp_path / "data", X, y)
    options = {"client": client, "solver": solver, "n_features": 30, "bias": True, "tol": 1e-7}
    options |= {"max_iter": 60}
    calm = distributed.solve(path, **options)
    victims = client.run(os.getpid)
    seen = []

    def kill(row):
        seen.append(row["round"])
        if row["round"] == 5:
            os.kill(sorted(victims.values())[0], signal.SIGKILL)

    troubled = distributed.solve(path, callback=kill, **options)
    assert 5 in seen
    assert troubled.n_iter == calm.n_iter
    assert np.array_equal(troubled.w, calm.w)
    assert troubled.gap == calm.gap
    assert np.array_equal(troubled.alpha, calm.alpha)


def test_asked_to_stop_it_keeps_what_it_has(client, tmp_path):
    path = text(tmp_path / "data", *several(classes=3))
    asked = []
    m = distributed.train(
        path, client=client, tol=1e-9, callback=lambda row: asked.append(row) or 1
    )
    assert [p["status"] for p in m.problems] == ["interrupted"] * 3
    assert 0.0 < m.gap <= 1.0


def test_classes_are_in_the_order_of_one_machine(client, tmp_path):
    X, y = binary()
    y[0] = -1.0
    path = text(tmp_path / "data", X, y)
    assert distributed.train(path, client=client).classes.tolist() == [1.0, -1.0]


def test_fewer_rows_than_workers(client, tmp_path):
    path = text(tmp_path / "data", np.array([[0.0, 1.0], [1.0, 1e-300]]), [1.0, -1.0])
    assert distributed.solve(path, client=client).certified


def test_a_piece_that_cannot_be_read_is_one_line(client, tmp_path):
    X, y = binary()
    text(tmp_path / "data", X, y)
    lines = (tmp_path / "data").read_text().splitlines()
    lines[2500] = "1 3:x"
    (tmp_path / "data").write_text("\n".join(lines) + "\n")
    with pytest.raises(NesvmError, match=r"data:2501: value must be a decimal number, got '3:x'"):
        distributed.solve(str(tmp_path / "data"), client=client)
    with pytest.raises(NesvmError, match="nothing: cannot be read"):
        distributed.solve(str(tmp_path / "nothing"), client=client)


def test_bad_input_is_one_line(client, tmp_path):
    X, y = several(classes=3)
    path = text(tmp_path / "data", X, y)
    with pytest.raises(InputError, match="labels must be -1 and"):
        distributed.solve(path, client=client)
    with pytest.raises(InputError, match="got label 9"):
        distributed.train(path, client=client, class_weight={9.0: 1.0})
    with pytest.raises(InputError, match="needs all rows in memory"):
        distributed.train(path, client=client, solver="coordinate")
    rows = pytest.importorskip("dask.array").from_array(X.toarray())
    with pytest.raises(InputError, match="y must have length 3000"):
        distributed.solve(rows, y[:9], client=client)


def test_no_scheduler_and_a_lost_one_are_one_line(tmp_path):
    from distributed import LocalCluster

    X, y = binary()
    path = text(tmp_path / "data", X, y)
    outcome = command("train", "--dask", "127.0.0.1:1", path, "-o", tmp_path / "m")
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    assert "no dask scheduler answers there" in outcome.err
    with LocalCluster(1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:

        def lose(row):
            if row["round"] == 3:
                threading.Thread(target=cluster.close, daemon=True).start()
                time.sleep(2.0)

        with pytest.raises(NesvmError, match=r"was lost|no worker"):
            distributed.solve(
                path, client=cluster.scheduler_address, solver="homotopy", tol=0, callback=lose
            )


def test_on_the_command_line(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = several()
    paths = [text(tmp_path / f"file{k}", X[k::2], y[k::2]) for k in range(2)]
    address, security = client.scheduler.address, client.security
    refusal = command("train", "--dask", address, *paths, "-o", "m.model", "--json")
    assert (refusal.code, refusal.out) == (1, "")
    assert refusal.err.startswith(f"nesvm-jit: {address}: no dask scheduler answers there: TLS")
    keys = {
        "distributed.comm.tls.ca-file": security.tls_ca_file,
        "distributed.comm.tls.client.cert": security.tls_client_cert,
        "distributed.comm.tls.client.key": security.tls_client_key,
    }
    with pytest.importorskip("dask").config.set(keys):
        outcome = command("train", "--dask", address, *paths, "-o", "m.model", "--json")
    assert outcome.code == 0, outcome
    assert '"n_samples": 3000' in outcome.out
    assert command("predict", "file0", "m.model", "out").code == 0
    for words, what in (
        (("-t", "rbf"), "linear machines, without --kernel"),
        (("-v", "3"), "do not go together"),
        (("--multiclass", "ovo"), "one class against the rest"),
    ):
        outcome = command("train", "--dask", address, *words, *paths)
        assert outcome.code == 2
        assert what in outcome.err
    assert command("train", *paths, "third").code == 2


# ---------------------------------------------------------------- without a cluster


def test_byte_ranges_make_up_the_file(tmp_path):
    X, y = several(n=100)
    path = text(tmp_path / "data", X, y)
    size = os.path.getsize(path)
    for count in (1, 2, 7, 200):
        cuts = [size * k // count for k in range(count + 1)]
        loaded = [Text(path, a, b).load(30, np.float64) for a, b in pairwise(cuts)]
        np.testing.assert_array_equal(np.concatenate([labels for _, labels in loaded]), y)
        cells = np.concatenate([rows.data for rows, _ in loaded])
        np.testing.assert_array_equal(cells, X.data)


def test_pieces_are_shared_out_evenly(tmp_path):
    X, y = several(n=1000)
    path = text(tmp_path / "data", X, y)
    pieces = file_pieces([path], 4)
    assert len(pieces) == 4
    assert [len(g) for g in group(pieces, 4)] == [1, 1, 1, 1]
    assert [len(g) for g in group(pieces, 2)] == [2, 2]
    assert [len(g) for g in group(pieces[:1], 4)] == [1]


def test_the_log_keeps_what_is_needed_to_repeat():
    log = Log()
    w = np.zeros(3)
    for n in range(200):  # rounds of a gradient method, the best dual point of round 50
        log.add(Call(2 * n, "sweep", (w, 0.0, 1.0)))
        if n == 50:
            log.add(Call(2 * n + 1, "swept", ()))
    assert [c.method for c in log.calls()] == ["sweep", "swept", "sweep"]
    log.add(Call(500, "sweep", (w, 0.0, 1.0), None, (101,)))
    assert [c.number for c in log.calls()] == [500]
    log.add(Call(501, "place", (w, 0.0)))
    log.add(Call(502, "stepped", ()))
    log.add(Call(503, "map", (len, (Ref(502),), ())))
    log.add(Call(504, "centre_on", (Ref(503),), None, (502, 503)))
    log.add(Call(505, "step", (0.0, 1.0)))
    assert [c.number for c in log.calls()] == [500, 501, 502, 503, 504, 505]
    log.add(Call(506, "place", (w, 0.0)))
    assert [c.number for c in log.calls()] == [500, 506]


ATTACK = """
import sys
from distributed import Client
try:
    with Client(sys.argv[1], timeout=3, security=None) as client:
        print(client.run_on_scheduler(lambda: "ran"), list(client.run(lambda: "ran").values()))
except Exception as e:
    print("refused", type(e).__name__)
"""


def test_a_stranger_cannot_run_code_on_local_workers(client):
    """Anybody on this computer can reach the ports; without the keys nobody is heard."""
    schemes = [client.scheduler.address, *client.nthreads()]
    assert {address.split("://")[0] for address in schemes} == {"tls"}
    for address in schemes:
        for scheme in ("tls", "tcp"):
            where = address.replace("tls:", f"{scheme}:")
            ended = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", ATTACK, where],
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert ended.stdout.startswith("refused"), (where, ended)
