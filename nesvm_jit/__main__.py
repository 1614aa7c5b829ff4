"""`python -m nesvm_jit` and the `nesvm-jit` command."""

import sys

from .signals import exit_status, watched


def main() -> None:
    """Run the command; a signal while it is still being imported ends it as any later one does."""
    with watched():
        try:
            from .cli import main as run
        except KeyboardInterrupt:
            print("nesvm-jit: interrupted", file=sys.stderr)
            sys.exit(exit_status())
        run()


if __name__ == "__main__":
    main()
