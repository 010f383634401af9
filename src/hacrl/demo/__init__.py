"""The embedded demo: two tiny language models and the arithmetic task they learn together."""
