"""Rows on workers, piece by piece and without a cluster: where rows come from, what a worker keeps
of them, and the log of calls."""

import gzip
import os
from types import SimpleNamespace

import numpy as np
import pytest
from nesvm_jit import FormatError, InputError, convert
from nesvm_jit.checkpoint.fingerprint import data_fingerprint
from nesvm_jit.matrix.checks import as_matrix
from nesvm_jit.matrix.rows import Size
from nesvm_jit.models import MODELS
from nesvm_jit.problems.shard import Shard
from nesvm_jit.problems.sums import Sums
from scipy.sparse import csr_matrix

pytest.importorskip("distributed")
from nesvm_jit.distributed.calls import (
    METHODS,
    Call,
    Memory,
    Method,
    Ref,
    Result,
    add,
    gather,
    scatter,
)
from nesvm_jit.distributed.holder import ClassProblem, Holder, pose
from nesvm_jit.distributed.loading import (
    Source,
    Stacked,
    Summary,
    checksum_rows,
    forget_rows,
    load,
    summarise_rows,
)
from nesvm_jit.distributed.log import Log
from nesvm_jit.distributed.pieces import (
    Chunk,
    OnDiskRows,
    Text,
    array_pieces,
    file_pieces,
    group,
)

# ---------------------------------------------------------------- pieces


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Writes LIBSVM text into a new folder."""
    monkeypatch.chdir(tmp_path)

    def write(name, text):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def matrix_on_disk(files, lines, **options):
    files("lines", lines)
    convert(["lines"], "matrix", **options)
    return os.path.abspath("matrix")


def test_the_weight_of_text_is_its_bytes(files):
    path = files("data", "1 1:1\n-1 1:2\n")
    assert Text(path, 0, None).weight == 13
    assert Text(path, 4, None).weight == 9
    assert Text(path, 3, 10).weight == 7


def test_text_is_read_whole_or_by_the_lines_that_begin_in_a_range(files):
    path = files("data", "1 1:1\n-1 2:2\n1 1:3 2:4\n")
    X, labels = Text(path, 0, None).load(None, np.float32)
    assert X.data.tolist() == [1, 2, 3, 4]
    assert X.data.dtype == np.float32
    assert labels.tolist() == [1, -1, 1]
    X, labels = Text(path, 6, 13).load(5, np.float64)
    assert (X.data.tolist(), X.indices.tolist(), X.n_cols) == ([2.0], [1], 5)
    assert X.data.dtype == np.float64
    assert labels.tolist() == [-1]


def test_packed_text_is_one_piece(tmp_path):
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n-1 2:2\n" * 50))
    (piece,) = file_pieces([str(path)], 4)
    assert piece == Text(str(path), 0, None)
    assert piece.load(None, np.float64)[1].tolist() == [1, -1] * 50


def test_rows_on_disk_are_read_by_range(files):
    path = matrix_on_disk(files, "1 1:1\n2 3:5\n3 2:7\n4 1:9\n")
    X, labels = OnDiskRows(path, 1, 3, 1.0).load(None, np.float64)
    assert (X.data.tolist(), X.indices.tolist(), X.n_cols) == ([5.0, 7.0], [2, 1], 3)
    assert labels.tolist() == [2, 3]


def test_rows_on_disk_may_have_as_many_features_as_wanted_and_no_more(files):
    path = matrix_on_disk(files, "1 1:1\n2 3:5\n")
    piece = OnDiskRows(path, 0, 2, 1.0)
    for wanted in (3, 4):
        assert piece.load(wanted, np.float64)[1].tolist() == [1, 2]
    with pytest.raises(FormatError, match=rf"^{path}: 3 features, at most 2 wanted$"):
        piece.load(2, np.float64)


def test_a_chunk_has_a_label_for_every_row():
    X, y = Chunk([[1, 2, 3], [4, 5, 6]], [1, -1], 2.0).load(None, np.float64)
    assert X.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert y.tolist() == [1, -1]
    with pytest.raises(InputError, match=r"^y must have length 2, got shape \(3,\)$"):
        Chunk([[1, 2, 3], [4, 5, 6]], [1, -1, 1], 2.0).load(None, np.float64)


def test_files_are_cut_into_pieces_of_about_equal_size(files):
    large, small = files("large", "1 1:1\n-1 2\n" * 10), files("small", "1 1:1 2:1\n")
    assert (os.path.getsize(large), os.path.getsize(small)) == (110, 10)
    pieces = [Text(large, 0, 55), Text(large, 55, 110), Text(small, 0, None)]
    assert file_pieces(["large", "small"], 2) == pieces
    assert file_pieces(["large"], 1) == [Text(large, 0, None)]
    assert file_pieces(["large"], 3) == [
        Text(large, 0, 36),
        Text(large, 36, 73),
        Text(large, 73, 110),
    ]


def test_a_piece_has_at_least_a_byte(files):
    path = files("data", "1\n")
    assert file_pieces(["data"], 8) == [Text(path, 0, 1), Text(path, 1, 2)]


def test_matrices_on_disk_are_cut_into_rows_which_weigh_as_much_as_they_hold(files):
    path = matrix_on_disk(files, "1 1:1\n2 3:5\n3 2:7\n")
    (whole,) = file_pieces(["matrix"], 1)
    held = sum(os.path.getsize(f"matrix/{name}") for name in os.listdir("matrix") if ".bin" in name)
    assert whole == OnDiskRows(path, 0, 3, held)
    a, b = file_pieces(["matrix"], 2)
    assert (a[:3], b[:3]) == ((path, 0, 1), (path, 1, 3))
    assert a.weight == pytest.approx(held / 3)
    assert b.weight == pytest.approx(held * 2 / 3)
    assert [piece[1:3] for piece in file_pieces(["matrix"], 9)] == [(0, 1), (1, 2), (2, 3)]


def test_a_file_that_is_not_there_is_named(files):
    with pytest.raises(FormatError, match=r"^nothing: cannot be read: No such file or directory$"):
        file_pieces(["nothing"], 2)


class Here:
    """A dask client that computes at once."""

    def compute(self, block):
        return block.compute()


def pieces_of(X, y):
    return [(p.X.tolist(), p.y.tolist(), p.weight) for p in array_pieces(Here(), X, y)]


def test_arrays_are_cut_where_their_chunks_of_rows_begin():
    da = pytest.importorskip("dask.array")
    X, y = np.arange(12.0).reshape(4, 3), [1.0, -1.0, 1.0, 1.0]
    expected = [(X[:3].tolist(), y[:3], 3.0), (X[3:].tolist(), y[3:], 1.0)]
    rows = da.from_array(X, chunks=((3, 1), (1, 2)))
    assert pieces_of(rows, y) == expected
    assert pieces_of(rows, da.from_array(np.array(y), chunks=2)) == expected


def test_chunks_of_unknown_size_are_counted_and_those_without_rows_left_out():
    da = pytest.importorskip("dask.array")
    X, y = np.arange(10.0).reshape(5, 2), np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    rows = da.from_array(X, chunks=(2, 1))
    some = rows[rows[:, 0] >= 4.0]
    assert np.isnan(some.shape[0])
    expected = [(X[2:4].tolist(), [1.0, 1.0], 2.0), (X[4:].tolist(), [-1.0], 1.0)]
    assert pieces_of(some, y[2:]) == expected


def test_arrays_must_be_of_two_dimensions_with_a_label_for_every_row():
    da = pytest.importorskip("dask.array")
    for X in ([[1.0]], da.ones(3), da.ones((3, 2, 1))):
        with pytest.raises(
            InputError, match=r"^X must be file names or a dask array of 2 dimensions$"
        ):
            array_pieces(Here(), X, [1.0])
    for y, shape in (([1.0, -1.0], r"\(2,\)"), ([[1.0], [1.0], [1.0]], r"\(3, 1\)")):
        with pytest.raises(InputError, match=rf"^y must have length 3, got shape {shape}$"):
            array_pieces(Here(), da.ones((3, 2)), y)


@pytest.mark.parametrize(
    ("weights", "n_shards", "expected"),
    [
        ([1, 1, 1, 1], 2, [[1, 1], [1, 1]]),
        ([3, 1, 2, 2], 2, [[3, 1], [2, 2]]),
        ([3, 3, 1, 1], 2, [[3], [3, 1, 1]]),
        ([10, 1, 1, 1], 2, [[10], [1, 1, 1]]),
        ([1, 1, 10], 3, [[1], [1], [10]]),
        ([1, 1, 1, 1, 12], 3, [[1, 1, 1], [1], [12]]),
        ([5, 5, 5], 1, [[5, 5, 5]]),
        ([5], 4, [[5]]),
        ([2, 7], 4, [[2], [7]]),
        ([1, 1, 0], 2, [[1], [1, 0]]),
        ([0, 0, 0], 2, [[0, 0], [0]]),
    ],
)
def test_a_group_holds_the_pieces_whose_middle_is_in_its_share(weights, n_shards, expected):
    groups = group([Chunk(None, None, w) for w in weights], n_shards)
    assert [[piece.weight for piece in group] for group in groups] == expected


# ---------------------------------------------------------------- the log


def logged(*calls):
    """The numbers of the calls that are kept; a call is its method, or (method, args, dropped)."""
    log = Log()
    for number, call in enumerate(calls):
        method, *rest = call if isinstance(call, tuple) else (call,)
        args, dropped = [*rest, *((), ())[len(rest) :]]
        log.add(Call(number, method, args, None, dropped))
    assert all(call.dropped == () for call in log.calls())
    return [call.number for call in log.calls()]


AT = (np.zeros(2), 0.0)
MOVED, KNOWN = ("place", AT), ("place", (*AT, Ref(0)))
MARGINS = ("margins_at", AT)


@pytest.mark.parametrize(
    ("calls", "kept"),
    [
        (["slope", "hessian", "spread", "state", "collect"], []),
        (["sweep", "sweep"], [1]),
        (["sweep", "swept", "sweep", "sweep"], [0, 1, 3]),
        (["sweep", "swept", ("sweep", (), (1,))], [2]),
        ([MOVED, "aim", "step", "aim", "step"], [0, 1, 2, 3, 4]),
        ([MOVED, "aim", "step", MOVED, "aim"], [3, 4]),
        ([MARGINS, MOVED, "step", KNOWN, "aim"], [0, 3, 4]),
        ([MARGINS, KNOWN, ("step", (), (0,))], [0, 1, 2]),
        ([MARGINS, KNOWN, ("place", AT, (0,))], [2]),
        ([MOVED, "step", ("restore", ({},)), "step"], [2, 3]),
        ([MOVED, "sweep", "step"], [0, 1, 2]),
        ([MOVED, "stepped", MOVED], [0, 1, 2]),
        ([MOVED, MARGINS, MOVED], [1, 2]),
        ([MOVED, "swept", MOVED], [1, 2]),
        (["sweep", "stepped", "sweep"], [1, 2]),
        ([("deal", ({},)), "sweep"], [0, 1]),
        ([("deal", ({},)), ("sweep", (), (0,))], [1]),
    ],
)
def test_calls_that_left_no_trace_are_not_repeated(calls, kept):
    assert logged(*calls) == kept


def test_a_vector_is_kept_as_long_as_another_is_made_of_it():
    made = [("deal", ({},)), ("deal", ({},)), ("map", (len, (Ref(0), (Ref(1),)), ()))]
    assert logged(*made) == [0, 1, 2]
    assert logged(*made, ("sweep", (), (0, 1))) == [0, 1, 2, 3]
    assert logged(*made, ("sweep", (), (0, 2))) == [1, 3]
    assert logged(*made, ("sweep", (), (0, 1, 2))) == [3]
    assert logged(*made, ("centre_on", (Ref(2),)), ("slope", (), (0, 1, 2))) == [0, 1, 2, 3]


class CountedLog(Log):
    shortened = 0

    def calls(self):
        self.shortened += 1
        return super().calls()


def test_the_log_is_shortened_once_in_64_calls():
    log, seen = CountedLog(), []
    for number in range(200):
        log.add(Call(number, "sweep", ()))
        seen.append(log.shortened)
    assert seen == [(number + 1) // 64 for number in range(200)]
    assert [call.number for call in log.calls()] == [199]


# ---------------------------------------------------------------- what a worker keeps


class Echo:
    """A shard whose methods return what they were given."""

    def __init__(self):
        self.heard = []

    def __getattr__(self, method):
        def answer(*args, **options):
            self.heard.append((method, *args, *options.items()))
            return args

        return answer


def holding(vectors):
    holder = Holder(0, Echo())
    holder.vectors.update(vectors)
    return holder


@pytest.mark.parametrize("first", [0, 1])
def test_a_call_is_made_once_however_often_it_is_asked(first):
    holder = Holder(0, Echo())
    for number in (first, first, first + 1, first + 1, first):
        assert holder.answer(Call(number, "sweep", (number,))) == (number,)
    assert holder.shard.heard == [("sweep", n) for n in (first, first + 1, first)]


def test_a_vector_that_is_kept_is_not_sent_until_it_is_asked_for():
    holder = Holder(0, Echo())
    assert holder.answer(Call(0, "map", (5.0,))) is None
    assert holder.answer(Call(0, "map", (5.0,))) is None
    assert holder.vectors == {0: (5.0,)}
    assert holder.answer(Call(1, "dual_weights", (Ref(0),))) == ((5.0,),)
    assert holder.answer(Call(2, "collect", (Ref(0),))) == {0: ((5.0,),)}
    assert holder.shard.heard == [("map", 5.0), ("dual_weights", (5.0,)), ("collect", (5.0,))]


def test_vectors_are_found_inside_tuples_and_other_arguments_are_left_alone():
    holder = holding({3: "a", 4: "b"})
    pair = SimpleNamespace(ref=Ref(3))
    args = (max, (Ref(3), (Ref(4), 2.0)), [Ref(3)], pair, Size(1, 2, 3, 4))
    found = holder.answer(Call(0, "reduce", args))
    assert found == (max, ("a", ("b", 2.0)), [Ref(3)], pair, Size(1, 2, 3, 4))
    assert type(found[-1]) is Size


def test_vectors_that_nobody_needs_are_forgotten():
    holder = holding({3: "a", 4: "b"})
    holder.answer(Call(0, "slope", (Ref(4),), None, (3, 7)))
    assert holder.vectors == {4: "b"}


@pytest.mark.parametrize("number", [0, 1])
def test_a_shard_takes_its_own_piece_and_its_answer_has_its_number(number):
    holder = Holder(number, Echo())
    assert holder.answer(Call(0, "deal", ({0: "a", 1: "b"},))) is None
    assert holder.vectors == {0: ("ab"[number],)}
    assert holder.answer(Call(1, "restore", ({0: "a", 1: "b"},))) == ("ab"[number],)
    for k, method in enumerate(("collect", "state")):
        assert holder.answer(Call(5 + k, method, ("v",))) == {number: ("v",)}
    assert holder.answer(Call(9, "spread", ({0: "a"},))) == ({0: "a"},)


def test_a_shard_is_told_how_answers_of_its_blocks_are_joined():
    holder = holding({3: "a"})
    holder.answer(Call(0, "reduce", (len, (Ref(3),)), max))
    holder.answer(Call(1, "reduce", (len, (Ref(3),))))
    assert holder.shard.heard == [
        ("reduce", len, ("a",), ("by", max)),
        ("reduce", len, ("a",)),
    ]


def test_matrices_are_stacked_block_by_block():
    wide = np.broadcast_to(np.float32(1.0), (3, 1 << 25))  # a row is more than a block
    stacked = Stacked([wide[:2], wide], 1 << 25)
    assert stacked.bounds == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert [(block.lo, block.hi) for block in stacked] == stacked.bounds
    assert all(block.X.shape == (1, 1 << 25) for block in stacked)
    assert stacked.size == Size(5, 1 << 25, 5 << 25, 1 << 27)
    assert stacked.dtype == np.float32
    assert stacked.resident is True


def test_the_size_of_stacked_matrices():
    A = as_matrix(csr_matrix([[1.0, 0.0, 2.0]]))  # 24 bytes
    B = as_matrix(csr_matrix([[1.0, 0.0, 2.0, 0.0, 3.0], [0.0] * 5]))  # 18 each
    assert Stacked([A], 3).size == Size(1, 3, 2, 24)
    assert Stacked([A, B], 5).size == Size(3, 5, 5, 20)
    assert Stacked([B, A], 5).size == Size(3, 5, 5, 20)
    assert Stacked([np.zeros((0, 2))], 2).size == Size(0, 2, 0, 0)


NAME = "rows-of-a-test"


@pytest.fixture
def rows():
    """Loads rows, which are forgotten afterwards."""
    yield lambda source: load(NAME, source)
    forget_rows(NAME)


def source(*pieces, n_features=None):
    return Source(tuple(Chunk(np.array(X), y, 1.0) for X, y in pieces), n_features, np.float64)


def test_a_summary_of_rows(rows):
    A, B = ([[1.0, 0.0], [0.0, 2.0]], [3.0, 1.0]), ([[5.0, 6.0]], [3.0])
    found = summarise_rows(rows(source(A, B, ([[0.0, 1.0]], [2.0]))))
    assert found == Summary(Size(4, 2, 8, 16), np.dtype("f8"), {3.0: 2, 1.0: 1, 2.0: 1})
    assert list(found.labels) == [3.0, 1.0, 2.0]
    assert {(type(label), type(n)) for label, n in found.labels.items()} == {(float, int)}


def test_a_summary_of_sparse_rows(rows):
    X = csr_matrix(np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 1.0]], dtype=np.float32))
    found = summarise_rows(rows(Source((Chunk(X, [1, -1, 1], 1.0),), None, np.float32)))
    assert found == Summary(Size(3, 2, 3, 8), np.dtype("f4"), {1.0: 2, -1.0: 1})
    assert list(found.labels) == [1.0, -1.0]


def test_numbers_must_be_of_one_type(rows):
    mixed = source(([[1.0]], [1.0]), (np.ones((1, 1), dtype=np.float32), [1.0]))
    message = r"^all pieces of the data must hold numbers of one type, got \['float32', 'float64'\]"
    with pytest.raises(InputError, match=message + "$"):
        summarise_rows(rows(mixed))


class Counting:
    """A piece that counts how often it is read."""

    def __init__(self, X):
        self.X, self.read = np.array(X), []

    def load(self, n_features, dtype):
        self.read.append((n_features, dtype))
        return self.X, np.arange(len(self.X), dtype=float)


def test_rows_are_read_once_until_they_are_forgotten(rows):
    piece = Counting([[1.0, 2.0]])
    counted = Source((piece,), 5, np.float32)
    assert summarise_rows(rows(counted)) == summarise_rows(rows(counted))
    checksum_rows(rows(counted))
    assert piece.read == [(5, np.float32)]
    forget_rows(NAME)
    forget_rows(NAME)
    summarise_rows(rows(counted))
    assert len(piece.read) == 2


def test_checksums_are_of_every_matrix_and_of_the_labels(rows):
    A, B = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])
    found = checksum_rows(rows(source((A, [1.0]), (B, [2.0, 1.0]))))
    assert found == data_fingerprint(A, B, np.array([1.0, 2.0, 1.0]))


def test_pieces_without_rows_are_left_out_but_for_one_if_there_are_no_others(rows):
    nothing, no_columns = np.zeros((0, 2)), np.zeros((3, 0))
    found = checksum_rows(rows(Source((Counting(nothing), Counting(no_columns)), None, float)))
    assert found == data_fingerprint(no_columns, np.arange(3.0))
    forget_rows(NAME)
    found = checksum_rows(rows(Source((Counting(nothing),) * 2, None, float)))
    assert found == data_fingerprint(nothing, np.arange(0.0))


def test_a_shard_has_labels_and_costs_of_its_problem(rows):
    A, B = ([[1.0, 0.0], [0.0, 2.0]], [3.0, 1.0]), ([[5.0, 6.0], [7.0, 8.0]], [2.0, 3.0])
    problem = ClassProblem(3.0, {3.0: 10.0, 1.0: 0.5}, MODELS["csvm"](), False)
    shard = pose(rows(source(A, B)), 2, problem)
    assert shard.rows.y.tolist() == [1.0, -1.0, -1.0, 1.0]
    assert shard.rows.c.tolist() == [10.0, 0.5, 0.0, 10.0]
    assert (shard.n_rows, shard.n_features) == (4, 2)
    assert (shard.model, shard.bias) == (problem.model, False)


def test_sparse_rows_are_widened_and_dense_ones_must_be_as_wide_as_all(rows):
    problem = ClassProblem(1.0, {1.0: 1.0}, MODELS["csvm"](), True)
    sparse = Source((Chunk(csr_matrix([[0.0, 1.0]]), [1.0], 1.0),), None, float)
    narrow = rows(sparse)
    assert pose(narrow, 7, problem).n_features == 7
    with pytest.raises(InputError, match=r"^all pieces of the data must have 1 columns, got 2$"):
        pose(narrow, 1, problem)
    forget_rows(NAME)
    square = rows(source(([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [1.0, 1.0])))
    assert pose(square, 3, problem).n_features == 3
    for width in (2, 4):
        message = rf"^all pieces of the data must have {width} columns, got 3$"
        with pytest.raises(InputError, match=message):
            pose(square, width, problem)


# ---------------------------------------------------------------- calls


def test_answers_of_two_shards_are_added_whatever_they_are_made_of():
    v, w = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    assert add(None, None) is None
    assert add(1.5, 2.0) == 3.5
    assert add(v, w).tolist() == [11.0, 22.0]
    assert add({0: v}, {1: w}) == {0: v, 1: w}
    assert add((1.0, (2.0, None)), (3.0, (4.0, None))) == (4.0, (6.0, None))
    a, b = Sums(1.0, 2.0, 3.0, 4.0, 0.5, v), Sums(5.0, 6.0, 7.0, 8.0, 0.25, w)
    assert add(a, b)[:5] == (6.0, 8.0, 10.0, 12.0, 0.5)
    assert type(add(a, b)) is Sums
    with pytest.raises(ValueError, match="shorter"):
        add((1.0, 2.0), (3.0,))


def test_vectors_are_cut_where_shards_end_and_put_together_again():
    v = np.arange(5.0)
    assert [piece.tolist() for piece in scatter(v, [2, 2, 5])] == [[0, 1], [], [2, 3, 4]]
    cut = scatter({"a": v, "b": -v}, [4, 5])
    assert [{name: a.tolist() for name, a in piece.items()} for piece in cut] == [
        {"a": [0, 1, 2, 3], "b": [0, -1, -2, -3]},
        {"a": [4], "b": [-4]},
    ]
    assert gather(scatter(v, [2, 2, 5])).tolist() == v.tolist()
    assert {name: a.tolist() for name, a in gather(cut).items()} == {
        "a": v.tolist(),
        "b": (-v).tolist(),
    }


# methods of `Shard` that look into rows, which only shards in memory have
IN_MEMORY = {"whole", "rows", "squares"}


def test_the_table_has_every_method_of_a_shard_that_does_not_look_into_rows():
    public = {name for name in dir(Shard) if not name.startswith("_")}
    assert set(METHODS) == public - IN_MEMORY


def test_a_method_fills_or_changes_or_reads_one_memory():
    for name, method in METHODS.items():
        uses = [m for m in (method.begins, method.changes, method.reads) if m is not None]
        assert len(uses) <= 1, name
        assert method.reads is None or method.result is Result.VECTOR, name
    assert METHODS["sweep"] == Method(Result.SUM, begins=Memory.SWEEP)
    assert METHODS["restore"] == Method(Result.NONE, begins=Memory.WALK, scattered=True)
