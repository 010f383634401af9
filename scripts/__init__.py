"""How the bundled assets and the real models were made; not part of the installed package."""
