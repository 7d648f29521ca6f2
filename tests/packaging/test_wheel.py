"""The wheel, as a user gets it: sdist → wheel → a strange environment → `smista`."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from smista import __version__

ROOT = Path(__file__).parents[2]
DECOY = "raise SystemExit('the decoy {name} was imported')\n"


def run(*command: str | Path, cwd: Path) -> str:
    """Run *command* away from the checkout and return what it prints."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(kind: str, source: Path, target: Path) -> Path:
    run(sys.executable, "-P", "-m", "hatchling", "build", "-t", kind, "-d", target, cwd=source)
    (built,) = target.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("build")
    sdist = build("sdist", ROOT, work / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        archive.extractall(work)
    return build("wheel", work / sdist.name.removesuffix(".tar.gz"), work / "wheel")


@dataclass(frozen=True)
class Home:
    """An environment with nothing in it but smista and, by path, what smista depends on."""

    bin: Path
    packages: Path
    elsewhere: Path


@pytest.fixture
def home(tmp_path: Path, wheel: Path) -> Home:
    where = tmp_path / "a user's place"
    venv.create(where, with_pip=False, symlinks=True)
    scripts = where / "bin"
    packages = Path(
        sysconfig.get_path("purelib", "venv", vars={"base": str(where), "platbase": str(where)})
    )
    pip = (sys.executable, "-m", "pip", "--python", scripts / "python", "--no-cache-dir")
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=tmp_path)
    # A path file that was itself found by a path is not read: our editable install stays unseen.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    return Home(bin=scripts, packages=packages, elsewhere=elsewhere)


def plant(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(DECOY.format(name=name))


def test_the_wheel_has_one_top_level_name(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"smista", f"smista-{__version__}.dist-info"}
    assert {"smista/_bundle/cli/__init__.py", "smista/_bundle/actors/__init__.py"} <= set(names)


def test_the_wheel_carries_whatever_the_code_reads_beside_itself(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    kept = run("git", "ls-files", "smista", "actors", "cli", cwd=ROOT).splitlines()
    data = {name for name in kept if not name.endswith(".py")}
    assert {"smista/demo/default.toml", "smista/providers/facts.toml"} <= data & names
    assert {name if name in names else f"smista/_bundle/{name}" for name in data} <= names


def test_plain_python_finds_neither_actors_nor_cli(home: Home) -> None:
    question = "import importlib.util as u; print([u.find_spec(n) for n in ('actors', 'cli')])"
    assert run(home.bin / "python", "-c", question, cwd=home.elsewhere) == "[None, None]\n"


@pytest.mark.parametrize("command", [["smista"], ["python", "-P", "-m", "smista"]], ids=" ".join)
def test_smista_runs_its_own_code_among_strangers(home: Home, command: list[str]) -> None:
    plant(home.packages, "actors", "cli")
    (home.elsewhere / "trio.py").write_text(DECOY.format(name="trio"))
    plant(home.elsewhere, "smista", "actors", "cli")

    smista = (home.bin / command[0], *command[1:])
    assert run(*smista, "--version", cwd=home.elsewhere) == f"smista {__version__}\n"
    assert "Usage: smista" in run(*smista, "--help", cwd=home.elsewhere)


def test_facts_prices_and_the_script_of_the_demo_are_found_where_it_is_installed(
    home: Home,
) -> None:
    question = (
        "from smista.providers.facts import load_facts;"
        "from smista.demo.script import load_script;"
        "print(len(load_facts().efforts('gpt-6.2-sol')) > 0, len(load_script().rules) > 0)"
    )
    assert run(home.bin / "python", "-P", "-c", question, cwd=home.elsewhere) == "True True\n"
