"""The settings of the router process, frozen, with the defaults of *Configure the Router*.

Shapes only: `router_file` reads them, `router_checks` judges them.
"""

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_serializer

from smista.core.model_ref import Capabilities, Money


class Section(BaseModel):
    """A table of the file: frozen, silent about inputs, closed to unknown keys."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True
    )


class StorageMode(StrEnum):
    EMBEDDED = "embedded"
    REMOTE = "remote"


class StorageConfig(Section):
    """*path* is absolute once loaded; *url*, *username* and *password* are for remote mode."""

    engine: Literal["surrealdb"] = "surrealdb"
    mode: StorageMode = StorageMode.EMBEDDED
    path: str | None = None
    url: str | None = None
    username: str | None = None
    password: SecretStr | None = None
    namespace: str = "smista"
    database: str = "local"

    @field_serializer("password")
    def _never_written(self, value: SecretStr | None) -> None:
        return None


class AuthConfig(Section):
    token_ttl_seconds: int = Field(default=86_400, gt=0)
    api_key_version: str = Field(default="01", pattern=r"^[0-9]+$")
    local_bootstrap_enabled: bool = True


class LimitsConfig(Section):
    """Bytes and milliseconds. *orphan_grace_ms*: how long a turn outlives its client."""

    max_request_body_bytes: int = Field(default=10_485_760, ge=0)
    max_context_bytes: int = Field(default=5_242_880, ge=0)
    max_concurrent_requests: int = Field(default=8, gt=0)
    request_timeout_ms: int = Field(default=120_000, ge=0)
    provider_timeout_ms: int = Field(default=180_000, ge=0)
    tool_timeout_ms: int = Field(default=60_000, ge=0)
    orphan_grace_ms: int = Field(default=10_000, ge=0)


class RateLimitConfig(Section):
    enabled: bool = True
    period_ms: int = Field(default=10, ge=0)
    burst_size: int = Field(default=200, ge=0)
    trust_proxy_headers: bool = False


class LoggingConfig(Section):
    level: str = "info"
    format: str = "compact"
    redact_secrets: bool = True


class OpenTelemetryConfig(Section):
    enabled: bool = False
    endpoint: str = Field(default="http://localhost:4317", pattern=r"^https?://[^\s/]+")
    protocol: Literal["grpc", "http-binary"] = "grpc"
    service_name: str = Field(default="smista-router", min_length=1)
    sample_ratio: float = Field(default=1.0, ge=0.0, le=1.0)


class CorsConfig(Section):
    enabled: bool = False
    allowed_origins: tuple[str, ...] = ()


class RetentionConfig(Section):
    """Days; 0 keeps for ever."""

    trace_retention_days: int = Field(default=90, ge=0)
    session_retention_days: int = Field(default=365, ge=0)
    archived_session_retention_days: int = Field(default=30, ge=0)
    cleanup_interval_seconds: int = Field(default=3_600, gt=0)


class OllamaConfig(Section):
    enabled: bool = False
    base_url: str = "http://127.0.0.1:11434"


class CompatCapabilities(Capabilities):
    """What an OpenAI-compatible model can do unless its table says otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    streaming: bool = True
    tools: bool = True
    json_output: bool = True
    system_prompt: bool = True
    memory: bool = True


class ModelConfig(Section):
    """The declared facts of one model of a named instance."""

    name: str = Field(min_length=1)
    max_context_tokens: int = Field(gt=0)
    display_name: str | None = None
    auth: Literal["none", "api_key", "optional_api_key"] = "none"
    max_output_tokens: int | None = Field(default=None, gt=0)
    capabilities: CompatCapabilities = CompatCapabilities()
    input_cost_per_million_tokens: Money | None = None
    output_cost_per_million_tokens: Money | None = None


class InstanceConfig(Section):
    """A provider as its table states it; *local* holds for all its models."""

    base_url: str | None = None
    local: bool = False
    display_name: str | None = None
    models: tuple[ModelConfig, ...] = ()


class PriceConfig(Section):
    """*model* is an exact id, or a prefix ending in `*`. USD per million tokens."""

    provider: str
    model: str = Field(min_length=1)
    input_cost_per_million_tokens: Money
    output_cost_per_million_tokens: Money
    cache_read_cost_per_million_tokens: Money | None = None
    cache_write_cost_per_million_tokens: Money | None = None


class RouterConfig(Section):
    """How the router process runs. Every default is that of *Configure the Router*."""

    host: str = "127.0.0.1"
    port: int = Field(default=7331, ge=0, le=65_535)
    allow_public: bool = False
    storage: StorageConfig = StorageConfig()
    auth: AuthConfig = AuthConfig()
    limits: LimitsConfig = LimitsConfig()
    rate_limit: RateLimitConfig = RateLimitConfig()
    logging: LoggingConfig = LoggingConfig()
    opentelemetry: OpenTelemetryConfig = OpenTelemetryConfig()
    cors: CorsConfig = CorsConfig()
    retention: RetentionConfig = RetentionConfig()
    ollama: OllamaConfig = OllamaConfig()
    providers: dict[str, InstanceConfig] = {}
    prices: tuple[PriceConfig, ...] = ()
