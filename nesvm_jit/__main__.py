"""`python -m nesvm_jit` and the `nesvm-jit` command."""

import sys


def main() -> None:
    """Run the command; Ctrl-C while it is still being imported ends it as any later one does."""
    try:
        from .cli import main as run
    except KeyboardInterrupt:
        print("nesvm-jit: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
