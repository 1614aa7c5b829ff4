"""Certificates in model files: every entry is checked, and what is wrong is named."""

import sys

import pytest
from nesvm_jit import FormatError
from nesvm_jit.files.model.certificates import STATUSES, require_certificates

pytestmark = pytest.mark.pure

FINE = {
    "classes": [1.0, -1],
    "objective": 2.5,
    "dual_objective": 2.0,
    "gap": 0.5,
    "iterations": 3,
    "solver": "newton",
    "status": "converged",
}
HUGE = 10**400  # a whole number that no float holds


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"classes": [3]},
        {"classes": [1, 2.5]},
        {"objective": sys.float_info.max},
        {"objective": -sys.float_info.max},
        {"objective": 7},
        {"dual_objective": float("-inf")},
        {"gap": float("inf")},
        {"gap": 0},
        {"iterations": 0},
        *({"status": status} for status in STATUSES),
    ],
)
def test_certificates_as_we_write_them_are_taken(change):
    assert require_certificates([FINE, {**FINE, **change}]) is None


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("classes", ([], [1, 2, 3], (1, 2), 1, None, [1, "2"], [True, 1], [1, float("nan")])),
        ("objective", (None, "1", True, float("inf"), float("nan"), HUGE, [1.0])),
        ("dual_objective", (None, "1", False, float("nan"), HUGE)),
        ("gap", (None, "inf", True, float("nan"), -HUGE)),
        ("iterations", (None, 1.0, True, "3")),
        ("solver", (None, "", "a b", 3, ["newton"])),
        ("status", (None, "done", "Converged", 1)),
    ],
)
def test_each_entry_of_a_certificate_is_needed_and_checked(key, values):
    message = f"the certificate in the model is damaged: no usable {key!r}"
    left_out = {k: v for k, v in FINE.items() if k != key}
    for wrong in (left_out, *({**FINE, key: value} for value in values)):
        with pytest.raises(FormatError) as e:
            require_certificates([FINE, wrong])
        assert str(e.value) == message


@pytest.mark.parametrize(
    "problems", [None, [], {}, (FINE,), FINE, "x", [None], [[FINE]], [FINE, 3]]
)
def test_certificates_are_a_list_of_objects(problems):
    with pytest.raises(FormatError) as e:
        require_certificates(problems)
    assert str(e.value) == "the certificate in the model is damaged: no usable 'classes'"
