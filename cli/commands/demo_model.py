"""`smista demo-model`: a deterministic model server on loopback, for tries and tests."""

from functools import partial
from pathlib import Path

import asyncclick as click
import trio

from cli.failures import BadUsage
from cli.visible import echo
from smista.demo.script import Script, ScriptError, load_script
from smista.demo.server import serve_demo_model


@click.command("demo-model")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="0 picks a free one.")
@click.option("--script", type=click.Path(path_type=Path, exists=True, dir_okay=False))
async def demo_model(port: int, script: Path | None) -> None:
    """Serve a scripted model until interrupted."""
    loaded = _loaded(script)
    async with trio.open_nursery() as nursery:
        bound = await nursery.start(partial(serve_demo_model, script=loaded, port=port))
        echo(f"demo model answers at http://127.0.0.1:{bound}/v1")


def _loaded(script: Path | None) -> Script:
    try:
        return load_script(script)
    except ScriptError as error:
        raise BadUsage(error.message) from error
