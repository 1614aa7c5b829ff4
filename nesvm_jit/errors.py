"""The errors users meet, each one line that says what was required and what arrived, and the one
warning of ours."""


class NesvmError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(NesvmError, ValueError):
    """An argument or a data set that cannot be used as it is."""


class FormatError(InputError):
    """A file that is not what it should be: ``file:line: what``."""


class NotCertifiedWarning(UserWarning):
    """A result that is there, but not proven to be within the tolerance."""
