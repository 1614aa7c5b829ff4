"""The errors that users see, and the warning. The message of an error is one line: what is
required, and what was given."""


class NesvmError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(NesvmError, ValueError):
    """An argument or a data set that cannot be used as it is."""


class FormatError(InputError):
    """A file that is not what it should be: ``file:line: what``."""


class NotCertifiedWarning(UserWarning):
    """A result is returned, but it is not proven to be within the tolerance."""
