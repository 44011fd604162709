"""What stands in the frames: calls, answers and errors as JSON and named tensors, and back again.

What comes from a worker is checked field by field: the student's code may have written it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, fields
from itertools import islice
from typing import Any

import numpy
import torch

from grader.sandbox.confine import Layer
from grader.submission import ERRORS, Answer, Call, Run, SubmissionError
from grader.terms import Target, Use
from grader.text import one_line
from grader.wire import DTYPES, MalformedFrame

Tensors = dict[str, torch.Tensor]
Kept = dict[int, dict[str, numpy.ndarray]]
"""Weights by number; arrays, since the garbage collector would look through every tensor again and again."""

MAX_USES = 100
"""Forbidden uses of a submission that are kept: one is enough."""

_PLAIN = (
    "weights_required",
    "training",
    "seed",
    "depth",
    "by_position",
    "input_gradients",
    "strided",
    "elsewhere",
    "busy",
    "forgiven",
)
"""Fields of a call that are JSON as they are; they travel where they are not as usual."""

_USUAL = {field.name: field.default for field in fields(Call)}


def pack_call(call: Call, kept: int | None = None, *, send: bool = True) -> tuple[dict[str, Any], Tensors]:
    """Flatten a call into JSON and named tensors; `unpack_call` undoes it.

    Args:
        kept: under which number the other side keeps the weights, if it does.
        send: the weights go along; otherwise the other side has them under that number.
    """
    head: dict[str, Any] = {
        "part": call.target.part,
        "operation": call.operation,
        "config": dict(call.config),
        "weights": call.weights is not None,
        "kept": kept,
        "runs": [],
        "dtype": str(call.dtype).removeprefix("torch."),
        "neighbours": [dict(config) for config in call.neighbours],
    }
    head |= {name: value for name in _PLAIN if (value := getattr(call, name)) != _USUAL[name]}
    weights = call.weights if send and call.weights is not None else {}
    tensors = {f"w/{name}": tensor for name, tensor in weights.items()}
    # What several runs have in common travels once.
    first_place: dict[int, str] = {}
    for index, run in enumerate(call.runs):
        places = {name: first_place.setdefault(id(t), f"{index}/{name}") for name, t in run.tensors.items()}
        head["runs"].append({"tensors": places, "arguments": dict(run.arguments)})
        tensors |= {places[name]: tensor for name, tensor in run.tensors.items()}
    return head, tensors


def unpack_call(
    head: Mapping[str, Any],
    tensors: Mapping[str, torch.Tensor],
    targets: Mapping[str, Target],
    kept: Kept,
) -> Call:
    """Rebuild the call that `pack_call` flattened.

    Args:
        targets: by part.
        kept: weights by number, of the calls before; takes those of this one.
    """
    weights = _grouped(tensors).get("w", {})
    number = head["kept"]
    if weights and number is not None:
        kept[number] = {name: tensor.numpy().copy() for name, tensor in weights.items()}
    elif number in kept:
        weights = {name: torch.from_numpy(array) for name, array in kept[number].items()}
    return Call(
        target=targets[head["part"]],
        operation=head["operation"],
        config=head["config"],
        weights=weights if head["weights"] else None,
        runs=[
            Run({name: tensors[place] for name, place in run["tensors"].items()}, run["arguments"])
            for run in head["runs"]
        ],
        dtype=DTYPES[head["dtype"]],
        neighbours=head["neighbours"],
        **{name: head[name] for name in _PLAIN if name in head},
    )


def pack_targets(targets: Mapping[str, Target]) -> dict[str, list[Any]]:
    """Targets by part as JSON; `unpack_targets` undoes it."""
    return {part: list(astuple(target)) for part, target in targets.items()}


def unpack_targets(head: Mapping[str, list[Any]]) -> dict[str, Target]:
    """Rebuild the targets."""
    return {part: Target(*names[:2], *map(tuple, names[2:])) for part, names in head.items()}


def pack_answer(answer: Answer) -> tuple[dict[str, Any], Tensors]:
    """Flatten an answer into JSON and named tensors; `unpack_answer` undoes it."""
    head = {"answer": {"runs": len(answer.runs), "facts": answer.facts}}
    tensors = {
        f"{index}/{name}": tensor for index, run in enumerate(answer.runs) for name, tensor in run.items()
    }
    return head, tensors


def unpack_answer(head: object, tensors: Mapping[str, torch.Tensor], call: Call) -> Answer:
    """Rebuild the answer that `pack_answer` flattened.

    Args:
        call: what was asked for. An answer has as many runs, or none, and nothing of a forward but its
            outputs: all tensors share their memory, so that one too many would be kept with the others.
    """
    if not isinstance(head, dict) or not isinstance(head.get("facts"), dict):
        raise MalformedFrame("the answer has no facts")
    if type(head.get("runs")) is not int or head["runs"] not in (0, len(call.runs)):
        raise MalformedFrame(f"the answer is not about the {len(call.runs)} runs that were asked for")
    by_run = _grouped(tensors)
    names = {name for run in by_run.values() for name in run}
    strangers = names - set(call.target.outputs) if call.operation == "forward" else ()
    if strangers or not by_run.keys() <= {str(index) for index in range(head["runs"])}:
        raise MalformedFrame("the answer has tensors that were not asked for")
    return Answer([by_run.get(str(index), {}) for index in range(head["runs"])], head["facts"])


def pack_error(error: SubmissionError) -> dict[str, Any]:
    """An error as JSON; `unpack_error` undoes it."""
    kind = type(error).__name__
    return {"error": {"kind": kind, "sentence": error.sentence, "where": error.where}}


def unpack_error(head: object) -> SubmissionError:
    """Rebuild the error, its text made safe to show."""
    if not isinstance(head, dict) or not all(isinstance(text, str) for text in head.values()):
        raise MalformedFrame("the error is not made of texts")
    if set(head) != {"kind", "sentence", "where"} or head["kind"] not in ERRORS:
        raise MalformedFrame("the error is of no known kind")
    return ERRORS[head["kind"]](one_line(head["sentence"]), one_line(head["where"], 200))


def pack_layers(layers: Mapping[str, Layer]) -> dict[str, list[Any]]:
    """Layers by name as JSON; `unpack_layers` undoes it."""
    return {name: list(astuple(layer)) for name, layer in layers.items()}


def unpack_layers(head: Mapping[str, list[Any]]) -> dict[str, Layer]:
    """Rebuild the layers; the worker says them before it has any code of a student's."""
    return {name: Layer(*layer) for name, layer in head.items()}


def pack_uses(uses: Iterable[Use]) -> list[list[Any]]:
    """The first `MAX_USES` forbidden uses as JSON; `unpack_uses` undoes it."""
    return [[use.part, use.file, use.line, use.operator] for use in islice(uses, MAX_USES)]


def unpack_uses(head: object) -> list[Use]:
    """Rebuild the forbidden uses, their texts made safe to show."""
    if not isinstance(head, list) or len(head) > MAX_USES:
        raise MalformedFrame("the forbidden uses are no list")
    uses = []
    for entry in head:
        if not isinstance(entry, list) or [type(field) for field in entry] != [str, str, int, str]:
            raise MalformedFrame("a forbidden use is not part, file, line and operator")
        part, file, line, operator = entry
        uses.append(Use(one_line(part, 100), one_line(file, 200), line, one_line(operator, 200)))
    return uses


def _grouped(tensors: Mapping[str, torch.Tensor]) -> dict[str, Tensors]:
    """By what stands before the first slash of their names."""
    groups: dict[str, Tensors] = {}
    for name, tensor in tensors.items():
        group, _, own = name.partition("/")
        groups.setdefault(group, {})[own] = tensor
    return groups
