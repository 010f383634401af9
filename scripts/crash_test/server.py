"""What the server of the victims imports once; every run is forked from it within milliseconds."""

from hacrl.console.terminal import quieten_libraries

quieten_libraries()

import transformers.optimization  # noqa: E402, F401

import hacrl.agents.policy.adapters  # noqa: E402
import hacrl.training.train  # noqa: E402, F401
