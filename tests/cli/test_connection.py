"""Whose router is asked, when nobody says."""

import pytest

from cli.connection import router_url, status_config
from smista.local.config_files import RouterConnection
from tests.cli.ground import surroundings


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (None, "http://127.0.0.1:7331"),
        ("port = 27331", "http://127.0.0.1:27331"),
        ('host = "0.0.0.0"', "http://127.0.0.1:7331"),
        ('host = "::1"\nport = 9', "http://[::1]:9"),
        ("port = 'broken'", "http://127.0.0.1:7331"),
    ],
)
def test_a_router_that_is_not_running_is_looked_for_where_it_would_run(tmp_path, settings, url):
    here = surroundings(tmp_path)
    if settings is not None:
        here.places.config.mkdir(parents=True)
        here.places.router_file.write_text(f"[router]\n{settings}\n")
    assert router_url(here, RouterConnection()) == url


def test_a_configured_router_comes_first(tmp_path):
    here = surroundings(tmp_path)
    assert router_url(here, RouterConnection(url="http://127.0.0.1:1")) == "http://127.0.0.1:1"


def test_a_router_is_not_waited_for_long_to_say_that_it_lives():
    patient = RouterConnection(request_timeout_ms=100_000)
    assert status_config("http://r", patient).request_timeout == 5
    hasty = RouterConnection(request_timeout_ms=1)
    assert status_config("http://r", hasty).request_timeout == 5
