"""The command line: words in, calls of the SDK, text out."""
