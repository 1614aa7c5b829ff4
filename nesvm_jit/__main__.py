"""`python -m nesvm_jit` and the `nesvm-jit` command."""

import sys

from .signals import exit_status, watched


def main() -> None:
    """Run the command; a signal while it is still being imported ends it as any later one does."""
    try:
        with watched():
            try:
                from .cli import main as run
            except KeyboardInterrupt:
                print("nesvm-jit: interrupted", file=sys.stderr)
                sys.exit(exit_status())
            run()
    finally:
        # Python remembers an interrupt that has gone through text it compiled, as dataclasses are
        # made of, and would end by SIGINT whatever the exit status; the next text lets it forget
        eval("0")


if __name__ == "__main__":
    main()
