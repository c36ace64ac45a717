"""Tests that need an NVIDIA GPU; elsewhere each is skipped with the reason."""

import device
import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = device.missing()
    for item in items:
        if reason and "gpu" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason=reason))
