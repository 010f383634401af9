"""One agent against TRL on the same GPU."""
