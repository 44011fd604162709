"""What a check holds of a part: `forward`, `forwards`, `gradients`, `parameters`, `construct`.

Turns cases into calls and answers into tensors of the shapes that the contract promises; what has
another shape is the student's failure here, once, instead of a riddle in every check.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from grader.assignment import Part
from grader.cases import Case
from grader.expect import CheckFailure
from grader.submission import Answer, Call, Died, Raised, Run, Submission, in_dtype
from grader.text import one_line

_DTYPE_COMPLAINT = re.compile(r"dtype|scalar type|\bDouble\b|\bFloat\b|float64|float32")


_CIRCUMSTANCES = ("neighbours", "strided", "elsewhere", "busy", "forgiven")
_OPTIONS = ("weights", "depth", "dtype", "training", *_CIRCUMSTANCES)

MAX_SIZE = 1 << 40
"""No parameter is longer in any direction."""


class Outputs:
    """What one forward returned, by the contract's names: `outputs.output`, `outputs.weights`.

    Attributes:
        by_name: the same as a dictionary.
        changed: names of the arguments that the forward changed in place.
    """

    def __init__(self, tensors: Mapping[str, torch.Tensor], changed: Sequence[str] = ()) -> None:
        self.by_name = dict(tensors)
        self.changed = list(changed)

    def __getattr__(self, name: str) -> torch.Tensor:
        try:
            return self.by_name[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class ParameterFact:
    """One name under which a module has a parameter; `identity` tells distinct ones apart."""

    name: str
    shape: tuple[int, ...]
    trainable: bool
    identity: int


class PartClient:
    """One part of one submission, as checks use it.

    Args:
        part: what the assignment says of it.
        submission: who answers.
        remember: give the same answer to the same question of two checks, without asking again. Whether
            the code itself does so is what the checks of repeatability ask, with several forwards in a call.

    Attributes:
        dtype: what floating inputs are sent as. float64, until the student's code turns out to work
            in float32 only: that costs it the check of its dtype, not every other one too.
    """

    def __init__(self, part: Part, submission: Submission, *, remember: bool = False) -> None:
        self.part = part
        self.dtype = torch.float64
        self._submission = submission
        self._remember = remember
        self._remembered: dict[Hashable, tuple[bool, list[Outputs]]] = {}
        self._known_parameters: dict[Hashable, list[ParameterFact]] = {}
        self._inputs = {name: shape.split() for name, shape in part.inputs.items()}
        self._outputs = {name: shape.split() for name, shape in part.outputs.items()}
        self._shapes_for = functools.cache(self._output_shapes)

    def forward(self, case: Case, **inputs: Any) -> Outputs:
        """One forward; see `forwards`."""
        return self.forwards(case, [{}], **inputs)[0]

    def forwards(self, case: Case, runs: Sequence[Mapping[str, Any]], **common: Any) -> list[Outputs]:
        """Several forwards on one instance, each with inputs of its own.

        Args:
            case: gives the configuration, the mode and the seed. Its weights are loaded where they
                fit; otherwise the student's own initialisation stays, so that a wrong name costs only
                the check of names.
            runs: keyword arguments of each forward, tensors and others (``causal=False``).
            common: those that all runs share. ``weights=`` loads these weights, and the check is
                blocked where they do not fit; ``depth=`` chains so many instances; ``dtype=`` and
                ``training=`` stand for those of the client and the case; ``neighbours=``,
                ``strided=``, ``elsewhere=``, ``busy=`` and ``forgiven=`` are those of a `Call`.

        Raises:
            SubmissionError: there is no answer.
            CheckFailure: an output has not the shape that the contract promises.
        """
        shared, options = _split(common)
        asked = [_run(shared | dict(run)) for run in runs]
        question = self._question(case, asked, options) if self._remember else None
        loaded, found = self._remembered.get(question, (False, []))
        if loaded or (found and options.get("weights") is None):
            return found
        call = self._call("forward", case, asked, **options)
        answer = self._ask(call, fixed_dtype=options.get("dtype") is not None)
        changed = _list(answer.facts.get("changed"), len(asked))
        found = [
            Outputs(self._of_contract(run.tensors, outputs), _names_of(run, names))
            for run, outputs, names in zip(asked, answer.runs, changed, strict=True)
        ]
        if question is not None:
            self._remembered[question] = answer.facts.get("loaded") is True, found
        return found

    def _question(self, case: Case, asked: Sequence[Run], options: Mapping[str, Any]) -> Hashable:
        """What tells one question from another; None for one that is not about the case's own tensors."""
        weights = options.get("weights")
        if len(asked) != 1 or (weights is not None and weights is not case.weights):
            return None
        if any(name in options for name in _CIRCUMSTANCES):
            return None
        run, own = asked[0], case.inputs
        if any(own.get(name) is not tensor for name, tensor in run.tensors.items()):
            return None
        dtype = options.get("dtype") or self.dtype
        kind = (dtype, options.get("training"), options.get("depth"))
        return (case, *kind, tuple(run.tensors), tuple(run.arguments.items()))

    def gradients(
        self, case: Case, back: Mapping[str, torch.Tensor], **inputs: Any
    ) -> dict[str, torch.Tensor]:
        """Backpropagate `back` (by output name) and return the gradients of inputs and parameters.

        What takes no part in the result has gradient 0.
        """
        call, answer = self._backward(case, back, inputs)
        found = answer.runs[0]
        floats = {n: t for n, t in call.runs[0].tensors.items() if t.is_floating_point()}
        sources = {n: t for n, t in floats.items() if not n.startswith("grad.")} | dict(call.weights or {})
        # What takes no part has gradient 0, and so has what asks for none.
        return {
            name: self._of_shape(f"the gradient of {name}", tuple(tensor.shape), found[name])
            if name in found
            else torch.zeros_like(tensor)
            for name, tensor in sources.items()
        }

    def raw_gradients(
        self, case: Case, back: Mapping[str, torch.Tensor], **inputs: Any
    ) -> dict[str, torch.Tensor]:
        """All gradients there are, whatever the parameters' names.

        An output that is no function of anything (a detached copy of the weights, say) takes none.
        """
        return self._backward(case, back, inputs)[1].runs[0]

    def parameters(self, case: Case | None = None, **config: int | bool) -> list[ParameterFact]:
        """Every name under which the module has a parameter."""
        sizes = dict(case.config if case else {}) | config
        question = tuple(sizes.items())
        if question not in self._known_parameters:
            call = Call(self.part.target, "parameters", sizes, dtype=torch.float32, by_position=case is None)
            facts = self._submission.call(call).facts.get("parameters")
            found = [_parameter_fact(entry) for entry in _list(facts)]
            if not self._remember:
                return found
            self._known_parameters[question] = found
        return self._known_parameters[question]

    def construct(self, **config: int | bool) -> list[str]:
        """Names of the classes of what the constructor raises; empty if it raises nothing."""
        facts = self._submission.call(Call(self.part.target, "construct", config)).facts
        return _strings(facts.get("raised"))

    def output_shapes(self, inputs: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """The shapes that the contract promises for these inputs."""
        return self._shapes_for(tuple([inputs[name].shape for name in self._inputs]))

    def _output_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> dict[str, tuple[int, ...]]:
        sizes: dict[str, tuple[int, ...]] = {}
        for letters, shape in zip(self._inputs.values(), shapes, strict=True):
            _bind(letters, shape, sizes)
        return {name: tuple(s for n in letters for s in sizes[n]) for name, letters in self._outputs.items()}

    # --- steps -----------------------------------------------------------------------------------

    def _backward(
        self, case: Case, back: Mapping[str, torch.Tensor], inputs: Mapping[str, Any]
    ) -> tuple[Call, Answer]:
        given, options = _split(inputs)
        run = _run(given | {f"grad.{name}": tensor for name, tensor in back.items()})
        call = self._call("gradients", case, [run], **options)
        return call, self._ask(call)

    def _call(
        self,
        operation: str,
        case: Case,
        runs: Sequence[Run],
        *,
        weights: Mapping[str, torch.Tensor] | None = None,
        depth: int = 1,
        dtype: torch.dtype | None = None,
        training: bool | None = None,
        **circumstances: Any,
    ) -> Call:
        return Call(
            self.part.target,
            operation,
            config=case.config,
            weights=case.weights if weights is None else weights,
            weights_name=(case, dtype or self.dtype) if weights is None or weights is case.weights else None,
            weights_required=weights is not None,
            runs=runs,
            training=case.training if training is None else training,
            dtype=dtype or self.dtype,
            seed=case.seed,
            depth=depth,
            by_position=case.by_position,
            # Where there are parameters, their gradients must not depend on whether the input wants one.
            input_gradients=case.weights is None or case.seed % 4 != 1,
            **circumstances,
        )

    def _ask(self, call: Call, *, fixed_dtype: bool = False) -> Answer:
        """Ask; once more in float32 if the code fails in float64 because of the dtype."""
        try:
            answer = self._submission.call(_as_dtype(call))
        except Raised as error:
            if fixed_dtype or call.dtype is torch.float32:
                raise
            if not _DTYPE_COMPLAINT.search(error.sentence):
                raise
            again = replace(call, dtype=torch.float32, weights_name=None)
            answer = self._submission.call(_as_dtype(again))
            self.dtype = torch.float32
        if call.runs and len(answer.runs) != len(call.runs):
            raise Died("the worker's answer has not as many runs as were asked for")
        return answer

    def _of_contract(
        self, run: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        return {
            name: self._of_shape(name, shape, outputs.get(name))
            for name, shape in self.output_shapes(run).items()
        }

    def _of_shape(self, name: str, shape: tuple[int, ...], tensor: torch.Tensor | None) -> torch.Tensor:
        if tensor is None:
            raise Died(f"the worker's answer has no {name}")
        if tensor.shape != shape:
            letters = ", ".join(self._outputs.get(name, ()))
            meaning = f" ({letters})" if letters else ""
            raise CheckFailure(
                f"{name} has shape {shape}{meaning}", f"{name} has shape {tuple(tensor.shape)}"
            )
        return tensor


def _as_dtype(call: Call) -> Call:
    """Send the floating tensors in the call's own dtype."""
    if call.dtype is torch.float64:
        return call  # cases are float64 already
    weights = None if call.weights is None else in_dtype(call.weights, call.dtype)
    runs = [Run(in_dtype(run.tensors, call.dtype), run.arguments) for run in call.runs]
    return replace(call, weights=weights, runs=runs)


def _split(inputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part what goes to `forward` from what says how it is called."""
    options = {n: v for n, v in inputs.items() if n in _OPTIONS}
    return {n: v for n, v in inputs.items() if n not in options}, options


def _run(inputs: Mapping[str, Any]) -> Run:
    tensors = {n: v for n, v in inputs.items() if isinstance(v, torch.Tensor)}
    return Run(tensors, {n: v for n, v in inputs.items() if n not in tensors})


def _bind(letters: list[str], shape: Sequence[int], sizes: dict[str, tuple[int, ...]]) -> None:
    """Note which letter has which size, from one input."""
    if letters[0] == "...":
        letters = letters[1:]
        sizes["..."] = tuple(shape[: len(shape) - len(letters)])
    sizes |= {n: (size,) for n, size in zip(letters, shape[len(shape) - len(letters) :], strict=True)}


def _list(value: object, length: int | None = None) -> list[Any]:
    """A list out of an answer's facts: the worker's word, so every type is checked."""
    if not isinstance(value, list) or length not in (None, len(value)):
        raise Died("the worker's answer is not of the expected form")
    return value


def _strings(value: object) -> list[str]:
    texts = _list(value)
    if not all(isinstance(text, str) for text in texts):
        raise Died("the worker's answer is not of the expected form")
    return [one_line(text, 100) for text in texts]


def _names_of(run: Run, value: object) -> list[str]:
    """Names of tensors that the run was given."""
    names = _list(value)
    if not all(isinstance(name, str) and name in run.tensors for name in names):
        raise Died("the worker's answer is not of the expected form")
    return names


def _parameter_fact(entry: object) -> ParameterFact:
    if not isinstance(entry, list) or [type(field) for field in entry] != [str, list, bool, int]:
        raise Died("the worker's answer is not of the expected form")
    name, shape, trainable, identity = entry
    if any(type(size) is not int or not 0 <= size <= MAX_SIZE for size in shape) or len(shape) > 16:
        raise Died("the worker's answer is not of the expected form")
    return ParameterFact(one_line(name, 200), tuple(shape), trainable, identity)
