"""What people look at: one page about one or several runs."""
