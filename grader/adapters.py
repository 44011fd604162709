"""Build a student's class, load weights, call it: the one place that touches what a student wrote.

Runs wherever the student's code runs, in a worker or in the student's own process. Everything that
goes wrong there leaves as a `SubmissionError`, everything that comes out leaves as plain tensors.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy
import torch
from torch import nn

from grader.device_watch import DeviceWatch, TwoDevices
from grader.from_scratch.watch import OperatorWatch
from grader.loader import SubmissionModules
from grader.stand_ins import StandIn, StandIns
from grader.student_code import StudentCode, cut_to_size, is_stub
from grader.submission import (
    Answer,
    BadReturn,
    Call,
    NotImportable,
    PartMissing,
    Run,
    SubmissionError,
    Tensors,
    WrongParameters,
    in_dtype,
)
from grader.switches import reset_switches, without_compiler
from grader.terms import Target, Use
from grader.wire import DTYPE_NAMES, MAX_ANSWER_BODY_BYTES

CLOSE_WATCH = 16
"""Of so many calls one has a run under torch's function mode, which slows it down."""

_equal = torch.equal
_named_parameters = nn.Module.named_parameters
"""As they are before a submission has put others in their place."""


class Adapter:
    """Answers calls with the code of one submission.

    Args:
        modules: the submission's files.
        class_names: the contract's class of each part.
        stand_ins: parts that are replaced by right ones.
        own_process: the student sits before this process: Ctrl-C is theirs, not the code's.
        keep_errors: let the student's exceptions through as they are, for a debugger.
    """

    def __init__(
        self,
        modules: SubmissionModules,
        class_names: Mapping[str, str],
        *,
        stand_ins: Sequence[StandIn] = (),
        own_process: bool = False,
        keep_errors: bool = False,
    ) -> None:
        self._modules = modules
        self._student_code = StudentCode(modules, own_process=own_process, keep_errors=keep_errors)
        self._classes: dict[str, type[nn.Module] | SubmissionError] = {}
        self._watch = OperatorWatch(modules, class_names)
        self._stand_ins = StandIns(modules, stand_ins)
        self._draws = any(b"random" in source or b"numpy" in source for source in modules.files.values())

    @property
    def uses(self) -> dict[Use, None]:
        """The forbidden operators called so far."""
        return self._watch.uses

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Make the submission importable and watch what it calls; answers are given inside."""
        with self._modules.installed(), self._watch.on(), without_compiler():
            yield

    def answer(self, call: Call) -> Answer:
        """Answer one call, or raise the `SubmissionError` that says why not.

        Must run inside `ready()`: the code may import its files only when it is called.
        """
        self._reset(call.seed)
        self._watch.part = call.target.part
        operation: Callable[[Call], Answer] = getattr(self, f"_{call.operation}")
        try:
            answer = operation(call)
            if sum(t.nbytes for run in answer.runs for t in run.values()) > MAX_ANSWER_BODY_BYTES // 2:
                raise BadReturn(f"what {call.target.class_name} returns is far too large")
            return answer
        except SubmissionError as error:
            error.where = error.where or self._modules.parts.get(call.target.part, "")
            raise
        finally:
            reset_switches()

    def _load(self, call: Call) -> Answer:
        """Import the part and find its class."""
        self._class(call.target)
        return Answer()

    def _forward(self, call: Call) -> Answer:
        modules, loaded = self._build_all(call)
        answer = Answer(facts={"loaded": loaded, "changed": []})
        with torch.no_grad():
            for run in call.runs:
                # A clone lies where torch's allocator puts it: kernels that depend on alignment then
                # give the same bits for the same values.
                inputs = {name: _laid_out(tensor, call) for name, tensor in run.tensors.items()}
                if call.elsewhere:
                    self._run_elsewhere(call, modules, run)
                outputs = self._run(call, modules, run, inputs)
                answer.runs.append(self._collect(outputs))
                changed = [name for name, given in run.tensors.items() if not _same(inputs[name], given)]
                answer.facts["changed"].append(changed)
        return answer

    def _gradients(self, call: Call) -> Answer:
        modules, _ = self._build_all(call)
        answer = Answer(facts={"heads": []})
        for run in call.runs:
            inputs = _wanting_gradients(call, run.tensors)
            outputs = self._run(call, modules, run, inputs)
            if call.busy:
                self._train_between(call, modules, run)
            parameters = {
                (f"{index}.{name}" if call.depth > 1 else name): parameter
                for index, module in enumerate(modules)
                for name, parameter in module.named_parameters(remove_duplicate=False)
            }
            sources = {n: t for n, t in inputs.items() if t.requires_grad} | parameters
            for tensor in sources.values():
                tensor.grad = None
            heads = [name for name, output in outputs.items() if output.requires_grad]
            heads = [name for name in heads if f"grad.{name}" in run.tensors]
            with self._student_code("the backward pass of " + call.target.class_name):
                if heads:
                    _backpropagate({name: (outputs[name], run.tensors[f"grad.{name}"]) for name in heads})
            gradients = {n: tensor.grad for n, tensor in sources.items() if tensor.grad is not None}
            answer.runs.append(self._collect(gradients, "the gradient of "))
            answer.facts["heads"].append(heads)
        return answer

    def _train_between(self, call: Call, modules: list[nn.Module], run: Run) -> None:
        """A forward on other values and its way back, before that of the one that counts."""
        halved = {n: t / 2 if t.is_floating_point() else t for n, t in run.tensors.items()}
        outputs = self._run(call, modules, run, _wanting_gradients(call, halved))
        with self._student_code("the backward pass of " + call.target.class_name):
            heads = {
                n: (output, torch.ones_like(output)) for n, output in outputs.items() if output.requires_grad
            }
            if heads:
                _backpropagate(heads)

    def _parameters(self, call: Call) -> Answer:
        """Report name, shape, whether it trains, and which distinct parameter it is."""
        module = self._build(call)
        seen: dict[int, int] = {}
        with self._student_code("reading the parameters"):
            facts = [
                [name, list(p.shape), bool(p.requires_grad), seen.setdefault(id(p), len(seen))]
                for name, p in _named_parameters(module, remove_duplicate=False)
            ]
        return Answer(facts={"parameters": facts})

    def _construct(self, call: Call) -> Answer:
        """Report what the constructor raises, as the names of the exception's classes."""
        found = self._class(call.target)
        try:
            found(**call.config)
        except Exception as error:
            if is_stub(error):
                raise self._student_code.outcome(error, call.target.class_name) from error
            return Answer(facts={"raised": [kind.__name__ for kind in type(error).__mro__]})
        return Answer(facts={"raised": []})

    def _reset(self, seed: int) -> None:
        """Undo what a submission may have set for the whole process, and seed what it may draw from."""
        reset_switches()
        torch.default_generator.manual_seed(seed)
        if self._draws:
            numpy.random.seed(seed)
            random.seed(seed)

    # --- steps ---------------------------------------------------------------------------------

    def _class(self, target: Target) -> type[nn.Module]:
        if target.part not in self._classes:
            try:
                self._classes[target.part] = self._import_class(target)
            except SubmissionError as error:
                self._classes[target.part] = error
        found = self._classes[target.part]
        if isinstance(found, SubmissionError):
            raise found
        return found

    def _import_class(self, target: Target) -> type[nn.Module]:
        path = self._modules.parts.get(target.part)
        if path is None:
            raise PartMissing(f"{target.part}.py is not in the submission")
        with self._student_code(f"importing {path}", NotImportable):
            self._stand_ins.put_in_place()
            self._watch.exempt(self._stand_ins.code)
            module = self._modules.import_part(target.part)
            self._stand_ins.replace_everywhere()
        found = getattr(module, target.class_name, None)
        if found is None:
            defined = [name for name, value in vars(module).items() if isinstance(value, type)]
            own = [name for name in defined if vars(module)[name].__module__ == module.__name__]
            classes = ", ".join(own[:8]) or "no class at all"
            raise PartMissing(f"{path} defines {classes}, not {target.class_name}", path)
        if not isinstance(found, type) or not issubclass(found, nn.Module):
            raise BadReturn(f"{target.class_name} is not a subclass of torch.nn.Module", path)
        return found

    def _build(self, call: Call) -> nn.Module:
        found = self._class(call.target)
        with self._student_code(f"{call.target.class_name}({_arguments(call.config)})"):
            positional, keywords = _in_order(call.config, call.target.config, call.by_position)
            module = found(*positional, **keywords)
            module.to(call.dtype)
            module.train(call.training)
        return module

    def _build_all(self, call: Call) -> tuple[list[nn.Module], bool]:
        """The instances that are to be chained, and whether the call's weights fitted all of them."""
        modules, loaded = [], True
        for index in range(call.depth):
            module = self._build(call)
            if call.neighbours:
                self._use(call, module)
            if call.weights is not None:
                prefix = f"{index}." if call.depth > 1 else ""
                with self._student_code(f"loading weights into {call.target.class_name}"):
                    loaded &= _load_weights(module, call.weights, prefix, required=call.weights_required)
            modules.append(module)
        for config in call.neighbours:
            neighbour = self._build(replace(call, config=config))
            with self._student_code("setting the parameters to 0"), torch.no_grad():
                for parameter in neighbour.parameters():
                    parameter.zero_()
        return modules, loaded

    def _use(self, call: Call, module: nn.Module) -> None:
        """Call an instance, in float32 if it is to be one of float64, as whoever has had it before."""
        used = {n: t.clone() for n, t in in_dtype(call.runs[0].tensors, torch.float32).items()}
        with self._student_code(f"{call.target.class_name}.to"):
            module.to(torch.float32)
        with torch.no_grad():
            self._run(call, [module], call.runs[0], used)
        with self._student_code(f"{call.target.class_name}.to"):
            module.to(call.dtype)

    def _run(
        self, call: Call, modules: list[nn.Module], run: Run, inputs: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Chain the modules; of all but the last only the first output goes on."""
        target = call.target
        outputs: tuple[Any, ...] = tuple(inputs[name] for name in target.inputs if name in inputs)
        taken = len(outputs)
        given = dict(run.arguments) | {n: t for n, t in inputs.items() if n not in target.inputs}
        options, keywords = _in_order(given, target.options, call.by_position)
        turn, rest = divmod(call.seed, CLOSE_WATCH)
        closely = rest == 0 and call.runs[turn % len(call.runs)] is run
        with self._watch.forward(closely=closely), self._student_code(f"{call.target.class_name}.forward"):
            for module in modules:
                outputs = _outputs(module(*outputs[:taken], *options, **keywords), target)
        return dict(zip(target.outputs, outputs, strict=True))

    def _run_elsewhere(self, call: Call, modules: list[nn.Module], run: Run) -> None:
        """A forward as if on another device: raise if tensors that are kept would not have gone along."""
        inputs = {name: tensor.clone() for name, tensor in run.tensors.items()}
        with self._student_code("reading the parameters"):
            watch = DeviceWatch(modules, inputs.values())
        try:
            with watch:
                self._run(call, modules, run, inputs)
        except Exception as error:
            if isinstance(error, TwoDevices) or isinstance(error.__cause__, TwoDevices):
                raise

    def _collect(self, tensors: Mapping[str, torch.Tensor], called: str = "") -> dict[str, torch.Tensor]:
        with self._student_code("reading what was returned", BadReturn):
            return {name: _plain(called + name, tensor) for name, tensor in tensors.items()}


def _in_order(
    given: Mapping[str, Any], order: tuple[str, ...], by_position: bool
) -> tuple[list[Any], dict[str, Any]]:
    """Part arguments into those handed over by position, the first ones in order, and by name."""
    first: list[str] = []
    if by_position:
        for name in order:
            if name not in given:
                break
            first.append(name)
    return [given[name] for name in first], {n: v for n, v in given.items() if n not in first}


def _load_weights(module: nn.Module, weights: Tensors, prefix: str, *, required: bool) -> bool:
    """Load what begins with the prefix, if all of it fits, and tell whether it does."""
    wanted = {name.removeprefix(prefix): t for name, t in weights.items() if name.startswith(prefix)}
    own = dict(module.named_parameters(remove_duplicate=False))
    absent = [name for name in wanted if name not in own]
    misshapen = [name for name in wanted if name in own and own[name].shape != wanted[name].shape]
    if absent or misshapen:
        if required:
            names = ", ".join([*absent, *misshapen][:4])
            raise WrongParameters(f"the parameters {names} are missing or have another shape")
        return False
    with torch.no_grad():
        for name, tensor in wanted.items():
            own[name].copy_(tensor)
    return True


def _outputs(returned: object, target: Target) -> tuple[Any, ...]:
    if len(target.outputs) == 1:
        returned = (returned,)
    if not isinstance(returned, (tuple, list)) or len(returned) != len(target.outputs):
        raise BadReturn(
            f"{target.class_name}.forward returns {_kind(returned)}, not ({', '.join(target.outputs)})"
        )
    for name, value in zip(target.outputs, returned, strict=True):
        if not isinstance(value, torch.Tensor):
            raise BadReturn(f"{target.class_name}.forward returns {_kind(value)} as {name}, not a tensor")
    return tuple(returned)


def _plain(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return the values as an ordinary CPU tensor, or say why they are none."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        raise BadReturn(f"{name} is not a plain tensor but {str(tensor.layout).removeprefix('torch.')}")
    if tensor.device.type != "cpu":
        raise BadReturn(f"{name} is on the device {tensor.device.type}, the inputs are on the cpu")
    if tensor.dtype not in DTYPE_NAMES:
        raise BadReturn(f"{name} has dtype {tensor.dtype}, which no output can have")
    if tensor.numel() * tensor.element_size() > MAX_ANSWER_BODY_BYTES // 4:
        raise BadReturn(f"{name} has shape {tuple(tensor.shape)}, which is far too large")
    # A copy of its own: the student may write into the same memory in the next run.
    plain = tensor.detach()
    if type(plain) is not torch.Tensor:
        plain = plain.as_subclass(torch.Tensor)
    return plain.clone(memory_format=torch.contiguous_format)


def _wanting_gradients(call: Call, tensors: Tensors) -> dict[str, torch.Tensor]:
    return {
        name: tensor.clone().requires_grad_(tensor.is_floating_point() and call.input_gradients)
        for name, tensor in tensors.items()
        if not name.startswith("grad.")
    }


def _laid_out(tensor: torch.Tensor, call: Call) -> torch.Tensor:
    """A copy of one's own, in memory as the call says."""
    if call.strided and tensor.dim() > 2:
        return tensor.transpose(-3, -2).clone(memory_format=torch.contiguous_format).transpose(-3, -2)
    return tensor.clone()


def _same(used: torch.Tensor, given: torch.Tensor) -> bool:
    return used.shape == given.shape and used.dtype == given.dtype and _equal(used, given)


def _backpropagate(heads: Mapping[str, tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Send into each output what comes back into it.

    As the gradient of a sum of products, which gives the same bits: a gradient that is handed over makes
    torch import its symbolic shapes first, half a second and 35 MB.
    """
    for name, (output, back) in heads.items():
        if output.shape != back.shape:
            raise BadReturn(f"{name} has shape {tuple(output.shape)}, not {tuple(back.shape)}")
    torch.autograd.backward(torch.stack([(output * back).sum() for output, back in heads.values()]).sum())


def _arguments(config: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in config.items())


def _kind(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        return "a single tensor"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {cut_to_size(type(value).__name__)}"
