"""A pytest plugin for an environment without torch: what turns out to need it is skipped.

python -m pytest -p scripts.without_torch tests/config
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

_REASON = "needs torch"


def _lacks_torch(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ModuleNotFoundError):
        error = error.__cause__ or error.__context__
    return isinstance(error, ModuleNotFoundError) and error.name == "torch"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a file that cannot be imported without torch."""
    report = yield
    found = report.call.excinfo if hasattr(report, "call") else None
    if report.failed and found is not None and _lacks_torch(found.value):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, _REASON)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test that, or a fixture of which, imports torch."""
    report = yield
    if report.failed and call.excinfo is not None and _lacks_torch(call.excinfo.value):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, _REASON)
    return report
