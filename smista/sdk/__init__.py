"""The SDK: one method for each call of the HTTP API, and the driver of a whole run."""
