"""The mathematics of HACPO: pure functions that need torch alone."""
