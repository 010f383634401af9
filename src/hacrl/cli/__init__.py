"""The command line: one file a command."""

from hacrl.cli.app import app, main

__all__ = ["app", "main"]
