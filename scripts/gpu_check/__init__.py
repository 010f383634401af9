"""Does training work on this machine's GPU?"""
