"""Importing this loads what reads formulas and quantities: the parser and the table of units.

Both load their parts when they are first used, so they are used here.
"""

from __future__ import annotations

from hacrl.verify.comparison import same_answer

same_answer(r"\frac{x}{2}", r"5\text{ cm}")
