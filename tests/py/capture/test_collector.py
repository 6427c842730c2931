"""The garbage collector does not run during captures, is as the program left it where the backend runs, and afterwards."""

import gc
import sys

import pytest

torch = pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

import pellucid


def chain(x):
    for _ in range(300):
        x = torch.relu(x + 1)
    return x


@pytest.fixture(autouse=True)
def enabled():
    gc.enable()
    yield
    gc.enable()


@pytest.fixture
def collections():
    """The phases that callbacks of the collector see; each new object is a reason to collect."""
    seen = []
    threshold = gc.get_threshold()
    callback = lambda phase, info: seen.append(phase)
    gc.callbacks.append(callback)
    gc.set_threshold(1)
    yield seen
    gc.set_threshold(*threshold)
    gc.callbacks.remove(callback)


@pytest.mark.parametrize("fails", [False, True])
def test_captures_do_not_collect_but_backends_may(collections, fails):
    marks = []

    def backend(gm, inputs):
        marks.append(len(collections))
        [KeyError() for _ in range(10)]  # lists would come from those that were freed, and ask for no collection
        marks.append(len(collections))
        if fails:
            raise ValueError("no")
        return gm.forward

    captured = pellucid.optimize(chain, backend=backend)
    x = torch.ones(3)
    start = len(collections)
    if fails:
        with pytest.raises(pellucid.exc.BackendCompilerFailed):
            captured(x)
    else:
        captured(x)
    before, after = marks
    assert before - start < 100  # 600 operators are thousands of objects
    assert after > before  # the backend is not ours to hold up
    assert gc.isenabled()


def test_the_collector_stays_off_where_it_was_off():
    gc.disable()
    seen = []

    def backend(gm, inputs):
        seen.append(gc.isenabled())
        return gm.forward

    pellucid.optimize(chain, backend=backend)(torch.ones(3))
    assert seen == [False] and not gc.isenabled()


@pytest.mark.parametrize("leave", [gc.disable, gc.enable], ids=["off", "on"])
@pytest.mark.parametrize("before", [gc.disable, gc.enable], ids=["was off", "was on"])
def test_what_a_backend_does_to_the_collector_stays(before, leave):
    def backend(gm, inputs):
        leave()
        return gm.forward

    before()
    pellucid.optimize(chain, backend=backend)(torch.ones(3))
    assert gc.isenabled() == (leave is gc.enable)


def test_captures_within_a_backend_and_in_threads_leave_it_on():
    import threading

    def backend(gm, inputs):
        thread = threading.Thread(target=pellucid.optimize(lambda y: y + 1, backend=lambda gm, _: gm.forward), args=(torch.ones(2),))
        thread.start()
        thread.join()
        return gm.forward

    pellucid.optimize(chain, backend=backend)(torch.ones(3))
    assert gc.isenabled()


def test_a_graph_break_and_a_frame_that_is_skipped_leave_it_on():
    def breaks(x):
        print("", end="")
        return x + 1 if x.sum() > 0 else x - 1

    pellucid.optimize(breaks, backend="eager")(torch.ones(2))

    def generator(x):
        yield x + 1

    list(pellucid.optimize(generator, backend="eager")(torch.ones(2)))
    assert gc.isenabled()
