"""Decimal text gives the bits of Python's float()."""

import struct
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nesvm_jit.jit import exact_loop
from nesvm_jit.jit.intrinsics import LITTLE_ENDIAN, leading_zeros, load8, trailing_zeros
from nesvm_jit.kernels.text.decimal import BAD, FIVES, HARD, OK, SHORT_TENS, TENS, parse_decimal

from .conftest import PURE

pytestmark = pytest.mark.pure


@exact_loop
def parse_all(text, starts, values, stops, codes):
    for i in range(len(values)):
        values[i], stops[i], codes[i] = parse_decimal(text, starts[i], starts[i + 1])


def parse(words):
    """Values, lengths read, and codes of many words in one call."""
    text = np.frombuffer(b"".join(words) + b"\n", dtype=np.uint8)
    starts = np.cumsum([0] + [len(w) for w in words])
    values, stops, codes = np.zeros(len(words)), *np.zeros((2, len(words)), dtype=np.int64)
    parse_all(text, starts, values, stops, codes)
    return values, stops - starts[:-1], codes


def assert_like_python(words):
    assert words
    values, lengths, codes = parse(words)
    for word, value, length, code in zip(words, values, lengths, codes, strict=True):
        assert code in (OK, HARD), word
        assert length == len(word), word
        if code == OK:
            assert struct.pack("d", value) == struct.pack("d", float(word)), (word, value)
    return codes


digits = st.text("0123456789", min_size=1, max_size=40)
decimals = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "+", "-"]),
    digits | st.builds("{}.{}".format, st.just("") | digits, digits) | digits.map("{}.".format),
    st.just("") | st.builds("e{}".format, st.integers(-400, 400)),
    st.just(""),
)


@given(st.lists(decimals.map(str.encode), min_size=1))
def test_any_decimal_text(words):
    assert_like_python(words)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
@example([5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -0.0])
def test_every_float_comes_back_from_its_shortest_and_17_digit_text(floats):
    assert_like_python([repr(x).encode() for x in floats] + [b"%.17g" % x for x in floats])


def test_numbers_at_and_next_to_half_way():
    words = []
    for x in (1.0, 9007199254740992.0, 1e22, 1e23, 5e-324, 2.2250738585072014e-308, 0.1):
        above = np.nextafter(x, np.inf)
        num, den = (x.as_integer_ratio()[i] for i in (0, 1))
        num2, den2 = above.item().as_integer_ratio()
        half = (num * den2 + num2 * den, 2 * den * den2)
        scale = 10**800
        text = str(half[0] * scale // half[1])
        for cut in (17, 18, 19, 20, 25, len(text)):
            kept = text[:cut]
            exponent = len(text) - len(kept) - 800
            for tail in (kept, kept[:-1] + str((int(kept[-1]) + 1) % 10), kept + "1"):
                shift = exponent - (len(tail) - len(kept))
                words.append(f"{tail}e{shift}".encode())
    codes = assert_like_python(words)
    assert HARD in codes  # some need all digits, and say so


def test_most_numbers_are_not_hard():
    rng = np.random.default_rng(0)
    n = 200 if PURE else 20000
    words = [b"%.16e" % x for x in rng.standard_normal(n)] + [b"%.25f" % x for x in rng.random(n)]
    assert np.mean(assert_like_python(words) == HARD) < 0.01


@pytest.mark.parametrize(
    "word", [b"1e400", b"-1e309", b"1e99999999999999999999", b"1.8e308", b"17976931348623159e292"]
)
def test_what_is_too_large_is_infinite(word):
    assert np.isinf(parse([word])[0][0])


@pytest.mark.parametrize(
    "word", [b"", b"+", b"-", b".", b"e5", b"1e", b"1e+", b"nan", b"inf", b"-.e1", b"x", b"+-1"]
)
def test_what_is_no_number_is_bad(word):
    assert parse([word])[2][0] == BAD


@pytest.mark.parametrize("word", [b"1_0", b"0x1p3", b"1.2.3", b"1d5", b"1,2", b"12\x00"])
def test_parsing_stops_where_the_number_ends(word):
    values, lengths, _ = parse([word])
    assert lengths[0] < len(word)
    assert values[0] == float(word[: lengths[0]])


# ---------------------------------------------------------------- the tables


def test_powers_of_five_are_cut_to_128_bits_down_and_their_reciprocals_up():
    assert FIVES.shape == (651, 2)
    for q, (high, low) in zip(range(-342, 309), FIVES.tolist(), strict=True):
        bits = (high << 64) + low
        assert 2**127 <= bits < 2**128
        power = 5 ** abs(q)
        if q >= 0:
            shift = power.bit_length() - 128
            assert Fraction(power) / Fraction(2) ** shift - 1 < bits <= power / Fraction(2) ** shift
        else:
            exact = Fraction(2 ** (power.bit_length() + 127), power)
            assert exact < bits <= exact + 1


def test_powers_of_ten_are_exact():
    assert [int(x) for x in TENS] == [10**k for k in range(23)]
    assert SHORT_TENS.tolist() == [10**k for k in range(9)]


def test_bits_are_counted_from_both_ends():
    for x, low, high in ((0, 64, 64), (1, 0, 63), (2**63, 63, 0), (0b101000, 3, 58)):
        assert trailing_zeros(np.uint64(x)) == low
        assert leading_zeros(np.uint64(x)) == high
    text = np.frombuffer(b"x\x01\x02\x03\x04\x05\x06\x07\x08\x09", np.uint8)
    assert load8(text, 1) == 0x0807060504030201
    assert (sys.byteorder == "little") == LITTLE_ENDIAN


# ---------------------------------------------------------------- every way a number is read


def assert_certain(words):
    assert (assert_like_python(words) == OK).all()


def test_digits_are_read_eight_at_a_time_and_one_by_one():
    digits = b"9081726354909182736450"
    runs = [digits[:k] for k in range(1, 23)]
    assert_certain([*runs, *(b"0." + run for run in runs), *(run + b"." for run in runs)])
    assert_certain([a + b"." + b for a in runs[:10] for b in runs[:9]])


@pytest.mark.parametrize("after", [b"/", b":", b"\xb1", b"\xff", b"\x00", b" ", b"p", b"\t"])
def test_a_byte_beside_the_digits_ends_them(after):
    for k in (1, 3, 7, 8, 9, 15, 16):
        word = b"1234567890123456"[:k] + after + b"77777777"
        values, lengths, codes = parse([word])
        assert (values[0], lengths[0], codes[0]) == (float(word[:k]), k, OK)


def test_nothing_is_read_beyond_the_end():
    for word in (b"1", b"12.", b"1.5", b"1e5", b"-7", b"1234567", b"12345678", b".5"):
        values, lengths, codes = parse([word, b"99999999999", b"e9"])
        assert (values[0], lengths[0], codes[0]) == (float(word), len(word), OK)


@pytest.mark.parametrize("word", [b"-", b"+", b"1e", b"1e-", b".", b"-.", b"1.5e+"])
def test_what_would_go_on_beyond_the_end_is_bad(word):
    values, lengths, codes = parse([word, b"5"])
    assert (values[0], lengths[0], codes[0]) == (0.0, 0, BAD)


def test_signs_points_and_exponents():
    forms = ["5", "+5", "-5", "5.", ".5", "-.5", "0", "-0", "+0.0", "-0.0", "00012", "0.00012"]
    tails = ["", "e3", "E3", "e+3", "E-3", "e003", "e-0", "e22", "e-22", "e23", "e-23"]
    assert_certain([(form + tail).encode() for form in forms for tail in tails])


def test_exact_products_end_where_they_must():
    mantissas = [1, 3, 7, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 3, 2**54 - 1, 10**19 - 1]
    words = [f"{m}e{q}" for m in mantissas for q in (0, 1, 21, 22, 23, 24, -1, -21, -22, -23, -24)]
    assert_certain([w.encode() for w in words])


def test_numbers_exactly_half_way_go_to_the_even_neighbour():
    words = []
    for q in range(-5, 26):
        for start in (2**53 + 1, 2**53 + 3, 2**54 - 1, 2**54 - 3):
            step = 5 ** max(q, 0)
            odd = start // step * step  # divisible by the power of five
            odd -= step * (odd % 2 == 0)
            for shift in range(12):
                m = odd * 2**shift * 5 ** max(-q, 0) // step
                if 2**53 < m < 10**19:
                    words += [f"{m + d}e{q}" for d in (-1, 0, 1)]
    assert len(words) > 300
    assert_certain([w.encode() for w in words[:: 5 if PURE else 1]])
    assert_certain([b"1e23", b"11258999068426240e22", b"15762598695796736e22", b"9007199254740993"])
    assert_certain([b"5629499534213120625e-4", b"5629499534213121875e-4", b"9007199254740995"])


@pytest.mark.parametrize(
    "word",
    [
        b"63875999854751655e-1",
        b"34966151991398481e-88",
        b"57059876761657205e156",
        b"39852341384216058e52",
        b"7657913006196980e-6",
        b"82917254838928178e-98",
        b"74972377308816817e-162",
        b"11100528361247467e187",
        b"54027863655144658e-70",
    ],
)
def test_numbers_that_need_the_second_product(word):
    assert_certain([word])


def test_the_ends_of_the_range():
    least, normal, most = "4.9406564584124654", "2.2250738585072014", "1.7976931348623157"
    words = [f"{least}e-324", f"{normal}e-308", f"{most}e308", "2.225073858507201e-308"]
    words += ["2.4703282292062327e-324", "2.4703282292062328e-324", "3e-324", "7.4e-324", "8e-324"]
    words += ["2.2250738585072011e-308", "2.2250738585072012e-308", "1.7976931348623158e308"]
    words += [f"1e{q}" for q in (-340, -341, -342, -343, -344, 307, 308)]
    words += [f"9999999999999999999e{q}" for q in (-330, -340, -341, -342, -343, -344, 289)]
    words += [f"{m}e-308" for m in ("1.1", "0.55", "0.1", "1.9999999999999999")]
    words += [f"{2.0**-k!r}" for k in (1021, 1022, 1023, 1030, 1060, 1073, 1074)]
    words += [f"123456789e-{q}" for q in range(320, 343, 3)]
    assert_certain([w.encode() for w in words])


def test_rounding_up_to_the_next_power_of_two():
    words = [
        "9007199254740991.9",
        "1.99999999999999999",
        "0.99999999999999999",
        "4.999999999999999999",
    ]
    assert_certain([w.encode() for w in words])


@pytest.mark.parametrize(
    "word", [b"1e309", b"2e308", b"1.9e308", b"17976931348623159e292", b"1e400", b"1e2000000000000"]
)
def test_what_is_too_large_is_infinite_and_certain(word):
    values, lengths, codes = parse([word, b"-" + word])
    assert values.tolist() == [np.inf, -np.inf]
    assert codes.tolist() == [OK, OK]
    assert lengths.tolist() == [len(word), len(word) + 1]


def test_exponents_of_any_length_are_read_to_their_end():
    words = [b"1e-99999999999999999999999", b"0e99999999999999999999999", b"1e-1099511627777"]
    assert_certain(words)
    values, lengths, _ = parse([b"1e1099511627776x", b"1e18446744073709551617"])
    assert np.isinf(values).all()
    assert lengths.tolist() == [15, 22]


def test_more_than_nineteen_digits():
    zeros = "0" * 20
    words = [
        "1" + zeros,
        "1." + zeros,
        "12345678901234567890",
        "12345678901234567890" + zeros,
        "1234567890.1234567890" + zeros,
        zeros + "1.5",
        "0." + zeros + "15",
        zeros + "." + zeros + "1234567890123456789",
        "0." + zeros + "12345678901234567891234",
        "123456789012345678901234567890",
        "1234567890123456789.01234567890e3",
        "12345678901234567890123.456e-7",
        "1234567890123456789" + "0" * 10 + ".0000e-9",
        "3.14159265358979323846264338327950288",
        "27182818284590452353602874713.52662497e5",
        "9" * 25,
        "0." + "9" * 25,
    ]
    assert_certain([w.encode() for w in words])
    assert_certain([f"-{w}".encode() for w in words])


def test_only_what_lies_next_to_half_way_is_hard():
    half = "1.00000000000000011102230246251565404236316680908203125"
    words = [half, half + "1", half[:-1] + "4", half[:22], half[:25]]
    values, _, codes = parse([w.encode() for w in words])
    assert codes.tolist() == [HARD] * 5
    assert_certain(
        [
            half[:19].encode(),
            half[:21].encode(),
            b"1.0000000000000001",
            b"1.000000000000000111000000000000",
        ]
    )
    assert np.isin(values, [1.0, np.nextafter(1, 2)]).all()
