"""The compiled loops of the text readers, called with tables of their own: counts, what is parsed
where, what is wrong and at which byte, and that no room is exceeded."""

import numpy as np
import pytest
from nesvm_jit.kernels.text import libsvm as lt
from nesvm_jit.kernels.text.model import _parse_rows

pytestmark = pytest.mark.pure
HALF = b"1.00000000000000011102230246251565404236316680908203125"  # Python must read it


def table(text, cuts=()):
    """Text and its blocks, counted, the room of each after that of the one before."""
    text = np.frombuffer(text, np.uint8)
    bounds = [0, *cuts, len(text)]
    blocks = np.zeros((len(bounds) - 1, lt.N_COLUMNS), np.int64)
    blocks[:, lt.START], blocks[:, lt.STOP] = bounds[:-1], bounds[1:]
    lt._count(text, blocks)
    for count, first in ((lt.ROWS, lt.FIRST_ROW), (lt.CELLS, lt.FIRST_CELL)):
        blocks[1:, first] = np.cumsum(blocks[:-1, count])
    return text, blocks


def room(blocks, hard=2):
    rows, cells = (int(blocks[:, c].sum()) for c in (lt.ROWS, lt.CELLS))
    return lt.Cells(
        np.full(rows + 1, -7.0),
        np.full(rows + 1, -7),
        np.full(cells + 1, 77, np.uint32),
        np.full(cells + 1, -7.0),
        np.full((len(blocks) * hard + 1, 3), -7),
    )


def parse(text, cuts=(), base=1, limit=lt.HIGHEST_INDEX, hard=2, change=None):
    text, blocks = table(text, cuts)
    if change is not None:
        change(blocks)
    cells = room(blocks, hard)
    lt._parse(len(blocks), text, blocks, base, limit, hard, cells)
    return blocks, cells


# ---------------------------------------------------------------- counting


@pytest.mark.parametrize("n", [0, 1, 3, 127, 128, 129, 255, 256, 257, 400])
def test_newlines_and_colons_are_counted(n):
    rng = np.random.default_rng(n)
    for share in (0.1, 0.5, 1.0):
        text = rng.choice([10, 58, 49, 32], n, p=[share / 2, share / 2, *[(1 - share) / 2] * 2])
        text = text.astype(np.uint8).tobytes()
        _, blocks = table(text)
        unended = n > 0 and not text.endswith(b"\n")
        assert blocks[0, lt.ROWS] == text.count(b"\n") + unended
        assert blocks[0, lt.CELLS] == min(text.count(b":"), n // 3)


def test_a_text_of_newlines_or_of_colons_alone_is_counted():
    for byte, rows in ((b"\n", 300), (b":", 1)):
        _, blocks = table(byte * 300)
        assert blocks[0, lt.ROWS] == rows
        assert blocks[0, lt.CELLS] == (100 if byte == b":" else 0)


def test_blocks_are_counted_on_their_own():
    text = b"1 1:2 2:3\n-1\n+1 1:1 2:1 3:1"
    _, blocks = table(text, [10, 13])
    assert blocks[:, lt.ROWS].tolist() == [1, 1, 1]
    assert blocks[:, lt.CELLS].tolist() == [2, 0, 3]
    assert len({lt.START, lt.STOP, lt.ROWS, lt.CELLS, lt.FIRST_ROW, lt.FIRST_CELL}) == 6
    assert lt.N_HARD + 1 == lt.N_COLUMNS == 11


def test_no_block_has_more_cells_than_a_third_of_its_bytes():
    _, blocks = table(b"1\n" + b":" * 30, [2])
    assert blocks[:, lt.CELLS].tolist() == [0, 10]


def test_a_block_beyond_the_end_of_the_text_is_cut_there():
    text = np.frombuffer(b"1 1:2 2:3\n1 1:1", np.uint8)
    blocks = np.zeros((2, lt.N_COLUMNS), np.int64)
    blocks[:, lt.START], blocks[:, lt.STOP] = [0, 15], [99, 99]
    lt._count(text, blocks)
    assert blocks[:, lt.ROWS].tolist() == [2, 0]
    assert blocks[:, lt.CELLS].tolist() == [3, 0]
    cells = room(blocks)
    lt._parse(len(blocks), text, blocks, 1, 9, 2, cells)
    assert blocks[:, lt.CODE].tolist() == [lt.FINE, lt.FINE]
    assert blocks[:, lt.ROWS].tolist() == [2, 0]


# ---------------------------------------------------------------- parsing


def test_rows_go_to_their_places():
    text = b"1 1:2.5 3:-4\n\n# note 9:9\n-1 qid:3 2:7e-1 # 5:5\n 3\t\r\n2 4294967294:1"
    blocks, cells = parse(text)
    assert blocks[0, lt.CODE] == lt.FINE
    assert (blocks[0, lt.ROWS], blocks[0, lt.CELLS]) == (4, 4)
    assert (blocks[0, lt.LARGEST], blocks[0, lt.N_HARD]) == (2**32 - 3, 0)
    assert cells.labels[:4].tolist() == [1, -1, 3, 2]
    assert cells.stops[:4].tolist() == [2, 3, 3, 4]
    assert cells.indices[:4].tolist() == [0, 2, 1, 2**32 - 3]
    assert cells.values[:4].tolist() == [2.5, -4.0, 0.7, 1.0]
    assert set(cells.labels[4:]) == set(cells.stops[4:]) == set(cells.values[4:]) == {-7}


def test_blocks_go_to_their_own_rows_and_cells():
    text = b"5 1:2 2:3\n# 7:7\n6 9:4\n7 3:5\n8 1:6 8:1"
    blocks, cells = parse(text, [10, 22], base=0)
    assert blocks[:, lt.CODE].tolist() == [0, 0, 0]
    assert blocks[:, lt.ROWS].tolist() == [1, 1, 2]
    assert blocks[:, lt.CELLS].tolist() == [2, 1, 3]
    assert blocks[:, lt.LARGEST].tolist() == [2, 9, 8]
    assert blocks[:, lt.FIRST_ROW].tolist() == [0, 1, 3]
    assert blocks[:, lt.FIRST_CELL].tolist() == [0, 2, 4]
    assert cells.labels.tolist() == [5, 6, -7, 7, 8, -7]
    assert cells.stops.tolist() == [2, 3, -7, 5, 7, -7]
    assert cells.indices[[0, 1, 2, 4, 5, 6]].tolist() == [1, 2, 9, 3, 1, 8]
    assert cells.values.tolist() == [2, 3, 4, -7, 5, 6, 1, -7]


def test_a_block_without_rows_has_no_largest_column():
    blocks, _ = parse(b"# a\n\n  \t\n")
    assert blocks[0, [lt.CODE, lt.ROWS, lt.CELLS, lt.LARGEST, lt.N_HARD]].tolist() == [
        0,
        0,
        0,
        -1,
        0,
    ]
    blocks, _ = parse(b"1\n2\n")
    assert blocks[0, [lt.ROWS, lt.CELLS, lt.LARGEST]].tolist() == [2, 0, -1]
    blocks, _ = parse(b"1 7:1\n2 2:1\n3\n")
    assert blocks[0, lt.LARGEST] == 6


def test_numbers_for_python_are_noted_while_there_is_room():
    text = HALF + b" 1:1 2:" + HALF + b"\n3 1:" + HALF + b"\n"
    blocks, cells = parse(text, hard=3)
    n = len(HALF)
    first = [[-1, 0, n], [1, n + 7, 2 * n + 7], [2, 2 * n + 12, 3 * n + 12]]
    assert blocks[0, lt.N_HARD] == 3
    assert cells.hard.tolist() == [*first, [-7] * 3]
    blocks, cells = parse(text, hard=1)
    assert blocks[0, lt.N_HARD] == 3
    assert cells.hard.tolist() == [first[0], [-7] * 3]
    blocks, cells = parse(text, [text.index(b"\n") + 1], hard=2)
    assert blocks[:, lt.N_HARD].tolist() == [2, 1]
    assert cells.hard.tolist() == [first[0], first[1], first[2], [-7] * 3, [-7] * 3]
    blocks, cells = parse(b"1\n" + HALF + b"\n")
    assert cells.hard[0].tolist() == [-2, 2, 2 + n]


@pytest.mark.parametrize(
    ("text", "code", "where", "previous"),
    [
        (b"1\nx 1:2\n", lt.BAD_LABEL, 2, 0),
        (b"1:2\n", lt.BAD_LABEL, 0, 0),
        (b" 1x\n", lt.BAD_LABEL, 1, 0),
        (b"1 x:2\n", lt.BAD_INDEX, 2, 0),
        (b"1 :2\n", lt.BAD_INDEX, 2, 0),
        (b"1 3x:2\n", lt.BAD_INDEX, 2, 0),
        (b"1 3\n", lt.NO_COLON, 2, 0),
        (b"1 3", lt.NO_COLON, 2, 0),
        (b"1 3 4:1", lt.NO_COLON, 2, 0),
        (b"1 3#", lt.NO_COLON, 2, 0),
        (b"1 x", lt.BAD_INDEX, 2, 0),
        (b"1 3:\n", lt.BAD_VALUE, 2, 0),
        (b"1 3:x\n", lt.BAD_VALUE, 2, 0),
        (b"1 3:1x\n", lt.BAD_VALUE, 2, 0),
        (b"1 3:1:2\n", lt.BAD_VALUE, 2, 0),
        (b"1 1:1 0:2\n", lt.TOO_SMALL, 6, 1),
        (b"1 0:2\n", lt.TOO_SMALL, 2, 0),
        (b"1 3:2 3:4\n", lt.NOT_ASCENDING, 6, 3),
        (b"1 1:2 1:4\n", lt.NOT_ASCENDING, 6, 1),
        (b"1 5:2 3:4\n", lt.NOT_ASCENDING, 6, 5),
        (b"1 1:2 9:4\n", lt.FINE, 0, 0),
        (b"1 1:2 10:4\n", lt.TOO_LARGE, 6, 0),
        (b"1 4294967295:4\n", lt.TOO_LARGE, 2, 0),
        (b"1 18446744073709551617:4\n", lt.TOO_LARGE, 2, 0),
        (b"1 00000000000000000001:4\n", lt.TOO_LARGE, 2, 0),
        (b"1 0000000000000000001:4\n", lt.FINE, 0, 0),
        (b"1 2:1e999\n", lt.NOT_FINITE, 2, 0),
        (b"-1e999 2:1\n", lt.NOT_FINITE, 0, 0),
        (b"1 qid:x 1:2\n", lt.BAD_QID, 2, 0),
        (b"1  qid: 1:2\n", lt.BAD_QID, 3, 0),
        (b"1 qid:\n", lt.BAD_QID, 2, 0),
        (b"1 qid:5x\n", lt.BAD_QID, 2, 0),
        (b"1 qid:/\n", lt.BAD_QID, 2, 0),
        (b"1 qid:0:\n", lt.BAD_QID, 2, 0),
        (b"1 qidx5\n", lt.BAD_QID, 2, 0),
        (b"1 qid\n", lt.BAD_QID, 2, 0),
        (b"1 qid", lt.BAD_INDEX, 2, 0),
        (b"1 qi:5\n", lt.BAD_INDEX, 2, 0),
        (b"1 qad:5\n", lt.BAD_INDEX, 2, 0),
        (b"1 xid:5\n", lt.BAD_INDEX, 2, 0),
        (b"1 qie:5\n", lt.BAD_INDEX, 2, 0),
        (b"1 1:1 qid:5\n", lt.BAD_INDEX, 6, 0),
        (b"1 qid:0", lt.FINE, 0, 0),
        (b"1 qid:9 1:1", lt.FINE, 0, 0),
        (b"1 qid:19\t\r 1:1", lt.FINE, 0, 0),
        (b"1 qid:5#", lt.FINE, 0, 0),
        (b"1 qid:5\n", lt.FINE, 0, 0),
    ],
)  # fmt: skip
def test_what_is_wrong_and_where(text, code, where, previous):
    blocks, _ = parse(text, limit=9)
    assert blocks[0, [lt.CODE, lt.WHERE, lt.PREVIOUS]].tolist() == [code, where, previous]


def test_the_highest_index_is_two_below_two_to_the_32():
    assert parse(b"1 4294967294:4\n", limit=2**40)[0][0, lt.CODE] == lt.FINE
    assert parse(b"1 4294967295:4\n", limit=2**40)[0][0, lt.CODE] == lt.TOO_LARGE
    assert lt.HIGHEST_INDEX == 4294967294


def test_what_was_wrong_with_a_block_before_is_forgotten():
    def stale(blocks):
        blocks[:, lt.CODE] = lt.BAD_QID

    assert parse(b"1 1:2\n", change=stale)[0][0, lt.CODE] == lt.FINE


def test_indices_from_zero_on():
    blocks, cells = parse(b"1 0:5 8:6\n2 9:1\n", base=0, limit=9)
    assert blocks[0, [lt.CODE, lt.WHERE]].tolist() == [lt.TOO_LARGE, 12]
    assert cells.indices[:2].tolist() == [0, 8]
    blocks, _ = parse(b"1 3:5 3:6\n", base=0)
    assert blocks[0, [lt.CODE, lt.PREVIOUS]].tolist() == [lt.NOT_ASCENDING, 3]


def test_codes_are_all_different():
    codes = [lt.FINE, lt.BAD_LABEL, lt.BAD_INDEX, lt.NO_COLON, lt.BAD_VALUE, lt.TOO_SMALL]
    codes += [lt.NOT_ASCENDING, lt.TOO_LARGE, lt.NOT_FINITE, lt.BAD_QID, lt.NO_ROOM]
    assert codes == list(range(11))


def test_nothing_is_written_beyond_the_room_that_was_counted():
    def fewer(column):
        def change(blocks):
            blocks[0, column] -= 1

        return change

    text = b"1 1:1 2:2\n2 1:3\n"
    blocks, cells = parse(text, change=fewer(lt.ROWS))
    assert blocks[0, [lt.CODE, lt.WHERE, lt.PREVIOUS]].tolist() == [lt.NO_ROOM, 10, 0]
    assert cells.labels.tolist() == [1, -7]
    blocks, cells = parse(text, change=fewer(lt.CELLS))
    assert blocks[0, [lt.CODE, lt.WHERE]].tolist() == [lt.NO_ROOM, 12]
    assert cells.values.tolist() == [1, 2, -7]
    blocks, cells = parse(text, [10], change=fewer(lt.CELLS))
    assert blocks[:, lt.CODE].tolist() == [lt.NO_ROOM, lt.FINE]
    assert blocks[0, lt.WHERE] == 6


@pytest.mark.parametrize("blank", [b" ", b"\t", b"\r", b" \t\r "])
def test_blanks_part_tokens(blank):
    blocks, cells = parse(blank + b"1" + blank + b"2:3" + blank + b"4:5" + blank + b"\n2" + blank)
    assert blocks[0, [lt.CODE, lt.ROWS, lt.CELLS]].tolist() == [0, 2, 2]
    assert cells.values[:2].tolist() == [3, 5]
    for other in (b"\x0b", b"\x0c", b"\x1f", b"!", b"\x08", b"\x0e"):
        assert parse(b"1" + other + b"\n")[0][0, lt.CODE] == lt.BAD_LABEL


# ---------------------------------------------------------------- rows of model files


def rows_of(text, width, count=2, pos=0, row=0, cells=4):
    numbers = np.full((count, width), -7.0)
    ends, indices, values = np.zeros(count + 1, np.int64), np.full(cells, -7), np.full(cells, -7.0)
    where = _parse_rows(np.frombuffer(text, np.uint8), pos, row, numbers, ends, indices, values)
    return where, numbers.tolist(), ends.tolist(), indices.tolist(), values.tolist()


def test_rows_of_numbers_and_cells():
    where, numbers, ends, indices, values = rows_of(
        b"xx1 -2.5 1:3 7:4e1\n\t3  4\r\n5 6\n", 2, pos=2
    )
    assert where == (2, 26)
    assert numbers == [[1, -2.5], [3, 4]]
    assert ends == [0, 2, 2]
    assert indices == [1, 7, -7, -7]
    assert values == [3, 40, -7, -7]


def test_reading_goes_on_from_a_row():
    where, numbers, ends, *_ = rows_of(b"9\n1 2:3\n", 1, pos=2, row=1)
    assert where == (2, 8)
    assert numbers == [[-7], [1]]
    assert ends == [0, 0, 1]
    assert rows_of(b"9\n", 1, row=2)[0] == (2, 0)


def test_rows_without_numbers_of_their_own():
    where, _, ends, indices, values = rows_of(b"1:2\n\n", 0)
    assert where == (2, 5)
    assert (ends, indices[0], values[0]) == ([0, 1, 1], 1, 2.0)


@pytest.mark.parametrize(
    "line",
    [
        b"x\n",
        b"\n",
        b"2",
        b"2 ",
        b"2x\n",
        b"2:3\n",
        b"2#\n",
        b"1e999\n",
        HALF + b"\n",
        b"2 1:3",
        b"2 1:3 ",
        b"2 :3\n",
        b"2 x:3\n",
        b"2 1\n",
        b"2 1",
        b"2 1 :3\n",
        b"2 12345678901:3\n",
        b"2 1:\n",
        b"2 1:x\n",
        b"2 1:3x\n",
        b"2 1:3:4\n",
        b"2 1:1e999\n",
        b"2 1:" + HALF + b"\n",
        b"2 1:1 2:1 3:1 4:1\n",  # no room for a fourth beside the first row's
    ],
)
def test_a_row_that_python_must_look_at_is_left_to_it(line):
    where, numbers, ends, *_ = rows_of(b"1 1:5\n" + line, 1)
    assert where == (1, 6)
    assert numbers[0] == [1]
    assert ends == [0, 1, 0]


@pytest.mark.parametrize("line", [b"2 1234567890:3\n", b"2 1:1 2:1 3:1\n", b"2\t1:3\r\n", b" 2 \n"])
def test_a_row_as_long_as_can_be_is_read(line):
    where, numbers, *_ = rows_of(b"1 1:5\n" + line, 1)
    assert where == (2, 6 + len(line))
    assert numbers == [[1], [2]]
