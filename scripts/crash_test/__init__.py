"""Kills runs at random moments and sees that they end as if nothing had happened."""
