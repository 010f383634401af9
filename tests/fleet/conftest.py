"""One small Ray cluster on this machine for all tests of a process."""

from __future__ import annotations

import os

# Read when Ray is imported. All processes of a cluster must agree on the first; the second keeps
# Ray from warning that its default will change.
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "1"

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def started_ray() -> Iterator[Any]:
    """The cluster, with one node. Fleets find it joined, and leave it so."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 8,
            "include_dashboard": False,
            "object_store_memory": 100 * 2**20,
        },
    )
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()
