"""How long the properties are tried: HYPOTHESIS_MAX_EXAMPLES each. Without it few, and the same ones every time, for `make test`."""

import os

from hypothesis import HealthCheck, settings

examples = os.environ.get("HYPOTHESIS_MAX_EXAMPLES")
settings.register_profile(
    "pellucid",
    max_examples=int(examples or 200),
    derandomize=examples is None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("pellucid")
