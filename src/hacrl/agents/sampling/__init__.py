"""Drawing responses."""
