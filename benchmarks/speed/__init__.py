"""How fast hacrl is, side by side with TRL and with plain `generate`. Run by `make bench`."""
