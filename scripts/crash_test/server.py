"""What the server of the victims imports once; every run is forked from it within milliseconds."""

from hacrl.terminal import quieten_libraries

quieten_libraries()

import hacrl.agents.adapters  # noqa: E402
import hacrl.training  # noqa: E402, F401
