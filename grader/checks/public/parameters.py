"""What the parameters of a part must be; shared by the parts that have some."""

from __future__ import annotations

from grader import expect
from grader.cases import Case
from grader.client import ParameterFact, PartClient


def expect_parameters(client: PartClient, case: Case) -> None:
    """Names and shapes are those of the case's weights, nothing further, and all of them train.

    A parameter may be known by further names (a module that stands in two places); distinct ones that
    the contract does not name are too many.
    """
    wanted = {name: tuple(tensor.shape) for name, tensor in (case.weights or {}).items()}
    found = client.parameters(case)
    by_name = {fact.name: fact for fact in found}

    absent = [name for name in wanted if name not in by_name]
    expect.that(
        not absent,
        f"the parameters are {', '.join(wanted)}",
        f"there is no {', '.join(absent)}; there is {_names(found)}",
    )
    for name, shape in wanted.items():
        observed = by_name[name].shape
        expect.that(observed == shape, f"{name} has shape {shape}", f"{name} has shape {observed}")
    named = {by_name[name].identity for name in wanted}
    expect.that(
        len(named) == len(wanted),
        "every name of the contract is a parameter of its own",
        f"only {len(named)} of {len(wanted)} are distinct",
    )
    further = [fact for fact in found if fact.identity not in named]
    expect.that(
        not further,
        f"there are no parameters beside {', '.join(wanted)}",
        f"there is also {_names(further)}",
    )
    frozen = [name for name in wanted if not by_name[name].trainable]
    expect.that(not frozen, "every parameter trains", f"requires_grad is False for {', '.join(frozen)}")


def count(facts: list[ParameterFact]) -> int:
    """Number of values in all distinct parameters."""
    sizes: dict[int, int] = {}
    for fact in facts:
        size = 1
        for length in fact.shape:
            size *= length
        sizes[fact.identity] = size
    return sum(sizes.values())


def _names(facts: list[ParameterFact]) -> str:
    shown = [f"{fact.name} {fact.shape}" for fact in facts[:8]]
    more = f" and {len(facts) - 8} more" if len(facts) > 8 else ""
    return (", ".join(shown) or "no parameter at all") + more
