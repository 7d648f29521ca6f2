"""The configuration of a command: read, and, if a project brings its own, asked about once."""

from cli.approvals import Terminal, open_terminal
from cli.surroundings import Surroundings
from cli.visible import echo, visible_line
from smista.local.config_files import ClientConfig, Configuration, read_configuration
from smista.local.credentials import Credentials
from smista.local.trust import remember

_FOREIGN = (
    " was not written by smista for you, so the keys in it are not used; "
    "store your own: smista login, smista credentials set"
)
QUESTION = "trust this file as it is now?"


async def configured(here: Surroundings) -> ClientConfig:
    """Return what counts for a command in this project. Raises InvalidConfig.

    An unknown project file is put before the user; where nobody can answer, what it loosens or
    redirects is left out, and that is said.
    """
    read = read_configuration(here.root, here.places)
    terminal = open_terminal() if read.open_question else None
    if terminal is not None:
        await decide(here, read, terminal)
        read = read_configuration(here.root, here.places)
    config, notices = read.checked()
    for notice in notices:
        echo(visible_line(notice), err=True)
    foreign = Credentials(project=here.root, places=here.places).foreign()
    if foreign is not None:
        echo(visible_line(f"warning: {foreign}{_FOREIGN}"), err=True)
    return ClientConfig(config)


async def decide(here: Surroundings, read: Configuration, terminal: Terminal) -> bool:
    """Put what the project file loosens or redirects before the user, and keep the answer."""
    echo(put(read), nl=False, err=True)
    trusted = await terminal.ask(QUESTION)
    keep(here, read, trusted=trusted)
    return trusted


def keep(here: Surroundings, read: Configuration, *, trusted: bool) -> None:
    """Remember the word on the very bytes that were read."""
    if read.project.source.digest:
        remember(here.places, read.file, read.project.source.digest, trusted=trusted)


def put(read: Configuration) -> str:
    """Return the text of the question: all that would loosen or redirect, and nothing else."""
    lines = "".join(f"  {visible_line(line)}\n" for line in read.withheld)
    name = visible_line(str(read.file))
    return f"{name} comes with this project and would change your policy:\n{lines}"
