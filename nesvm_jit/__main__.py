"""`python -m nesvm_jit` and the `nesvm-jit` command."""

import sys

from .signals import exit_status, watched


def main() -> None:
    """Run the command. A signal during imports has the same effect as a later one."""
    try:
        with watched():
            try:
                from .cli import main as run
            except KeyboardInterrupt:
                print("nesvm-jit: interrupted", file=sys.stderr)
                sys.exit(exit_status())
            run()
    finally:
        # If an interrupt passed through exec or eval, as dataclasses use them, Python ends by
        # SIGINT whatever the exit status is; another eval resets this
        eval("0")


if __name__ == "__main__":
    main()
