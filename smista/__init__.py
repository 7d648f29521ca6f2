"""smista: routes each phase of AI work to a model by deterministic policy."""

__version__ = "0.1.0"
