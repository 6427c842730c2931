"""The border to PyTorch's compilers: AOT Autograd and Inductor, for static shapes.

They are written for graphs of torch._dynamo. What they read beside the graph is made here: FakeTensors of the inputs, a tracing context, a
compile id, and the sources of the inputs. Nothing of torch._dynamo's tracing runs.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import itertools
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set

import torch
import torch.fx
from torch._guards import CompileContext, CompileId, Source, TracingContext, compile_context, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._pytree import tree_map_only

from pellucid import _native
from pellucid.graph_module import GraphModule

Compiled = Callable[..., Any]
Inner = Callable[[torch.fx.GraphModule, List[Any]], Compiled]

_ids = itertools.count()


@dataclasses.dataclass(frozen=True)
class InputSource(Source):
    """Where an input of the graph comes from, as Python text. Equal texts are equal sources."""

    text: str

    @property
    def _name_template(self) -> str:
        return self.text


class _Handoff:
    """A copy of a captured graph with all that PyTorch's compilers read about it."""

    def __init__(self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> None:
        self.compile_id = CompileId(frame_id=next(_ids), frame_compile_id=0)
        self.fake_mode = FakeTensorMode(shape_env=ShapeEnv())
        self.context = TracingContext(self.fake_mode)
        # A copy, because compilers take their graph apart.
        self.module = GraphModule(gm, copy.deepcopy(gm.graph))
        self.module.meta["backend_id"] = f"pellucid_{self.compile_id}"
        tensors = [id(value) for value in example_inputs if isinstance(value, torch.Tensor)]
        self.has_duplicates = len(set(tensors)) < len(tensors)
        if not self.has_duplicates:
            # Tells AOT that inputs have sources, for its guards and for static inputs. Where it drops a repeated input, torch 2.13 fails
            # to make the guard for it (a precedence mistake in remove_dupe_args); our own check by storage covers that case.
            self.module.meta["dynamo_compile_id"] = self.compile_id
        self.inputs = self._fake_inputs(example_inputs)
        self._convert_example_values()
        names = [name for name, _ in itertools.chain(self.module.named_parameters(), self.module.named_buffers())]
        self.module._param_name_to_source = {name: InputSource(f"self.{name}") for name in names}

    def _fake_inputs(self, example_inputs: Sequence[Any]) -> List[Any]:
        placeholders = self.module.graph.find_nodes(op="placeholder")
        if len(placeholders) != len(example_inputs):
            raise ValueError(f"the graph has {len(placeholders)} inputs, {len(example_inputs)} examples were given")
        seen: Set[Source] = set()
        fakes: List[Any] = []
        for node, value in zip(placeholders, example_inputs):
            source: Optional[Source] = InputSource(node.meta.get("source_name", node.name))
            if source in seen:
                source = None  # AOT wants different sources, and takes none
            else:
                seen.add(source)
            node._dynamo_source = source
            if isinstance(value, torch.Tensor):
                value = self.fake_mode.from_tensor(value, static_shapes=True, source=source)
            node.meta["example_value"] = value
            fakes.append(value)
        return fakes

    def _convert_example_values(self) -> None:
        """Example values of other nodes become FakeTensors: passes of Inductor read them, and the cache of AOT asks whether they exist."""

        def convert(value: torch.Tensor) -> torch.Tensor:
            return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=value.device)

        with self.fake_mode:
            for node in self.module.graph.nodes:
                if node.op != "placeholder" and "example_value" in node.meta:
                    node.meta["example_value"] = tree_map_only(torch.Tensor, convert, node.meta["example_value"])

    def compile(self, inner: Inner) -> Compiled:
        with compile_context(CompileContext(self.compile_id)), tracing(self.context):
            return inner(self.module, self.inputs)

    def depends_on_aliasing(self) -> bool:
        """Whether the result is right only for inputs that share memory as the examples do. True where it is not known."""
        if self.has_duplicates or self.context.guards_context.aotautograd_guards:
            return True
        metadata = self.context.fw_metadata
        if metadata is None:  # from AOT's cache
            return True
        return any(info.mutates_data or info.mutates_metadata for info in metadata.input_info)


def compile_graph(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], inner: Inner) -> Compiled:
    """Compiles `gm` by `inner`; the result takes the inputs by position."""
    handoff = _Handoff(gm, example_inputs)
    compiled = handoff.compile(inner)
    tensors = sum(isinstance(value, torch.Tensor) for value in example_inputs)
    if tensors < 2 or not handoff.depends_on_aliasing():
        return compiled
    # AOT has decided by the examples which inputs share memory. For others the graph is compiled again.
    return _native.core().dispatch_by_storage(lambda *inputs: _Handoff(gm, inputs).compile(inner), tuple(example_inputs), compiled)


# --- what compiles


def _run_graph(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
    """Runs an ATen graph as it is, freeing its inputs after their last use."""
    del example_inputs
    from torch.fx.graph import _BoxedCodeGen

    graph.graph.set_codegen(_BoxedCodeGen())
    graph.recompile()
    forward = graph.forward

    def run(inputs: List[Any]) -> Any:
        return forward(inputs)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def run_operators(gm: torch.fx.GraphModule, inputs: List[Any]) -> Compiled:
    """AOT Autograd alone: forward and backward as ATen graphs that are run operator by operator."""
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    return aot_module_simplified(
        gm,
        inputs,
        fw_compiler=_run_graph,
        bw_compiler=_run_graph,
        inference_compiler=_run_graph,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )


def inductor(config_patches: Optional[Mapping[str, Any]], gm: torch.fx.GraphModule, inputs: List[Any]) -> Compiled:
    """TorchInductor, with changes to torch._inductor.config for this graph."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(gm, inputs, config_patches=dict(config_patches) if config_patches else None)


def inductor_config(mode: Optional[str], options: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """The changes to torch._inductor.config that a mode or options of ``torch.compile`` mean. Raises ValueError or TypeError."""
    from torch._inductor import config, list_mode_options

    if mode is not None:
        modes = list_mode_options()
        if mode not in modes:
            raise ValueError(f"unknown mode {mode!r}; known: {', '.join(sorted(modes))}")
        return dict(modes[mode])
    known = config.get_config_copy()
    patches: Dict[str, Any] = {}
    for key, value in (options or {}).items():
        name = key.replace("-", "_")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=3)
            raise ValueError(f"Inductor has no option {key!r}" + (f"; did you mean {' or '.join(map(repr, close))}?" if close else ""))
        expected = config.get_type(name)
        if isinstance(expected, type) and not isinstance(value, expected):
            raise TypeError(f"option {key!r} of Inductor is of type {expected.__name__}, not {type(value).__name__}")
        patches[name] = value
    return patches
