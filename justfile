# Called through ./dev, which puts .venv/bin first in PATH.

# list the recipes
_default:
    @just --list --unsorted

# start a router and a demo model, run one real prompt, show its trace
demo *args:
    @python tools/demo.py {{ args }}

# all tests, or the ones named
test *args:
    @python -m pytest {{ args }}

# what must be true before a change lands
check: lint types docs-check test

# time and memory of the main path, beside a baseline
bench *args:
    @python -m bench {{ args }}

# the same under load for longer
soak *args:
    @python -m bench.soak {{ args }}
    @python -m bench.looking_back --events 1000000

# our adapters against model servers that others wrote; needs a package index
interop:
    @python -m tools.interop

# format, lint and who may import whom
lint:
    @ruff format --check --quiet .
    @ruff check --quiet .
    @lint-imports --no-logo

# mypy and pyright, both strict
types:
    @mypy
    @pyright

# write the pages that are drawn from the code
docs:
    @python -m tools.docs

# fail if a drawn page is not what the code says
docs-check:
    @python -m tools.docs --check

# format, and mend what can be mended
fmt:
    @ruff format --quiet .
    @ruff check --fix .

# everything CI asks, then an sdist and a wheel in dist/
release-check: check
    @python -m hatchling build --clean
