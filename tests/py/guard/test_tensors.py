"""What a tensor guard sees: class, keys, dtype, device, layout, rank, sizes, strides, requires_grad, tangents."""

import pytest
import torch
import torch.autograd.forward_ad as fwad
from guarding import READERS, Builder, accessors, reader


def one(x): ...


def program_for(tensor):
    b = Builder(one, tensor)
    b.guard("tensor", b.local(0), payload=tensor)
    return b.compile()


class Sub(torch.Tensor):
    pass


def conjugate():
    return torch.ones(2, 3, dtype=torch.complex64).conj()


VARIANTS = {
    "plain": lambda: torch.ones(2, 3),
    "other size": lambda: torch.ones(3, 2),
    "transposed": lambda: torch.ones(3, 2).t(),
    "rank 1": lambda: torch.ones(6),
    "rank 0": lambda: torch.tensor(1.0),
    "rank 1, one": lambda: torch.ones(1),
    "rank 3": lambda: torch.ones(2, 3, 4),
    "rank 3, last differs": lambda: torch.ones(2, 3, 5),
    "rank 3, permuted": lambda: torch.ones(2, 4, 3).transpose(1, 2),
    "some columns": lambda: torch.ones(2, 6)[:, :3],
    "every second column": lambda: torch.ones(2, 6)[:, ::2],
    "restrided": lambda: torch.ones(3, 3).as_strided_((2, 3), (2, 1)),
    "rank 4": lambda: torch.ones(1, 2, 3, 4),
    "channels last": lambda: torch.ones(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "rank 7": lambda: torch.ones(1, 2, 1, 2, 1, 2, 1),
    "rank 7, other": lambda: torch.ones(1, 2, 1, 2, 1, 2, 2),
    "size 1 dimension, stride 1": lambda: torch.ones(1, 4),
    "size 1 dimension, stride 4": lambda: torch.ones(4, 1).t(),
    "empty": lambda: torch.ones(0, 3),
    "double": lambda: torch.ones(2, 3, dtype=torch.double),
    "int64": lambda: torch.ones(2, 3, dtype=torch.long),
    "bool": lambda: torch.ones(2, 3, dtype=torch.bool),
    "bfloat16": lambda: torch.ones(2, 3, dtype=torch.bfloat16),
    "complex": lambda: torch.ones(2, 3, dtype=torch.complex64),
    "conjugate": conjugate,
    "negative": lambda: torch.ones(2, 3, dtype=torch.complex64).conj().imag,
    "meta": lambda: torch.ones(2, 3, device="meta"),
    "grad": lambda: torch.ones(2, 3, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2, 3)),
    "frozen parameter": lambda: torch.nn.Parameter(torch.ones(2, 3), requires_grad=False),
    "subclass": lambda: torch.ones(2, 3).as_subclass(Sub),
    "expanded": lambda: torch.ones(1, 3).expand(2, 3),
    "inference": lambda: _inference(),
}


def _inference():
    with torch.inference_mode():
        return torch.ones(2, 3)


@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize("name", VARIANTS)
def test_each_tells_itself_from_all_others(name, how):
    program = program_for(VARIANTS[name]())
    with reader(how):
        for other, make in VARIANTS.items():
            value = make()
            assert program(value) == (other == name), (name, other, program.program.failures(one, (value,)))


def many(count):
    namespace = {}
    exec(f"def many({', '.join(f'a{i}' for i in range(count))}): ...", namespace)
    return namespace["many"]


@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize("count", [7, 8, 9, 33, 40])  # runs are compared a few at a time, and long ones ask for tangents at once
def test_in_a_run_of_tensors_each_counts(how, count):
    function = many(count)
    makers = [lambda: torch.ones(2, 3), lambda: torch.nn.Parameter(torch.ones(4)), lambda: torch.ones(1, 2, 1, 2, 1, 2, 1)]
    values = [makers[i % 3]() for i in range(count)]
    b = Builder(function, *values)
    for i, value in enumerate(values):
        b.guard("tensor", b.local(i), payload=value)
    program = b.compile()
    assert "tensors            local 0 .. " + str(count - 1) in program.program.program_text()
    wrong = [torch.ones(3, 2), torch.ones(4), torch.ones(1, 2, 1, 2, 1, 1, 2), None]
    with reader(how):
        assert program(*values)
        for i in range(count):
            for other in (wrong[i % 3], wrong[3]):
                assert not program(*values[:i], other, *values[i + 1 :])
        with fwad.dual_level():
            assert not program.program.check(function, tuple(values))  # the level itself is guarded
            within = b.compile()
            assert within(*values)
            for i in range(count):
                dual = fwad.make_dual(values[i], torch.ones_like(values[i]))
                if i % 3 == 1:  # of the class that is expected: only the tangent tells
                    dual.__class__ = torch.nn.Parameter
                assert fwad.unpack_dual(dual).tangent is not None
                assert not within(*values[:i], dual, *values[i + 1 :])
        assert program(*values)


SAME = {
    "of another rank before": lambda: torch.ones(2, 3, 1).squeeze_(2),
    "of other sizes before": lambda: torch.ones(7, 8, 9).resize_(2, 3).fill_(1),
    "transposed twice": lambda: torch.ones(2, 3).t_().t_(),
    "detached": lambda: torch.ones(2, 3, requires_grad=True).detach(),
    ".data": lambda: torch.nn.Parameter(torch.ones(2, 3)).data,
    "view": lambda: torch.ones(6).view(2, 3),
    "with an offset": lambda: torch.ones(4, 3)[2:],
    "shrunk": lambda: torch.ones(1, 2, 3, 4, 5, 6, 7)[0, 0, 0, 0, 0, 0, 0].clone().resize_(2, 3),
    "resized": lambda: torch.ones(100).resize_(2, 3),
    "was dual": lambda: _was_dual(),
    "leaf after requires_grad_(False)": lambda: torch.ones(2, 3, requires_grad=True).requires_grad_(False),
}


def _was_dual():
    x = torch.ones(2, 3)
    with fwad.dual_level():
        fwad.make_dual(x, torch.ones(2, 3))
    return x


@pytest.mark.parametrize("name", SAME)
def test_same_metadata_hits(name):
    program = program_for(torch.ones(2, 3))
    assert program(SAME[name]())
    with accessors():
        assert program(SAME[name]())


def test_result_of_an_operator_requires_grad():
    program = program_for(torch.ones(2, 3, requires_grad=True))
    assert program(torch.ones(2, 3, requires_grad=True) * 2)
    assert not program_for(torch.ones(2, 3))(torch.ones(2, 3, requires_grad=True) * 2)


@pytest.mark.parametrize("raw", [True, False])
def test_dual_tensors_do_not_look_plain(raw):

    def compare():
        with fwad.dual_level():
            program = program_for(torch.ones(2, 3))
            x = torch.ones(2, 3)
            assert program.program.check(one, (x,))
            dual = fwad.make_dual(x, torch.ones(2, 3))
            assert not program(dual)
            with pytest.raises(RuntimeError, match="guard on L\\['x'\\]|tangent|TypeError") as error:
                try:
                    program_for(dual)
                except TypeError as inner:
                    raise RuntimeError(str(inner)) from inner
            assert "tangent" in str(error.value)

    if raw:
        compare()
    else:
        with accessors():
            compare()


def refused(tensor):
    with pytest.raises(TypeError):
        program_for(tensor)


def test_metadata_that_python_computes_is_refused():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.ones(2, 3))
    refused(fake)
    refused(torch.ones(2, 3).to_sparse())
    refused(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged))
    program = program_for(torch.ones(2, 3))
    assert not program.program.check(one, (fake,))
    assert not program.program.check(one, (torch.ones(2, 3).to_sparse(),))


@pytest.mark.parametrize("value", [None, 3, "x", [], torch.Size([2, 3]), torch.nn.Linear(2, 3)], ids=lambda v: type(v).__name__)
def test_other_objects(value):
    assert not program_for(torch.ones(2, 3))(value)


def test_in_place_changes_of_the_guarded_tensor():
    x = torch.ones(2, 3)
    program = program_for(x)
    x.add_(1)
    assert program(x)
    x.requires_grad_(True)
    assert not program(x)
    x.requires_grad_(False)
    assert program(x)
    x.t_()
    assert not program(x)
    x.t_()
    assert program(x)
    x.data = torch.ones(2, 3, dtype=torch.double)
    assert not program(x)
    x.data = torch.ones(2, 3)
    assert program(x)
    torch.utils.swap_tensors(x, torch.ones(9))
    assert not program(x)
    x = torch.ones(2, 3)
    x.__class__ = Sub
    assert not program(x)


def test_rows_of_many_tensors():
    namespace = {}
    exec(f"def many({', '.join(f'a{i}' for i in range(20))}): ...", namespace)
    values = [torch.ones(i + 1) if i != 7 else 7 for i in range(20)]
    b = Builder(namespace["many"], *values)
    for i, value in enumerate(values):
        b.guard(*(("tensor", b.local(i)) if i != 7 else ("equals", b.local(i))), payload=value)
    program = b.compile()
    assert program(*values)
    assert program.program.program_text().count("tensors  ") == 2  # two runs of neighbours
    for i in range(20):
        changed = list(values)
        changed[i] = torch.ones(50)
        assert not program(*changed)
