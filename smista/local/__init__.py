"""The user's machine: places, credentials, configuration files and the router's process."""
