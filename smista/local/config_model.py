"""All tables of a `config.toml` as frozen values, the part that travels in requests included."""

from typing import ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from smista.core.policy import (
    ClassificationConfig,
    Frozen,
    Policy,
    PrivacyPolicy,
    RoutingPolicy,
    ToolsConfig,
)
from smista.core.request import LocalPreferences

POLICY_VERSION: Final = 1


class ProviderEntry(Frozen):
    """An enabled provider. *api_key* is a `${secret:NAME}` reference, never a key."""

    type: str | None = None
    api_key: str | None = None


class RouterConnection(Frozen):
    """How the command line reaches the router. *url* None: the router of this machine."""

    url: str | None = None
    auto_start: bool = False
    connect_timeout_ms: int = Field(default=5_000, gt=0)
    request_timeout_ms: int = Field(default=120_000, gt=0)
    auth_source: Literal["keychain", "env", "file", "helper"] = "keychain"
    auth_helper: str | None = None


class Preferences(Frozen):
    """*pass_variables*: commands of a model see these, though they are named like keys."""

    auto_apply: bool = False
    local_only: bool = False
    no_network: bool = False
    encrypt_sessions: bool = True
    pass_variables: tuple[str, ...] = ()

    def travelling(self) -> LocalPreferences:
        """Return the part a request carries."""
        return LocalPreferences(
            auto_apply=self.auto_apply, local_only=self.local_only, no_network=self.no_network
        )


class ConfigFile(BaseModel):
    """All tables of a `config.toml`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, hide_input_in_errors=True)

    providers: dict[str, ProviderEntry] = {}
    classification: ClassificationConfig = ClassificationConfig()
    routing: RoutingPolicy = RoutingPolicy()
    tools: ToolsConfig = ToolsConfig()
    privacy: PrivacyPolicy = PrivacyPolicy()
    router: RouterConnection = RouterConnection()
    local_preferences: Preferences = Preferences()

    def policy(self) -> Policy:
        """Return the block a request carries, word for word what was merged."""
        return Policy(
            version=POLICY_VERSION,
            source="merged",
            classification=self.classification,
            routing=self.routing,
            tools=self.tools,
            privacy=self.privacy,
        )
