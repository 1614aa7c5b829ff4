"""The paper's three machines behind one interface."""

from .base import Model, Smoothing
from .csvm import CSvm
from .lpsvm import LpSvm
from .lssvm import LsSvm

MODELS: dict[str, type[Model]] = {m.name: m for m in (CSvm, LpSvm, LsSvm)}

__all__ = ["MODELS", "CSvm", "LpSvm", "LsSvm", "Model", "Smoothing"]
