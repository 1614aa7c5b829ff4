"""Numbers of pages: rounded for JSON, thinned, counted in bins, and as text for people."""

import math

import numpy as np
import pytest
from nesvm_jit.pages import numbers

THIN, HARD = "\u202f", "\u00a0"  # spaces that do not break


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (None, 6, None),
        (math.nan, 6, None),
        (-math.inf, 6, None),
        (0.12345678, 6, 0.123457),
        (0.12345678, 2, 0.12),
        (123456789, 6, 123457000),
        (-2.0, 6, -2),
        (0.0, 6, 0),
        (9.99999e14, 6, 999999000000000),
        (1e15, 6, 1e15),
        (-1e15, 6, -1e15),
        (1.5e15, 6, 1.5e15),
        (1e300, 6, 1e300),
    ],
)
def test_a_plain_number_is_short_and_whole_below_1e15(value, digits, expected):
    found = numbers.plain(value, digits)
    assert found == expected
    assert type(found) is type(expected)


def test_six_digits_are_kept_unless_asked_otherwise():
    assert numbers.plain(1 / 3) == 0.333333
    assert numbers.plain_list([1 / 3, math.inf, 2.0]) == [0.333333, None, 2]
    assert numbers.plain_list([1 / 3, 2 / 3], 2) == [0.33, 0.67]


@pytest.mark.parametrize(
    ("n", "most", "expected"),
    [
        (0, 4, []),
        (4, 4, [0, 1, 2, 3]),
        (5, 4, [0, 4]),
        (5, 1, [0]),
        (100, 6, [0, 9, 50, 99]),
        (100, 7, [0, 9, 50, 99]),
        (1000, 8, [0, 9, 99, 333, 666, 999]),
    ],
)
def test_thinned_is_half_in_equal_ratios_and_half_even(n, most, expected):
    assert numbers.thin(n, most).tolist() == expected


@pytest.mark.parametrize(
    ("n", "most", "expected"),
    [(0, 3, []), (3, 3, [0, 1, 2]), (4, 3, [0, 2, 3]), (10, 4, [0, 3, 6, 9]), (7, 1, [0])],
)
def test_spread_is_even_with_both_ends(n, most, expected):
    assert numbers.spread(n, most).tolist() == expected


# ---------------------------------------------------------------- histograms


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (1.0, 1.0),
        (1 + 5e-10, 1.0),
        (1 + 1.5e-9, 2.0),
        (1 / (1 - 1e-9), 1.0),
        (2.0, 2.0),
        (2.1, 5.0),
        (5.0, 5.0),
        (5.1, 10.0),
        (9.0, 10.0),
        (0.03, 0.05),
        (0.0011, 0.002),
        (3e-7, 5e-7),
        (1.7e6, 2e6),
    ],
)
def test_nice_is_the_next_1_2_or_5(width, expected):
    assert numbers.round_up(width) == expected


def test_the_bound_of_nice_is_met_exactly():
    assert (1 / (1 - 1e-9)) * (1 - 1e-9) == 1.0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_every_group_is_counted_between_the_same_edges(scale):
    groups = [scale * np.array([0.0, 0.5, 1.5, 3.5]), scale * np.array([1.0, np.nan, np.inf, 3.0])]
    found = numbers.histogram(groups, bins=4)
    assert found["edges"] == pytest.approx([0, scale, 2 * scale, 3 * scale, 4 * scale])
    assert found["counts"] == [[2, 1, 0, 1], [0, 1, 0, 1]]
    assert found["names"] == {}


def test_a_value_on_the_last_edge_opens_another_bin():
    found = numbers.histogram([np.array([-1.0, 3.0])], bins=4)
    assert found["edges"] == [-1, 0, 1, 2, 3, 4]
    assert found["counts"] == [[1, 0, 0, 0, 1]]


def test_seventy_bins_are_usual():
    assert numbers.histogram([np.array([0.0, 140.0])])["edges"] == list(range(0, 143, 2))
    assert numbers.histogram([np.array([0.0, 141.0])])["edges"] == list(range(0, 146, 5))


def test_the_first_edge_is_not_above_the_smallest_value():
    found = numbers.histogram([np.array([-0.5, 0.5, 3.5])], bins=4)
    assert found == {"edges": [-1, 0, 1, 2, 3, 4], "counts": [[1, 1, 0, 0, 1]], "names": {}}


def test_what_is_far_does_not_depend_on_where_zero_is():
    found = numbers.histogram([100 + spread_out(-2.0, 2.0)], bins=5)
    assert found["edges"] == pytest.approx(100 + np.linspace(0, 1.2, 7))
    assert set(found["names"]) == {"0", "5"}


def spread_out(lowest, highest, scale=1.0):
    """501 values; their quantiles of 0.2 and 99.8 % are 0 and 1, the ends lie farther out."""
    inside = np.concatenate([[0.0], np.linspace(0.31, 0.705, 497), [1.0]])
    return scale * np.concatenate([[lowest], inside, [highest]])


def test_three_times_the_usual_range_is_not_far():
    found = numbers.histogram([spread_out(-1.0, 2.0)], bins=3)
    assert found["edges"] == [-1, 0, 1, 2, 3]
    assert found["counts"] == [[1, 498, 1, 1]]
    assert found["names"] == {}


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_what_is_farther_out_is_counted_in_the_last_bins(scale):
    found = numbers.histogram([spread_out(-2.0, 2.0, scale)], bins=5)
    assert found["edges"] == pytest.approx(scale * np.linspace(0, 1.2, 7))
    counts = np.histogram(spread_out(0.0, 1.1), np.linspace(0, 1.2, 7))[0]
    assert found["counts"] == [counts.tolist()]
    assert found["names"] == {
        "0": f"below {numbers.text(found['edges'][1])}",
        "5": f"above {numbers.text(found['edges'][-2])}",
    }


def test_only_the_end_with_far_values_is_named():
    low = numbers.histogram([spread_out(-10.0, 1.0)], bins=5)
    assert low["names"] == {"0": "below 0.2"}
    assert low["counts"][0][0] == 2
    high = numbers.histogram([spread_out(0.0, 10.0)], bins=5)
    assert high["names"] == {"5": "above 1"}
    assert high["counts"][0][5] == 2


def test_a_value_on_the_outermost_edge_is_not_beyond_it():
    found = numbers.histogram([spread_out(-10.0, 6 * 0.2)], bins=5)
    assert found["edges"][-1] == 1.2
    assert list(found["names"]) == ["0"]


def test_where_nearly_all_values_are_one_the_others_are_not_cut_off():
    found = numbers.histogram([np.append(np.zeros(1000), 7.0)], bins=7)
    assert found["edges"] == list(range(9))
    assert found["counts"] == [[1000, 0, 0, 0, 0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("values", "edges", "counts"),
    [
        ([], [0, 0.02], [0]),
        ([np.nan], [0, 0.02], [0]),
        ([0.0], [0, 0.02], [1]),
        ([1.5], [1.5, 1.55], [1]),
        ([-3.0, -3.0], [-3, -2.95], [2]),
        ([3e6], [3e6, 3.05e6], [1]),
    ],
)
def test_a_single_value_has_a_single_bin(values, edges, counts):
    found = numbers.histogram([np.array(values)])
    assert found == {"edges": edges, "counts": [counts], "names": {}}


# ---------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "–"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (0, "0"),
        (9999, "9999"),
        (10_000, f"10{THIN}000"),
        (-12345, f"−12{THIN}345"),
        (10_000.5, f"10{THIN}000.5"),
        (-10_000.5, f"−10{THIN}000.5"),
        (123456.78, f"123{THIN}456.8"),
        (1_234_567.8, f"1{THIN}234{THIN}568"),
        (1e15, f"1{THIN}000{THIN}000{THIN}000{THIN}000{THIN}000"),
        (9999.4, "9999"),
        (0.00012345678, "0.0001235"),
        (-1e-7, "−1e-07"),
        (np.float32(0.5), "0.5"),
    ],
)
def test_numbers_as_text(value, shown):
    assert numbers.text(value) == shown


def test_digits_of_text_may_be_chosen():
    assert numbers.text(0.123456789, 8) == "0.12345679"
    assert numbers.text(0.123456789) == "0.1235"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "10⁰"),
        (0.001, "10⁻³"),
        (1e-17, "10⁻¹⁷"),
        (1000.0, "10³"),
        (2e4, "2·10⁴"),
        (0.03, "3·10⁻²"),
        (0.0099999, "10⁻²"),
        (1e6 / 3, "3.33·10⁵"),
    ],
)
def test_ticks_of_logarithmic_axes_are_powers_of_ten(value, shown):
    assert numbers.power_text(value) == shown


def test_bins_are_named_by_their_edges_unless_they_have_a_name():
    chart = {"edges": [0, 0.5, 20000, 30000], "names": {"2": "above 20"}}
    assert [numbers.bin_name(chart, i) for i in range(3)] == [
        *("0 to 0.5", f"0.5 to 20{THIN}000", "above 20")
    ]


def test_a_class_is_shown_with_nine_digits():
    assert [numbers.label(v) for v in (1.0, -2.5, 123456789.0, 0.1)] == [
        *("1", "-2.5", "123456789", "0.1")
    ]


@pytest.mark.parametrize(
    ("fraction", "up", "shown"),
    [
        (math.inf, False, "∞ %"),
        (math.nan, True, "∞ %"),
        (0.0, False, "0 %"),
        (0.0, True, "0 %"),
        (1e-3, False, f"0.1{HARD}%"),
        (1.24e-3, False, f"0.12{HARD}%"),
        (1.24e-3, True, f"0.13{HARD}%"),
        (1e-12, False, f"0.0000000001{HARD}%"),
        (1e-12, True, f"0.000001{HARD}%"),
        (3e-8, True, f"0.000003{HARD}%"),
        (0.12 + 5e-12, True, f"12{HARD}%"),
        (0.12 + 1.5e-11, True, f"13{HARD}%"),
        (0.996, True, f"100{HARD}%"),
        (1.0, True, f"100{HARD}%"),
        (-0.0512, False, f"-5.1{HARD}%"),
    ],
)
def test_percent_has_two_digits_and_a_bound_is_rounded_up(fraction, up, shown):
    assert numbers.percent(fraction, up) == shown


def test_percent_rounds_to_the_nearest_unless_it_is_a_bound():
    assert numbers.percent(0.121) == f"12{HARD}%"


def test_share_has_two_decimals():
    assert numbers.share(2, 3) == f"66.67{HARD}%"
    assert numbers.share(0, 7) == f"0.00{HARD}%"
    assert numbers.share(0, 0) == "–"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "< 1 ms"),
        (0.0009, "< 1 ms"),
        (0.001, "1 ms"),
        (0.0015, "1.5 ms"),
        (0.0999, "100 ms"),
        (0.1, "0.1 s"),
        (0.15, "0.15 s"),
        (1.234, "1.23 s"),
        (12.34, "12.3 s"),
        (59.94, "59.9 s"),
        (60.0, "1 min| 0 s"),
        (75.4, "1 min| 15 s"),
        (119.7, "2 min| 0 s"),
        (3599.4, "59 min| 59 s"),
        (3600.0, "1 h| 0 min"),
        (2 * 3600 + 185, "2 h| 3 min"),
        (100 * 3600, "100 h| 0 min"),
    ],
)
def test_durations(seconds, shown):
    hard = shown.replace("| ", "|").replace(" ", HARD).replace("|", " ")
    if shown.startswith("<"):
        hard = f"< 1{HARD}ms"
    assert numbers.duration(seconds) == hard
