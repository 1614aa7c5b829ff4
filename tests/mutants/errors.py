class MutantsError(Exception):
    """What was asked for cannot be done; the message is one line for the user."""
