"""What people look at: one page about one or several runs."""

PAGE = "report.html"
BROWSE = 24
"""Prompts of each run that can be browsed, by default."""
