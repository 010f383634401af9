"""Several language models learn one task together and stand alone afterwards (HACRL, HACPO)."""
