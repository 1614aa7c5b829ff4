"""`nesvm-jit completion`."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that teaches a shell to complete commands, options and their values.

    \b
    Examples:
      nesvm-jit completion bash >> ~/.bashrc
      nesvm-jit completion zsh >> ~/.zshrc
      nesvm-jit completion fish > ~/.config/fish/completions/nesvm-jit.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "nesvm-jit", "_NESVM_JIT_COMPLETE")
    click.echo(script.source())
