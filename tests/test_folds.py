"""Folds: stratified, balanced, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nesvm_jit import InputError
from nesvm_jit.machine.folds import stratified_folds

pytestmark = pytest.mark.pure

labels = st.lists(st.sampled_from([-1.0, 1.0, 0.5, 1e300, -7.25, -0.0]), min_size=2, max_size=60)


@given(labels, st.data(), st.integers(0, 2**63 - 1))
def test_classes_and_sizes_are_spread_as_equally_as_possible(y, data, seed):
    n_folds = data.draw(st.integers(2, len(y)))
    folds = stratified_folds(y, n_folds, seed)
    assert folds.dtype == np.int64
    assert folds.shape == (len(y),)
    for rows in (np.ones(len(y), bool), *(np.equal(y, label) for label in set(y))):
        counts = np.bincount(folds[rows], minlength=n_folds)
        assert len(counts) == n_folds
        assert np.ptp(counts) <= 1


def test_a_seed_decides_and_another_decides_otherwise():
    y = np.arange(100) % 3
    folds = stratified_folds(y, 5, 3)
    np.testing.assert_array_equal(folds, stratified_folds(list(y), 5, np.int64(3)))
    assert (folds != stratified_folds(y, 5, 4)).any()


def test_rows_in_order_do_not_stay_in_order():
    folds = stratified_folds(np.zeros(1000), 2, 0)
    assert 400 < (folds[1:] != folds[:-1]).sum() < 600


def test_what_cannot_be_folded():
    message = r"n_folds must be a whole number from 2 to 3 \(the number of rows\), got "
    for n_folds in (1, 0, -1, 4, 2.0, True, None):
        with pytest.raises(InputError, match=message):
            stratified_folds([1, 2, 3], n_folds, 0)
    for seed in (-1, 1.5, None, 2**63):
        with pytest.raises(InputError, match="seed must be a whole number from 0"):
            stratified_folds([1, 2, 3], 2, seed)
    with pytest.raises(InputError, match="y must be finite"):
        stratified_folds([1, np.nan, 3], 2, 0)
