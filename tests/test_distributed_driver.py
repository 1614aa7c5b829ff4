"""Rows on workers, the driver's side: where shards live, what is asked of them, and what happens
when they are lost; all workers are in this process."""

import re
import socket
import threading

import numpy as np
import pytest
from nesvm_jit import FormatError, NesvmError, get_threads, set_threads
from nesvm_jit.jit import most_threads
from nesvm_jit.kernels.loss import RowData
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.rows import Size
from nesvm_jit.models import MODELS
from nesvm_jit.problems.blocks import Resident
from nesvm_jit.problems.rows import loss_at
from nesvm_jit.problems.shard import Shard

pytest.importorskip("distributed")
import nesvm_jit.distributed.cluster as cluster_module
from nesvm_jit.distributed.calls import Call, Ref
from nesvm_jit.distributed.cluster import Cluster, LostShardError
from nesvm_jit.distributed.holder import ClassProblem, Holder, Plan
from nesvm_jit.distributed.loading import Source
from nesvm_jit.distributed.pieces import Chunk
from nesvm_jit.distributed.remote import RemoteData, RemoteShard
from nesvm_jit.distributed.server import Endpoint, connect
from nesvm_jit.distributed.worker import checksum, forget, serve, summarise

import distributed as dask
from tests.fake_dask import A, B, C, Future, fake_client, killed, raising


@pytest.fixture
def client():
    with fake_client() as found:
        yield found


# ---------------------------------------------------------------- the workers of a client


class Clock:
    """Time that passes only when someone sleeps."""

    def __init__(self, monkeypatch):
        self.now, self.slept = 0.0, []
        monkeypatch.setattr(cluster_module, "time", self)

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        assert len(self.slept) < 1000, "waits for ever"
        self.slept.append(seconds)
        self.now += seconds


def assigned(client, *names):
    cluster = Cluster(client)
    for name in names:
        cluster.assign(name)
    return cluster


def worker_of(cluster, name):
    cluster.run(name, len)
    return cluster.client.asked.pop()[3]["workers"][0]


def test_the_threads_of_workers_by_address(client):
    client.threads = {A: 2, B: 5}
    assert Cluster(client).workers() == {A: 2, B: 5}


def test_the_first_worker_is_waited_for(client, monkeypatch):
    clock, answers = Clock(monkeypatch), [{}, {}, {B: 1}]
    client.nthreads = lambda: answers.pop(0)
    assert Cluster(client).workers() == {B: 1}
    assert clock.slept == [0.5, 0.5]


def test_a_minute_without_a_worker_is_an_error(client, monkeypatch):
    clock, asked = Clock(monkeypatch), []
    client.nthreads = lambda: asked.append(1) or {}
    with pytest.raises(NesvmError, match=r"^tcp://there:8786: no worker for 60 s$"):
        Cluster(client).workers()
    assert clock.now == 60.5
    assert len(asked) == 122


def test_a_scheduler_that_does_not_answer_is_one_line(client):
    client.nthreads = raising(OSError("connection\n  was closed " + "x" * 300))
    with pytest.raises(
        NesvmError,
        match=rf"^tcp://there:8786: the scheduler was lost: connection was closed {'x' * 178}$",
    ):
        Cluster(client).workers()
    client.nthreads = raising(OSError())
    client.scheduler = None
    with pytest.raises(NesvmError, match=r"^\?: the scheduler was lost: OSError$"):
        Cluster(client).workers()


@pytest.mark.parametrize(
    ("threads", "expected"),
    [
        ({A: 1, B: 1}, [A, B, A, B]),
        ({A: 1, B: 2}, [A, B, B, A, B, B]),
        ({A: 1, B: 3}, [A, B, B, B, A, B]),
        ({A: 0, B: 1}, [A, B, A, B]),
    ],
)
def test_shards_are_shared_out_by_threads(client, threads, expected):
    client.threads = threads
    names = [f"p{k}" for k in range(len(expected))]
    cluster = assigned(client, *names, *names)
    assert [worker_of(cluster, name) for name in names] == expected


def test_a_shard_moves_when_its_worker_has_gone_and_does_not_move_back(client):
    cluster = assigned(client, "p0", "p1", "p2")
    del client.threads[A]
    cluster.assign("p0")
    assert worker_of(cluster, "p0") == B
    client.threads = {A: 1, B: 1}
    cluster.assign("p0")
    cluster.assign("p2")
    assert [worker_of(cluster, name) for name in ("p0", "p1", "p2")] == [B, B, A]


def test_shards_on_workers_that_have_gone_weigh_nothing(client):
    cluster = assigned(client, "p0", "p1", "p2")
    del client.threads[A]
    client.threads[C] = 1
    for name in ("p3", "p4"):
        cluster.assign(name)
    assert [worker_of(cluster, name) for name in ("p3", "p4")] == [C, B]


def test_a_shard_lives_where_its_rows_are(client):
    cluster = assigned(client, "rows-0", "rows-1")
    cluster.assign_with("shard", "rows-1")
    assert worker_of(cluster, "shard") == B
    cluster.assign("shard")
    assert worker_of(cluster, "shard") == B


def test_a_task_runs_once_on_the_worker_of_its_shard(client):
    cluster = assigned(client, "p0", "p1")
    future = cluster.run("p1", lambda name, a, b: (name, a + b), 2, 3)
    assert future.result() == ("p1", 5)
    ((_, name, args, options),) = client.asked
    assert (name, args) == ("p1", (2, 3))
    assert options == {"workers": [B], "pure": False, "retries": 0}


def test_a_result_is_waited_for_while_its_worker_lives(client):
    cluster = assigned(client, "p0", "p1")
    future = Future(TimeoutError(), TimeoutError(), "found")
    assert cluster.result(future, "p1") == "found"
    assert future.waited == [0.5, 0.5, 0.5]
    del client.threads[B]
    with pytest.raises(LostShardError) as e:
        cluster.result(Future(TimeoutError()), "p1")
    assert e.value.names == ("p1",)
    assert cluster.result(Future(TimeoutError(), None), "p0") is None


@pytest.mark.parametrize("error", [killed(), dask.CancelledError(), OSError("reset")])
def test_a_task_that_was_killed_is_a_lost_shard_or_a_lost_scheduler(client, error):
    cluster = assigned(client, "p0")
    with pytest.raises(LostShardError) as e:
        cluster.result(Future(error), "p0")
    assert e.value.names == ("p0",)
    client.nthreads = raising(OSError("gone"))
    with pytest.raises(NesvmError, match=r"^tcp://there:8786: the scheduler was lost: gone$"):
        cluster.result(Future(error), "p0")
    client.status = "closed"
    what = str(error) or type(error).__name__
    what = " ".join(what.split())[:200]
    message = f"tcp://there:8786: the scheduler was lost: {what}"
    with pytest.raises(NesvmError, match=f"^{re.escape(message)}$"):
        cluster.result(Future(error), "p0")


def test_errors_of_a_task_are_raised(client):
    with pytest.raises(FormatError, match=r"^data:3: broken$"):
        assigned(client, "p0").result(Future(FormatError("data:3: broken")), "p0")


def test_all_shards_whose_worker_has_gone_are_named(client):
    cluster = assigned(client, "p0", "p1", "p2")
    cluster.require_alive(["p0", "p1", "p2"])
    del client.threads[A]
    cluster.require_alive(["p1"])
    with pytest.raises(LostShardError) as e:
        cluster.require_alive(["p0", "p1", "p2"])
    assert e.value.names == e.value.args == ("p0", "p2")


def test_workers_forget_what_is_released_if_they_live(client):
    cluster = assigned(client, "p0", "p1", "p2")
    del client.threads[A]
    cluster.release(["p0", "p1", "unknown"])
    options = {"workers": [B], "on_error": "ignore", "wait": False}
    assert client.told == [(forget, "p1", options)]
    client.run = raising(OSError("gone"))
    cluster.assign("p2")
    cluster.release(["p2"])
    client.nthreads = raising(OSError("gone"))
    cluster.release(["p2"])


def test_nothing_is_asked_of_a_client_that_is_closed(client):
    cluster = assigned(client, "p0")
    client.status = "closed"
    cluster.release(["p0"])
    assert client.told == []
    client.status = "running"
    cluster.release(["p0"])
    assert client.told == []


# ---------------------------------------------------------------- tasks


X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0], [4.0, 1.0, 0.0], [0.0, 0.0, 5.0], [2.0, 2.0, 1.0]])
X = np.vstack([X, [[1.0, 5.0, 3.0]]])
Y = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
PROBLEM = ClassProblem(1.0, {1.0: 2.0, -1.0: 0.5}, MODELS["csvm"](), True)
CUTS = (slice(0, 2), slice(2, 5), slice(5, 6))


def source(at):
    return Source((Chunk(X[at], Y[at], 1.0),), None, np.float64)


@pytest.mark.parametrize("task", ["summarise", "checksum", "serve"])
def test_tasks_use_the_threads_of_their_worker(client, task):
    functions = {
        "summarise": lambda: summarise("rows", source(CUTS[0])),
        "checksum": lambda: checksum("rows", source(CUTS[0])),
        "serve": lambda: serve("p0", Plan(0, "rows", source(CUTS[0]), 3, PROBLEM), [], b"secret"),
    }
    client.here = A
    for asked, expected in ((most_threads(), most_threads()), (1, 1), (99, most_threads()), (0, 1)):
        client.threads[A] = asked
        set_threads(1 if asked == 99 else most_threads())
        functions[task]()
        assert get_threads() == expected
    forget("rows")
    forget("p0")


def is_free(endpoint):
    """Whether a shard listens for a new parent."""
    try:
        with socket.create_connection((endpoint.host, endpoint.port), 10.0) as s:
            return bool(s.recv(1))
    except OSError:
        return False


def test_a_shard_that_is_opened_again_has_answered_the_calls_of_its_log(client):
    client.here = A
    w = np.array([1.0, -1.0, 2.0])
    log = [Call(3, "place", (w, 0.5)), Call(4, "margins_at", (-w, 1.0))]
    endpoint, facts = serve("p7", Plan(7, "rows", source(CUTS[1]), 3, PROBLEM), log, b"secret")
    assert endpoint[:2] == ("p7", "127.0.0.1")
    assert (facts.rows, facts.costs, facts.largest_cost) == (3, 4.5, 2.0)
    with connect(endpoint, b"secret") as parent:
        parent.send(Call(5, "collect", (Ref(4),)))
        assert parent.poll(5.0)
        assert parent.recv().answer[7].tolist() == (1.0 - X[CUTS[1]] @ w).tolist()
        parent.send(Call(6, "state", ()))
        assert parent.poll(5.0)
        assert parent.recv().answer[7]["margins"].tolist() == (X[CUTS[1]] @ w + 0.5).tolist()
    forget("p7")
    forget("rows")


def test_a_shard_listens_at_one_place_and_not_once_it_is_forgotten(client):
    client.here = A
    rest = (Plan(0, "rows", source(CUTS[0]), 3, PROBLEM), [], b"secret")
    first, _ = serve("p0", *rest)
    parent = connect(first, b"secret")
    second, _ = serve("p0", *rest)
    assert second.port != first.port
    parent.close()
    other = connect(second, b"secret")
    assert wait_until(lambda: not is_free(first))
    forget("p0")
    forget("p0")
    other.close()
    assert wait_until(lambda: not is_free(second))
    forget("rows")


def wait_until(true, seconds=5.0):
    for _ in range(int(seconds / 0.02)):
        if true():
            return True
        threading.Event().wait(0.02)
    return False


# ---------------------------------------------------------------- shards on workers


class Shards:
    """Shards of X on the client's workers, and all rows in one."""

    def __init__(self, client, cuts=CUTS, model="csvm", bias=True, rows=X):
        self.client, self.cluster = client, Cluster(client)
        sources = [(f"rows-{k}", source(at)) for k, at in enumerate(cuts)]
        for name, _ in sources:
            self.cluster.assign(name)
        task = PROBLEM._replace(model=MODELS[model](), bias=bias)
        data = RemoteData(Size(len(X), 3, X.size, 24), np.dtype("f8"))
        self.remote = RemoteShard(self.cluster, sources, data, task)
        c = np.where(Y == 1.0, 2.0, 0.5)
        self.local = Shard(Resident(as_matrix(X)), Y, c, MODELS[model](), bias)
        self.names = [name for name, _ in sources]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remote.close()
        self.cluster.release(self.names)

    def same(self, method, *args, **options):
        """Both give the same answer."""
        there = getattr(self.remote, method)(*args, **options)
        here = getattr(self.local, method)(*args, **options)
        equal(there, here)

    def same_vector(self, method, *args):
        there = getattr(self.remote, method)(*args)
        here = getattr(self.local, method)(*args)
        equal(self.remote.collect(there), here)
        return there, here.copy()

    def same_margins(self):
        """Both stand at the same margins."""
        equal(self.remote.state()["margins"], self.local.state()["margins"])


def equal(there, here):
    if isinstance(here, tuple):
        assert len(there) == len(here)
        for a, b in zip(there, here, strict=True):
            equal(a, b)
    elif here is None:
        assert there is None
    else:
        assert np.shape(there) == np.shape(here)
        np.testing.assert_allclose(there, here, rtol=1e-14, atol=1e-14)


W, V = np.array([0.5, -0.25, 0.125]), np.array([-1.0, 0.5, 2.0])


@pytest.mark.parametrize("cuts", [CUTS, CUTS[:1]], ids=["three shards", "one shard"])
def test_facts_are_those_of_all_rows(client, cuts):
    with Shards(client, cuts) as shards:
        rows = slice(0, cuts[-1].stop)
        c = np.where(Y == 1.0, 2.0, 0.5)[rows]
        local = Shard(Resident(as_matrix(X[rows])), Y[rows], c, PROBLEM.model, True)
        equal(shards.remote.facts[:-1], local.facts[:-1])
        longest = max(cut.stop - cut.start for cut in cuts)
        assert longest < shards.remote.facts.depth <= longest + 2 * len(cuts)
        assert shards.remote.n_features == 3
        assert shards.remote.bias is True
        assert shards.remote.model.loss == PROBLEM.model.loss
        assert shards.remote.data.resident is False


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("model", ["csvm", "lssvm"])
def test_every_method_gives_what_all_rows_in_one_shard_give(client, model, bias):
    with Shards(client, model=model, bias=bias) as shards:
        b = 0.5 * bias
        shards.same("sweep", W, b, 0.5)
        alpha, array = shards.same_vector("swept")
        equal(shards.remote.dual_weights(alpha), shards.local.dual_weights(array))
        shards.same("spread", V, b)
        shards.same("place", W, b)
        shards.same_margins()
        shards.same("step", 0.0, 0.5)
        shards.remote.centre_on(alpha)
        shards.local.centre_on(array)
        shards.same("step", 0.0, 0.5)
        shards.same("aim", V, b)
        shards.same("slope", 0.25, 0.5)
        shards.same("step", 0.25, 0.5)
        shards.same_margins()
        shards.same_vector("stepped")
        shards.same_vector("stepped", 0.5)
        shards.same("weight_of_curvature")
        shards.same("hessian", np.float64)
        shards.same("hessian_times", V)
        shards.same("hessian_diagonal")
        there, here = shards.same_vector("margins_at", V, b)
        loss = (loss_at, (there,), (PROBLEM.model.loss,)), (loss_at, (here,), (PROBLEM.model.loss,))
        equal(shards.remote.reduce(*loss[0]), shards.local.reduce(*loss[1]))
        shards.remote.place(W, b, there)
        shards.local.place(W, b, here)
        shards.same("step", 0.0, 0.5)
        shards.same_margins()
        equal(shards.local.state()["margins"], here)


def scaled(rows: RowData, v, t):
    return rows.y * v * t


def largest(rows: RowData, v):
    return float(v.max())


def total(rows: RowData, v, t):
    return float(t * v.sum())


def test_vectors_are_dealt_mapped_reduced_and_collected(client):
    with Shards(client) as shards:
        v = np.arange(6.0)
        there = shards.remote.deal(v)
        assert shards.remote.collect(there).tolist() == v.tolist()
        mapped = shards.remote.map(scaled, (there,), (2.0,))
        assert shards.remote.collect(mapped).tolist() == (2.0 * Y * v).tolist()
        assert shards.remote.reduce(total, (there,), (3.0,)) == 45.0
        assert shards.remote.reduce(largest, (mapped,), by=max) == 6.0


@pytest.mark.parametrize("cuts", [CUTS, (slice(0, 6),)], ids=["three shards", "one shard"])
def test_a_state_goes_from_one_to_several_shards_and_back(client, cuts):
    with Shards(client, cuts) as shards:
        for shard in (shards.remote, shards.local):
            shard.place(W, 0.5)
            shard.step(0.0, 0.5)
        state = {name: a.copy() for name, a in shards.local.state().items()}
        found = shards.remote.state()
        assert list(found) == list(state)
        for name in state:
            equal(found[name], state[name])
        shards.remote.place(V, 0.0)
        shards.remote.restore(state)
        for shard in (shards.remote, shards.local):
            shard.aim(V, 0.25)
        shards.same("step", 0.5, 0.5)
        shards.same_margins()


@pytest.fixture
def calls(monkeypatch):
    """Every call that shard 0 answers."""
    heard, answer = [], Holder.answer

    def listening(self, call):
        if self.number == 0:
            heard.append(call)
        return answer(self, call)

    monkeypatch.setattr(Holder, "answer", listening)
    return heard


def test_workers_are_told_once_which_vectors_nobody_needs(client, calls):
    with Shards(client) as shards:
        v, kept = shards.remote.deal(np.zeros(6)), shards.remote.deal(np.ones(6))
        shards.remote.place(W, 0.0)
        number = v.ref.number
        del v
        for _ in range(2):
            shards.remote.slope(0.0, 1.0)
        assert [call.dropped for call in calls] == [(), (), (), (number,), ()]
        assert [call.number for call in calls] == [0, 1, 2, 3, 4]
        assert shards.remote.collect(kept).tolist() == [1.0] * 6


def test_an_error_of_a_shard_is_raised_and_the_shards_go_on(client):
    with Shards(client) as shards:
        with pytest.raises(ZeroDivisionError):
            shards.remote.reduce(divided, (shards.remote.deal(np.zeros(6)),))
        shards.same("sweep", W, 0.5, 0.5)


def divided(rows, v):
    return 1 / int(v.sum())


def test_workers_forget_shards_that_are_closed(client):
    shards = Shards(client)
    names = [name for function, name, *_ in client.asked if function is serve]
    assert len(names) == len(set(names)) == 3
    kept, client.run = client.run, lambda function, name, **_: client.told.append(name)
    shards.remote.close()
    assert client.told == names
    shards.remote.close()
    client.run = kept
    for name in (*names, *shards.names):
        forget(name)


def test_the_driver_hangs_up_when_shards_are_closed(client):
    endpoints = []
    client.run = lambda *_, **__: None
    kept = client.submit

    def submit(*args, **options):
        future = kept(*args, **options)
        endpoints.append(future.result()[0])
        return future

    client.submit = submit
    shards = Shards(client, CUTS[:1])
    shards.remote.close()
    assert is_free(endpoints[0])
    for name in (endpoints[0].name, *shards.names):
        forget(name)


# ---------------------------------------------------------------- shards that are lost


class Trouble:
    """What happens to shards the next times they are asked."""

    def __init__(self):
        self.client, self.doomed, self.free = None, {}, threading.Event()


TROUBLE = Trouble()


class HangsUp(float):
    """An answer that cannot be sent: the connection is closed, as when the process dies."""

    def joined(self, other):
        return self

    def __reduce__(self):
        raise EOFError


def troubled(rows, v):
    """Σ v of a shard, or what is to happen to it."""
    number = int(threading.current_thread().name.rsplit("-", 1)[1])
    times, gone = TROUBLE.doomed.get(number, (0, ()))
    if not times:
        return float(v.sum())
    TROUBLE.doomed[number] = times - 1, gone
    for address in gone:
        del TROUBLE.client.threads[address]
    return HangsUp()


def stuck(rows, v):
    """Σ v of a shard, which does not answer before the driver has given it up."""
    number = int(threading.current_thread().name.rsplit("-", 1)[1])
    if TROUBLE.doomed.pop(number, None):
        del TROUBLE.client.threads[B]
        assert TROUBLE.free.wait(20.0)
        return HangsUp()
    return float(v.sum())


@pytest.fixture
def trouble(client):
    TROUBLE.client, TROUBLE.doomed = client, {}
    TROUBLE.free.clear()
    client.threads = {A: 1, B: 1, C: 1}
    return TROUBLE


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_shard_that_hangs_up_is_built_again_where_it_was(trouble, client, calls, number):
    with Shards(client) as shards:
        shards.remote.sweep(W, 0.5, 0.5)
        v = shards.remote.swept()
        asked = len(client.asked)
        trouble.doomed = {number: (1, ())}
        expected = shards.remote.reduce(total, (v,), (1.0,))
        assert shards.remote.reduce(troubled, (v,)) == expected
        assert client.places(serve)[asked:] == [(number, (A, B, C)[number])]
        log = client.asked[-1][2][1]
        assert [call.method for call in log] == ["sweep", "swept"]
        shards.local.sweep(W, 0.5, 0.5)
        equal(shards.remote.collect(v), shards.local.swept())
    if number:  # what a shard has answered is not done again
        assert [c.method for c in calls].count("sweep") == 1


def test_vectors_that_nobody_needs_are_not_made_again(trouble, client):
    with Shards(client) as shards:
        v, other = shards.remote.deal(np.ones(6)), shards.remote.deal(np.zeros(6))
        del other
        shards.remote.place(W, 0.0)
        trouble.doomed = {1: (1, ())}
        assert shards.remote.reduce(troubled, (v,)) == 6.0
        assert [call.method for call in client.asked[-1][2][1]] == ["deal", "place"]


def test_a_shard_whose_worker_has_gone_moves_to_another(trouble, client):
    with Shards(client) as shards:
        v = shards.remote.deal(np.arange(6.0))
        trouble.doomed = {2: (1, (C,))}
        assert shards.remote.reduce(troubled, (v,)) == 15.0
        assert client.places(serve) == [(0, A), (1, B), (2, C), (2, A)]


def test_all_shards_on_workers_that_have_gone_move_when_the_first_hangs_up(trouble, client):
    with Shards(client) as shards:
        v = shards.remote.deal(np.arange(6.0))
        trouble.doomed = {0: (1, (A, C))}
        assert shards.remote.reduce(troubled, (v,)) == 15.0
        assert client.places(serve)[3:] == [(0, B), (2, B)]


def test_a_shard_that_does_not_answer_is_given_up_with_its_worker(trouble, client):
    def instead(function, name, worker):
        if function is serve:
            trouble.free.set()

    with Shards(client) as shards:
        v = shards.remote.deal(np.arange(6.0))
        trouble.doomed, client.instead = {1: True}, instead
        assert shards.remote.reduce(stuck, (v,)) == 15.0
        assert client.places(serve)[3:] == [(1, A)]


TWENTY = r"^tcp://there:8786: workers were lost 20 times; they may lack memory$"


def killing(times):
    """Parts that cannot be opened the first times."""
    left = [killed()] * times
    return lambda function, *_: Future(left.pop()) if left and function is serve else None


def test_twenty_losses_are_borne_while_shards_are_opened_and_no_more(client):
    client.instead = killing(20)
    with Shards(client, CUTS[:1]) as shards:
        assert shards.remote.facts.rows == 2
    assert client.places(serve) == [(0, A)] * 21
    del client.asked[:]
    client.instead = killing(21)
    with pytest.raises(NesvmError, match=TWENTY):
        Shards(client, CUTS[:1])
    assert client.places(serve) == [(0, A)] * 21
    forget("rows-0")


@pytest.mark.parametrize("losses", [20, 21])
def test_losses_while_a_shard_is_asked_count_with_those_while_it_is_opened(trouble, client, losses):
    with Shards(client, CUTS[:2]) as shards:
        v = shards.remote.deal(np.arange(5.0))
        trouble.doomed = {1: (2, ())}
        client.instead = killing(losses - 2)
        if losses == 20:
            assert shards.remote.reduce(troubled, (v,)) == 10.0
        else:
            with pytest.raises(NesvmError, match=TWENTY):
                shards.remote.reduce(troubled, (v,))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_shard_that_is_gone_before_it_is_reached_is_opened_again(client, number):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    left = [1]

    def instead(function, name, worker):
        if function is serve and name.endswith(f"-{number}") and left:
            left.pop()
            return Future((Endpoint(name, "127.0.0.1", port), None))
        return None

    client.instead = instead
    with Shards(client) as shards:
        shards.same("sweep", W, 0.5, 0.5)
        equal(shards.remote.facts[:-1], shards.local.facts[:-1])
        assert client.places(serve)[3:] == [(number, (A, B)[number % 2])]
