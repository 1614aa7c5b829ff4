"""The `nesvm-jit` command: parse, make one library call, print one result."""

import os
import sys

import click

from .. import __version__
from ..errors import NesvmError
from .completion import completion
from .info import info
from .predict import predict
from .train import train
from .warmup import warmup

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT)
@click.version_option(__version__, prog_name="nesvm-jit")
def command():
    """Support vector machines with certified accuracy, compiled by Numba.

    \b
      nesvm-jit train a9a                     writes a9a.model, says how good it provably is
      nesvm-jit predict a9a.t a9a.model out   labels in `out`, accuracy on the screen
      nesvm-jit COMMAND --help                all options, with examples
    """


for _command in (train, predict, info, warmup, completion):
    command.add_command(_command)


def main():
    """Run the command; an error of the user's is one line on standard error, never a traceback."""
    try:
        command(standalone_mode=False)
    except click.exceptions.Exit as e:
        sys.exit(e.exit_code)
    except click.exceptions.NoArgsIsHelpError as e:
        click.echo(e.ctx.get_help() if e.ctx else "", err=True)
        sys.exit(2)
    except (click.exceptions.Abort, KeyboardInterrupt):
        fail("interrupted", 130)
    except click.ClickException as e:
        fail(e.format_message(), e.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (NesvmError, OSError) as e:
        fail(str(e), 1)
    except MemoryError:
        fail("out of memory", 1)


def fail(message: str, code: int) -> None:
    """End with one line on standard error."""
    line = " ".join(message.split())
    print(f"nesvm-jit: {line}", file=sys.stderr)
    sys.exit(code)
