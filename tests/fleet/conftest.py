"""One small Ray cluster on this machine for all tests of a process."""

from __future__ import annotations

import os

# Read when Ray is imported. All processes of a cluster must agree on the first; the second keeps
# Ray from warning that its default will change.
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "1"
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - as an own Ray of a run has it

from collections.abc import Iterator
from typing import Any

import pytest

HEAD: dict[str, Any] = {
    "num_cpus": 8,
    "include_dashboard": False,
    "object_store_memory": 100 * 2**20,
    "_system_config": {
        # An idle process for each of so many cores would keep those that work from the real ones.
        "prestart_worker_first_driver": False,
        "enable_worker_prestart": False,
        # On a busy machine a process may need long to say that it is there.
        "worker_register_timeout_seconds": 600,
    },
}


def _started(tries: int = 4) -> Any:
    """Ray waits half a minute for its own processes, which a busy machine may exceed."""
    from ray.cluster_utils import Cluster

    for _ in range(tries - 1):
        try:
            return Cluster(initialize_head=True, head_node_args=HEAD)
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    return Cluster(initialize_head=True, head_node_args=HEAD)


@pytest.fixture(scope="session")
def started_ray() -> Iterator[Any]:
    """The cluster, with one node. Fleets find it joined, and leave it so."""
    import ray

    cluster = _started()
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()
