"""One module per data set: NAMES, `file(name)` in NESVM_DATA, and `load(name)` -> (X, labels)."""

from ...common import data_file
from . import adult, digits, ijcnn1, mnist, news20bydate, scenes, w8a

_OF_NAME = {
    name: module
    for module in (adult, w8a, ijcnn1, news20bydate, mnist, digits, scenes)
    for name in module.NAMES
}


def load(name: str):
    """X and labels: −1 and +1, or classes."""
    return _OF_NAME[name].load(name)


def is_real(name: str) -> bool:
    """Whether the file is there; data of the same shape stand in for it otherwise."""
    return data_file(_OF_NAME[name].file(name)) is not None


def label(name: str) -> str:
    """The name to show."""
    return name if is_real(name) else f"synthetic {name}"
