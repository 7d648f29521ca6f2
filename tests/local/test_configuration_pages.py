"""What the pages for users say about configuration is what the code reads."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from smista.local.config_files import ConfigFile
from smista.local.router_config import RouterConfig
from smista.local.shapes import fit
from smista.local.toml_source import parse_source

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("configuration.md", "routing.md", "get-started.md")


def settings_of(model: type[BaseModel]) -> set[str]:
    """Return the name of every setting below *model*."""
    names: set[str] = set()
    for name, field in model.model_fields.items():
        names.add(name)
        for part in re.findall(r"smista\.[\w.]+", str(field.annotation)):
            module, _, kind = part.rpartition(".")
            found = getattr(__import__(module, fromlist=[kind]), kind)
            if isinstance(found, type) and issubclass(found, BaseModel):
                names |= settings_of(found)
    return names


@pytest.mark.parametrize("model", [ConfigFile, RouterConfig])
def test_every_setting_is_on_the_page(model: type[BaseModel]) -> None:
    page = (DOCS / "configuration.md").read_text()
    capabilities = {"streaming", "json_output", "system_prompt", "images", "reasoning"}
    model_facts = {"max_context_tokens", "max_output_tokens", "auth", "capabilities"}
    prices = {name for name in settings_of(model) if name.endswith("per_million_tokens")}
    elsewhere = capabilities | model_facts | prices | {"auth_helper"}
    missing = {
        name for name in settings_of(model) - elsewhere if not re.search(rf"\b{name}\b", page)
    }
    assert missing == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_sample_is_read_without_a_fault(page: str) -> None:
    samples = re.findall(r"```toml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert samples
    for sample in samples:
        source = parse_source(sample.encode(), page)
        assert source.faults == ()
        if "[router.providers" in sample:
            assert fit(RouterConfig, source.data["router"]) == ()
        else:
            assert fit(ConfigFile, source.data) == ()


def test_the_links_of_the_pages_lead_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)", (DOCS / page).read_text()):
            assert (DOCS / link).exists(), f"{page}: {link}"
