"""`python -m nesvm_jit` and the `nesvm-jit` command."""

from .cli import main

if __name__ == "__main__":
    main()
