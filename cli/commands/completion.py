"""`smista completion`: a script that completes the command line in the user's shell."""

import asyncclick as click

from cli.completion import SHELLS, script
from cli.visible import echo


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
async def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands, flags and @paths in SHELL.

    \b
    bash, in ~/.bashrc:                eval "$(smista completion bash)"
    zsh, in ~/.zshrc, after compinit:  eval "$(smista completion zsh)"
    fish: smista completion fish > ~/.config/fish/completions/smista.fish
    """
    root = ctx.find_root().command
    assert isinstance(root, click.Group)  # every command is below it
    echo(script(shell, root), nl=False)
