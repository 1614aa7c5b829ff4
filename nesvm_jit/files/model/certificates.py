"""Check the certificates in model files, which may hold anything."""

import math
import sys
from typing import Any

from ...errors import FormatError
from ...settings import STATUSES


def require_certificates(problems: Any) -> None:
    """Raise FormatError unless `problems` is a list with a certificate of every sub-problem."""
    listed = isinstance(problems, list) and problems
    for p in problems if listed else [None]:
        for key, fits in _CERTIFICATE.items():
            if not isinstance(p, dict) or not fits(p.get(key)):
                raise FormatError(f"the certificate in the model is damaged: no usable {key!r}")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _is_bound(value: Any) -> bool:
    return _is_number(value) or (type(value) is float and math.isinf(value))


_CERTIFICATE = {
    "classes": lambda v: isinstance(v, list) and len(v) in (1, 2) and all(map(_is_number, v)),
    "objective": _is_number,
    "dual_objective": _is_bound,
    "gap": _is_bound,
    "iterations": lambda v: type(v) is int,
    "solver": lambda v: isinstance(v, str) and v.isidentifier(),
    "status": lambda v: v in STATUSES,
}
