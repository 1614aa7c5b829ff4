"""Decimal text gives the bits of Python's float()."""

import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nesvm_jit.jit import exact_helper
from nesvm_jit.kernels.decimal import BAD, HARD, OK, parse_decimal

from .conftest import PURE

pytestmark = pytest.mark.pure


@exact_helper
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
