"""config: defaults, checked writes, patch as context manager and as decorator, nesting, exceptions."""

import threading

import pytest

from pellucid import config


@pytest.fixture(autouse=True)
def defaults():
    config.reset()
    yield
    config.reset()


def test_defaults_agree_with_the_declarations():
    assert config.options() == {
        "cache_size_limit": 8,
        "backend_errors": "raise",
        "suppress_errors": True,
        "instruction_limit": 1_000_000,
        "assume_duck_shapes": True,
    }
    assert {name for name in config.__annotations__ if not name.startswith("_")} == set(config.options())


def test_values_lie_in_the_module_dictionary():
    config.cache_size_limit = 3
    assert vars(config)["cache_size_limit"] == 3


@pytest.mark.parametrize(
    "name, value",
    [
        ("cache_size_limit", 0),
        ("cache_size_limit", True),
        ("cache_size_limit", "8"),
        ("backend_errors", "ignore"),
        ("backend_errors", []),
        ("suppress_errors", 1),
    ],
)
def test_wrong_values_change_nothing(name, value):
    before = config.options()
    with pytest.raises(ValueError, match=f"pellucid.config.{name} must be"):
        setattr(config, name, value)
    with pytest.raises(ValueError):
        config.patch({name: value})
    assert config.options() == before


def test_unknown_names_are_errors_with_a_suggestion():
    with pytest.raises(AttributeError, match="no setting 'cache_limit_size'; did you mean 'cache_size_limit'"):
        config.cache_limit_size = 3
    with pytest.raises(AttributeError, match="did you mean 'suppress_errors'"):
        config.supress_errors
    with pytest.raises(AttributeError, match="known: assume_duck_shapes, backend_errors, cache_size_limit"):
        config.patch(zzz=1)
    with pytest.raises(AttributeError, match="can't be deleted"):
        del config.cache_size_limit
    assert not hasattr(config, "zzz")


def test_patch_nests_and_restores_after_an_exception():
    with config.patch(cache_size_limit=2, suppress_errors=False):
        with config.patch({"cache_size_limit": 3}):
            assert (config.cache_size_limit, config.suppress_errors) == (3, False)
        assert config.cache_size_limit == 2
        with pytest.raises(KeyError), config.patch(cache_size_limit=4):
            raise KeyError
        assert config.cache_size_limit == 2
    assert config.options()["cache_size_limit"] == 8 and config.suppress_errors


def test_one_patch_entered_twice():
    patch = config.patch(cache_size_limit=2)
    with patch:
        config.cache_size_limit = 5
        with patch:
            assert config.cache_size_limit == 2
        assert config.cache_size_limit == 5
    assert config.cache_size_limit == 8


def test_decorator_keeps_the_function_and_covers_each_call():
    @config.patch(cache_size_limit=2)
    def limit(depth, *, end="."):
        """Says."""
        return limit(depth - 1, end=end) if depth else (config.cache_size_limit, end)

    assert limit(3, end="!") == (2, "!")
    assert (limit.__name__, limit.__doc__) == ("limit", "Says.")
    assert config.cache_size_limit == 8


def test_settings_are_the_process_wide():
    seen = []
    with config.patch(cache_size_limit=2):
        thread = threading.Thread(target=lambda: seen.append(config.cache_size_limit))
        thread.start()
        thread.join()
    assert seen == [2]


def test_describe_names_every_setting():
    config.cache_size_limit = 3
    lines = config.describe().splitlines()
    assert [line.split(" = ")[0] for line in lines] == list(config.options())
    assert lines[0].startswith("cache_size_limit = 3 (default 8)")
