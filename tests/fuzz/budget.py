"""How long properties are tried. `make test`: a minute in all, from a fixed seed on. `make fuzz`: FUZZ_SECONDS, from FUZZ_SEED on.

`for_a_share(0.5)` above a `given` test runs it in rounds of a few examples, each from the next seed, until its share of the time is
spent. A failure names its seed: `FUZZ_SEED=n FUZZ_SECONDS=1` runs that round again.
"""

import os
import time

from hypothesis import HealthCheck, seed, settings

SECONDS = float(os.environ.get("FUZZ_SECONDS", 55))
SEED = int(os.environ.get("FUZZ_SEED", 0))


def for_a_share(share, examples=20):
    def decorate(test):
        limited = settings(
            max_examples=examples,
            database=None,
            deadline=None,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
            derandomize=False,
        )(test)

        def run():
            __tracebackhide__ = True
            end, number = time.monotonic() + share * SECONDS, SEED
            while number == SEED or time.monotonic() < end:
                try:
                    seed(number)(limited)()
                except BaseException as error:
                    error.add_note(f"FUZZ_SEED={number} FUZZ_SECONDS=1")
                    raise
                number += 1
            print(f"{test.__name__}: {(number - SEED) * examples} examples")

        run.__name__ = run.__qualname__ = test.__name__
        run.__doc__, run.__module__ = test.__doc__, test.__module__
        return run

    return decorate
