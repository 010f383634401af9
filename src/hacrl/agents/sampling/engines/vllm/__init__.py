"""Drawing responses with vLLM."""
