"""Errors that a user can cause and fix."""


class UserError(Exception):
    """A mistake in a recipe, data file, model or reward.

    The message is one or two lines: what is wrong (naming the key, the file and row, or the agent)
    and what to do about it. The command line prints it without a traceback and exits with code 2.
    """


class NotFinite(UserError):  # noqa: N818 - says what the numbers are
    """A model computes what is no number. Whoever knows of checkpoints adds the last good one."""


def first_line(error: BaseException) -> str:
    """What a library's error says in its first line, to be quoted inside a message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
