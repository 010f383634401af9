"""Becomes another program under limits. Run as a script by `confine`; imports nothing of ours.

Arguments: the limits as JSON (`processor` in seconds, `memory` and `file` in bytes, `processes`;
and `announced`), then the program and its arguments. Exits as the program does, with 128 + n if
signal n ended it, or with 127 if it cannot be started. The file whose number `HACRL_BEGUN` holds is
closed when the program begins, or left to it if its beginning is announced.

Where Linux allows it, the program runs in namespaces of its own: without any network, and below a
first process of its own kind, so that whatever it starts ends with it.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000


def main() -> None:
    limits, argv = json.loads(sys.argv[1]), sys.argv[2:]
    begun = int(os.environ["HACRL_BEGUN"])
    if not limits["announced"]:
        del os.environ["HACRL_BEGUN"]
        os.set_inheritable(begun, False)
    parent = os.getppid()
    _die_with_parent()
    if os.getppid() != parent:
        os._exit(1)  # it died before we could ask to be told
    if _unshare():
        if child := os.fork():  # the first child is the first process of the new namespace
            _exit_as(child, begun)
        _die_with_parent()
        # Which is not the program itself, since the system keeps signals from a first process.
        if child := os.fork():
            _exit_as(child, begun)
        # Counted within the namespace. Elsewhere it would count all processes of the user.
        _limit(resource.RLIMIT_NPROC, limits["processes"])
    _limit(resource.RLIMIT_AS, limits["memory"])
    _limit(resource.RLIMIT_FSIZE, limits["file"])
    _limit(resource.RLIMIT_CPU, limits["processor"])  # in case no parent is left to end it
    _limit(resource.RLIMIT_CORE, 0)
    os.execvp(argv[0], argv)


def _exit_as(child: int, begun: int) -> None:
    """Wait for a child, and for whatever it leaves behind until then."""
    os.close(begun)
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _limit(kind: int, value: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # macOS lacks some, a lower hard limit stays
        resource.setrlimit(kind, (value, value))


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def _unshare() -> bool:
    """Enter namespaces of our own for users, processes and network; whether that was allowed."""
    if sys.platform != "linux":
        return False
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None).unshare(_CLONE_NEWUSER | _CLONE_NEWPID | _CLONE_NEWNET) != 0:
        return False
    with contextlib.suppress(OSError):  # without a name, files can still be used
        for name, line in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(line)
    return True


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.stderr.write(f"{sys.argv[2]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127)  # not 1, which would pass for a verdict
