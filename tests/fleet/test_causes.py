"""What is said of an agent that is gone."""

from __future__ import annotations

import pytest
import torch
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    ActorUnschedulableError,
    GetTimeoutError,
    LocalRayletDiedError,
    NodeDiedError,
    ObjectLostError,
    ObjectStoreFullError,
    OutOfDiskError,
    OutOfMemoryError,
    OwnerDiedError,
    RayActorError,
    RayChannelTimeoutError,
    RayError,
    RaySystemError,
    RayTaskError,
    RpcError,
    RuntimeEnvSetupError,
    TaskPlacementGroupRemoved,
    WorkerCrashedError,
)

from hacrl.errors import UserError
from hacrl.fleet.losses import Loss, is_loss, likely_cause, own_error
from hacrl.fleet.ranks import blame
from hacrl.fleet.worker import NotLoaded, Place, RankSilent


def raised_there(cause: Exception) -> RayTaskError:
    """As Ray passes on what an agent raises."""
    return RayTaskError("learn", "traceback", cause, "worker", 1, "host")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (GetTimeoutError("x"), "no answer within 7 s, and it was ended; it hung, or fleet.seconds"),
        (OutOfMemoryError("x"), "the machine ran low on memory, and Ray ended the process"),
        (
            raised_there(torch.OutOfMemoryError("CUDA out of memory. Tried 2 GiB\nmore")),
            "out of memory (CUDA out of memory. Tried 2 GiB)",
        ),
        (raised_there(NotLoaded()), "its process had ended since the phase before"),
        (
            ActorUnavailableError("RpcError: Socket closed rpc_code: 14", b"0" * 16),
            "its process ended at once, most often killed by the system for lack of memory",
        ),
        (
            raised_there(NodeDiedError("what a call needed is gone")),
            "its node has left the cluster",
        ),
        (
            ActorDiedError(
                RayTaskError(
                    "Worker.__init__",
                    "ray::Worker\nModuleNotFoundError: No module named 'hacrl'",
                    ModuleNotFoundError("No module named 'hacrl'"),
                    *("worker", 1, "host"),
                )
            ),
            "its process could not start (ModuleNotFoundError: No module named 'hacrl')",
        ),
        (RayError("something else\nat length"), "Ray could not reach it (RayError); its logs"),
    ],
)
def test_the_likely_cause_is_one_line(error: RayError, words: str) -> None:
    assert is_loss(error)
    said = likely_cause(error, 7.0, "fleet.seconds", node_alive=True)
    assert said.startswith(words)
    assert "\n" not in said
    assert "node has left" in likely_cause(error, 7.0, "fleet.seconds", node_alive=False)


MARK = "The actor 0a1b is unavailable. The task may or may not have been executed."


class UnheardError(RayError):
    """As a later version of Ray may have."""


@pytest.mark.parametrize(
    "error",
    [
        ActorUnavailableError(MARK, b"0" * 16),
        ActorDiedError(),
        RayActorError("0a", MARK),
        ActorUnschedulableError(MARK),
        LocalRayletDiedError(MARK),
        NodeDiedError(MARK),
        ObjectLostError("0a", None, MARK),
        OwnerDiedError("0a", None, MARK),
        ObjectStoreFullError(MARK),
        OutOfDiskError(MARK),
        OutOfMemoryError(MARK),
        RayChannelTimeoutError(MARK),
        RaySystemError(MARK),
        RpcError(MARK),
        RuntimeEnvSetupError(MARK),
        TaskPlacementGroupRemoved(MARK),
        WorkerCrashedError(MARK),
        GetTimeoutError(MARK),
        UnheardError(MARK),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_no_text_of_rays_stands_in_place_of_a_cause(error: RayError, wrapped: bool) -> None:
    if wrapped:
        error = raised_there(error)
    assert is_loss(error)
    said = likely_cause(error, 7.0, "fleet.seconds", node_alive=True)
    for words in ("may or may not", "0a1b", "actor", "\n", "died unexpectedly"):
        assert words not in said
    assert len(said) > 10


@pytest.mark.parametrize("cause", [UserError("agent kim: no"), OSError(28, "No space left")])
def test_an_error_of_the_agents_own_is_no_loss(cause: Exception) -> None:
    error = raised_there(cause)
    assert not is_loss(error)
    assert own_error(error) is cause


def test_a_bug_keeps_the_traceback_of_the_other_process() -> None:
    error = raised_there(ValueError("a bug"))
    assert not is_loss(error)
    assert own_error(error) is error


def test_a_loss_names_agent_place_phase_and_cause() -> None:
    place = Place("gpu-7", "0a1b", 4711, True)
    assert str(Loss("kim", place, "learn", "it hung")) == (
        "agent kim (process 4711 on gpu-7) was lost in learn: it hung"
    )
    assert "agent kim (not placed) was lost in start" in str(Loss("kim", None, "start", "x"))


SILENT = raised_there(RankSilent("[gloo] Connection closed by peer"))


@pytest.mark.parametrize(
    ("errors", "silent", "rank"),
    [
        ({0: SILENT, 2: ActorDiedError()}, [], 2),
        ({0: raised_there(NotLoaded()), 1: ActorDiedError()}, [], 1),
        ({2: raised_there(MemoryError())}, [0, 1], 2),
        ({0: SILENT}, [1], None),  # it may only have been slower to notice
        ({}, [1], 1),
        ({}, [0, 1], None),
    ],
)
def test_the_rank_to_blame_is_one_that_failed_by_itself(
    errors: dict[int, RayError], silent: list[int], rank: int | None
) -> None:
    failed = blame(errors, silent, 7.0)
    assert failed.rank == rank
    assert failed.error is errors[rank] if rank in errors else True
    said = likely_cause(failed.error, 7.0, "fleet.seconds", node_alive=True)
    if not errors:
        assert said.startswith("no answer within 7 s")
    elif rank is None:
        assert said == "one of its ranks was gone or too late ([gloo] Connection closed by peer)"
