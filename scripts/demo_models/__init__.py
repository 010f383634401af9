"""Makes the two tiny models and the problems of the demo: `python -m scripts.demo_models`."""
