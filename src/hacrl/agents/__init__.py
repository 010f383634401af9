"""One agent: a language model that samples, learns and is saved. Knows nothing of the loop."""
