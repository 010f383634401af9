"""How good agents are: benchmarks, held-out problems, comparisons."""
