"""A model with its tokenizer: loading, encoding, log-probabilities."""
