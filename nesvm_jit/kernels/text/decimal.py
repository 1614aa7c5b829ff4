"""Convert decimal text to float64, with the same bits as Python's float().

There are three ways, the fastest first: an exact product or quotient with a power of ten; the
128-bit product of Eisel and Lemire with a table of powers of five; and, for rare texts that need
more digits, the mark HARD, which leaves the conversion to Python.
"""

import numpy as np

from ...jit import exact_helper, exact_inline
from ...jit.intrinsics import LITTLE_ENDIAN, leading_zeros, load8, trailing_zeros

PLUS, MINUS, POINT, ZERO = 43, 45, 46, 48
LOWER = 32  # the bit that turns an ASCII letter into lower case
SMALL_E = 101

OK, BAD, HARD = 0, 1, 2

_SMALLEST, _LARGEST = -342, 308  # decimal exponents outside of this range give 0 or infinity


def _power_of_five(q: int) -> int:
    """Return the 128 leading bits of 5^q, rounded down for q ≥ 0 and up for q < 0."""
    if q >= 0:
        power = 5**q
        shift = 128 - power.bit_length()
        return power << shift if shift >= 0 else power >> -shift
    divisor = 5**-q
    quotient = (1 << (divisor.bit_length() + 127)) // divisor + 1
    return quotient >> (quotient.bit_length() - 128)


_BITS = [_power_of_five(q) for q in range(_SMALLEST, _LARGEST + 1)]
FIVES = np.array([[b >> 64, b & (2**64 - 1)] for b in _BITS], dtype=np.uint64)
TENS = np.array([float(10**k) for k in range(23)])

_32 = np.uint64(32)
_LOW32 = np.uint64(0xFFFFFFFF)
_ONE, _THREE = np.uint64(1), np.uint64(3)
_9BITS = np.uint64(0x1FF)
_ALL = np.uint64(2**64 - 1)
_TOP = np.uint64(63)
_HIDDEN = np.uint64(1 << 52)
_INFINITY = np.uint64(0x7FF << 52)


@exact_inline
def _product(a, b):
    """Return the 128-bit product of two 64-bit numbers, as (high, low)."""
    a1, a0 = a >> _32, a & _LOW32
    b1, b0 = b >> _32, b & _LOW32
    low = a0 * b0
    mid = a1 * b0 + (low >> _32)
    mid2 = a0 * b1 + (mid & _LOW32)
    return a1 * b1 + (mid >> _32) + (mid2 >> _32), (mid2 << _32) | (low & _LOW32)


@exact_helper
def _bits_of(m, q):
    """Return the bits of the float64 nearest to m·10^q for 0 < m < 2^64, and True if they are
    certain."""
    if q < _SMALLEST:
        return np.uint64(0), True
    if q > _LARGEST:
        return _INFINITY, True
    shift = np.int64(leading_zeros(m))
    m = m << np.uint64(shift)
    five_hi, five_lo = FIVES[q - _SMALLEST, 0], FIVES[q - _SMALLEST, 1]
    hi, lo = _product(m, five_hi)
    if hi & _9BITS == _9BITS:
        carry, _ = _product(m, five_lo)
        lo += carry
        if lo < carry:
            hi += _ONE
    if lo == _ALL and not -27 <= q <= 55:
        return np.uint64(0), False
    top = hi >> _TOP
    drop = top + np.uint64(9)
    mantissa = hi >> drop  # 54 bits, one more than the result has
    exponent = ((217706 * q) >> 16) + 63 + np.int64(top) - shift + 1023
    if exponent <= 0:
        if exponent < -62:
            return np.uint64(0), True
        mantissa = mantissa >> np.uint64(1 - exponent)
        mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
        return mantissa, True  # a carry into the hidden bit is the smallest normal number
    if lo <= _ONE and -4 <= q <= 23 and mantissa & _THREE == _ONE and mantissa << drop == hi:
        mantissa -= _ONE  # exactly half way: round to even
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if mantissa >= _HIDDEN << _ONE:
        mantissa = _HIDDEN
        exponent += 1
    if exponent >= 2047:
        return _INFINITY, True
    return (mantissa - _HIDDEN) | (np.uint64(exponent) << np.uint64(52)), True


@exact_inline
def _nearest(m, q, more_digits):
    """Round m·10^q to float64; with `more_digits` the true mantissa lies in (m, m+1). Return it
    with OK, or with HARD if it is not certain."""
    if m == 0:
        return 0.0, OK
    if not more_digits and m <= np.uint64(1 << 53) and -22 <= q <= 22:
        x = np.float64(np.int64(m))
        return (x / TENS[-q] if q < 0 else x * TENS[q]), OK
    bits, certain = _bits_of(m, q)
    if more_digits:
        above, certain_above = _bits_of(m + _ONE, q)
        certain = certain and certain_above and above == bits
    return np.uint64(bits).view(np.float64), OK if certain else HARD


@exact_helper
def _long_mantissa(text, pos, end):
    """Read the first 19 significant digits from `pos`. Return them as a whole number, its decimal
    exponent, and True if a digit that was cut was not zero."""
    m = np.uint64(0)
    kept = 0
    cut = 0
    places = 0
    after_point = 0
    lost = False
    while pos < end:
        ch = text[pos]
        if ch == POINT:
            after_point = 1
        else:
            digit = np.uint64(ch) - np.uint64(ZERO)
            if digit > np.uint64(9):
                break
            if kept < 19:
                m = m * np.uint64(10) + digit
                kept += m != 0
                places += after_point
            else:
                cut += 1 - after_point
                lost = lost or digit != 0
        pos += 1
    return m, cut - places, lost


_ZEROS = np.uint64(0x3030303030303030)
_CARRY = np.uint64(0x7676767676767676)  # 0x80 - 10 in every byte
_HIGH = np.uint64(0x8080808080808080)
_EIGHT = np.uint64(8)
SHORT_TENS = np.array([10**k for k in range(9)], dtype=np.uint64)


@exact_inline
def _few_digits(text, pos, end):
    """Read up to 8 digits from `pos`; return their value and their number."""
    if LITTLE_ENDIAN and pos + 8 <= end:
        # all 8 bytes at once: find the first byte that is no digit, shift the digits to the high
        # end (zeros fill the low end), then join neighbours to numbers of 2, 4 and 8 digits
        word = load8(text, pos) ^ _ZEROS
        no_digit = ((word + _CARRY) | word) & _HIGH
        n = trailing_zeros(no_digit) >> _THREE
        if n == 0:
            return np.uint64(0), np.int64(0)
        word = word << ((_EIGHT - n) << _THREE)
        word = (word * np.uint64(10) + (word >> _EIGHT)) & np.uint64(0x00FF00FF00FF00FF)
        word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
        word = (word * np.uint64(10000) + (word >> _32)) & _LOW32
        return word, np.int64(n)
    value = np.uint64(0)
    n = 0
    while n < 8 and pos + n < end:
        digit = np.uint64(text[pos + n]) - np.uint64(ZERO)
        if digit > np.uint64(9):
            break
        value = value * np.uint64(10) + digit
        n += 1
    return value, n


@exact_inline
def parse_digits(text, pos, end, m):
    """Append the digits from `pos` to m (modulo 2^64); return m and the position after them."""
    while True:
        few, n = _few_digits(text, pos, end)
        m = m * SHORT_TENS[n] + few
        pos += n
        if n < 8:
            return m, pos


@exact_inline
def parse_decimal(text, pos, end):
    """Read the number that starts at `pos`; return (value, position after it, OK | BAD | HARD).

    A number is at least one digit with at most one point, perhaps a sign before and an exponent
    after. Nothing at or beyond `end` is read. The caller judges the text after the number.
    """
    start = pos
    negative = False
    if pos < end and (text[pos] == MINUS or text[pos] == PLUS):
        negative = text[pos] == MINUS
        pos += 1
    first = pos
    m, pos = parse_digits(text, pos, end, np.uint64(0))
    n_digits = pos - first
    q = 0
    if pos < end and text[pos] == POINT:
        point = pos + 1
        m, pos = parse_digits(text, point, end, m)
        q = point - pos
        n_digits += pos - point
    if n_digits == 0:
        return 0.0, start, BAD
    more_digits = False
    if n_digits > 19:
        m, q, more_digits = _long_mantissa(text, first, end)
    if pos < end and (text[pos] | LOWER) == SMALL_E:
        pos += 1
        minus = False
        if pos < end and (text[pos] == MINUS or text[pos] == PLUS):
            minus = text[pos] == MINUS
            pos += 1
        first = pos
        e = 0
        while pos < end:
            digit = np.int64(text[pos]) - ZERO
            if digit < 0 or digit > 9:
                break
            e = min(e * 10 + digit, 1 << 40)
            pos += 1
        if pos == first:
            return 0.0, start, BAD
        q += -e if minus else e
    value, code = _nearest(m, q, more_digits)
    return -value if negative else value, pos, code
