"""Whether a recipe fits its devices, found out before anything is loaded."""
