"""From the pool of a step to optimizer updates."""
