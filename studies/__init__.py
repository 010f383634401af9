"""The paper's experiments at the size of a laptop: `python -m studies`."""
