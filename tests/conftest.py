"""What every test may ask for: the shared models, qemu, and how much of the grids to run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SLOW_REASON = "slow; `make test-all` runs it"

_QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("sample", max_examples=20, deadline=None, derandomize=True, suppress_health_check=_QUIET)
settings.register_profile("all", max_examples=300, deadline=None, suppress_health_check=_QUIET)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run whole grids and slow tests instead of samples")
    parser.addoption("--refresh-goldens", action="store_true", help="rewrite golden files instead of comparing")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--all"):
        os.environ["HEXQDQ_TEST_ALL"] = "1"
    settings.load_profile("all" if os.environ.get("HEXQDQ_TEST_ALL") == "1" else "sample")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("HEXQDQ_TEST_ALL") == "1":
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason=SLOW_REASON))


def shared_folder() -> Path:
    """The folder of development models and data: HEXQDQ_SHARED, else ``../shared``."""
    return Path(os.environ.get("HEXQDQ_SHARED") or ROOT.parent / "shared")


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def run_all() -> bool:
    """Whether whole grids are asked for."""
    return os.environ.get("HEXQDQ_TEST_ALL") == "1"


@pytest.fixture(scope="session")
def refresh_goldens(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--refresh-goldens"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with ``models/`` and ``data/``; skips where it is not there."""
    folder = shared_folder()
    if not (folder / "models").is_dir():
        pytest.skip(f"{folder} has no models; set HEXQDQ_SHARED to the folder of development models")
    return folder


@pytest.fixture(scope="session")
def qemu() -> str:
    """The path of qemu-hexagon; without it the test skips, where CI=true it fails."""
    path = shutil.which("qemu-hexagon")
    if path is not None:
        return path
    message = "qemu-hexagon is not on PATH; install qemu-user to run Hexagon code"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)
