"""A launcher of processes, with the faulty plugins installed like packages."""

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.core.distributions import offer
from tests.faults import processes
from tests.faults.harness import Lab

OFFERS = """
[rlprof.tools]
faulty = faulty:Faulty
anywhere = faulty:FaultyAnywhere

[rlprof.engines]
mini = rlprof_mini:Mini
moody = faulty_engine:Moody
"""


def pytest_itemcollected(item):
    """Mark the tests of this folder as slow, because each starts processes."""
    item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", name="_launcher")
def _start_launcher(tmp_path_factory):
    site = tmp_path_factory.mktemp("site")
    offer(site, "faulty", OFFERS)
    launcher = processes.Launcher(site)
    yield launcher
    launcher.close()


@pytest.fixture(scope="session", name="_ahead")
def _run_ahead(request, tmp_path_factory, _launcher):
    """Run the tests of this folder a few at a time, because each mostly waits."""

    def run(item, home):
        params = item.callspec.params if hasattr(item, "callspec") else {}
        try:
            item.function(Lab(home, _launcher), **params)
        finally:
            processes.end_all(home)

    items = [item for item in request.session.items if "lab" in item.fixturenames]
    with ThreadPoolExecutor(4) as pool:
        yield {
            item.nodeid: pool.submit(run, item, tmp_path_factory.mktemp("lab")) for item in items
        }
        pool.shutdown(cancel_futures=True)


@pytest.fixture(name="lab")
def _lab(request, _ahead):
    """Return the future of this test, which is running ahead; the test itself gets a Lab."""
    return _ahead[request.node.nodeid]


def pytest_pyfunc_call(pyfuncitem):
    """Wait for a test that runs ahead instead of calling it."""
    begun = pyfuncitem.funcargs.get("lab")
    if not isinstance(begun, Future):
        return None
    begun.result()
    return True
