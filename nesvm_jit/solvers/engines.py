"""The solvers of linear problems by their names."""

from dataclasses import replace

from . import auto, coordinate, gradient, newton

ENGINES = {
    "nesvm": gradient.GRADIENT,
    "homotopy": gradient.GRADIENT,
    "newton": newton.NEWTON,
    "coordinate": coordinate.COORDINATE,
    "chain": replace(coordinate.COORDINATE, begin=auto.begin_chain),  # then newton, by `auto`
}
