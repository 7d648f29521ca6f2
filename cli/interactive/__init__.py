"""The interactive session: a prompt that stays usable while answers stream above it."""
