"""The `nesvm-jit` command: parse, make one library call, print one result."""

import contextlib
import os
import sys
from typing import Any, NoReturn

import click

from .. import __version__
from ..errors import NesvmError
from ..signals import asked_to_end, exit_status, watched
from .certify import certify
from .completion import completion
from .convert import convert
from .info import info
from .path import path
from .predict import predict
from .train import train
from .warmup import warmup

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """A group that prints one line at Ctrl-C; Click would print an empty one, too."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as e:
            if sys.stderr.isatty():  # the terminal has printed ^C
                click.echo(err=True)
            raise click.Abort(*e.args) from None


@click.group(cls=Commands, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="nesvm-jit")
def command() -> None:
    """Support vector machines with certified accuracy, compiled by Numba.

    \b
    Examples:
      nesvm-jit train a9a                     train, write a9a.model, print the certified gap
      nesvm-jit predict a9a.t a9a.model out   write labels to `out`, print the accuracy
      nesvm-jit path a9a -o a9a.model         try seven values of C, train with the best
      nesvm-jit COMMAND --help                show all options, with examples
    """


for _command in (train, predict, path, info, certify, convert, warmup, completion):
    command.add_command(_command)


@watched()
def main() -> None:
    """Run the command. An error is one line on standard error, never a traceback."""
    _mend_streams()
    try:
        command(prog_name="nesvm-jit", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as e:
        click.echo(e.ctx.get_help() if e.ctx else "", err=True)
        sys.exit(2)
    except (click.exceptions.Abort, KeyboardInterrupt) as e:
        fail("; ".join(["interrupted", *map(str, e.args)]), exit_status())
    except click.ClickException as e:
        fail(e.format_message(), e.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except NesvmError as e:
        fail(str(e), 1)
    except OSError as e:  # of a standard stream: errors of files are NesvmError, with their names
        code = exit_status() if asked_to_end() else 1  # with a signal, a terminal was closed
        fail(f"{e.filename or '<standard output>'}: {e.strerror or e}", code)
    except MemoryError:
        fail("out of memory", 1)


def _mend_streams() -> None:
    """Replace standard streams that are closed by empty ones, and escape characters that the
    encoding of standard output lacks."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def fail(message: str, code: int) -> NoReturn:
    """End the program with one line on standard error."""
    line = " ".join(message.split())
    with contextlib.suppress(OSError):  # a terminal that was closed
        print(f"nesvm-jit: {line}", file=sys.stderr)
    sys.exit(code)
