"""What checks say of tensors: each function passes or raises a `CheckFailure` that a student can read.

Tensors reach these functions as plain values of the expected shape (`client` sees to that). NaN is
never equal to anything, and is named when it is there.
"""

from __future__ import annotations

import math

import torch

TOLERANCE = 1e-5
"""For values computed in float64; leaves room for a student who computes in float32 inside."""

FLOAT32_TOLERANCE = 5e-5
"""For code that cannot run in float64 at all (which costs it the dtype check)."""


class CheckFailure(Exception):
    """The property does not hold; the failure is data, the sentence is rendered from it.

    Attributes:
        expected: the property, with its tolerance.
        observed: the first offending value, where it stands, how many differ and by how much.
        note: what was done beside the case's own data, for the line "given".
        grid: a picture of who sees whom, if that is what is wrong; several lines.
    """

    def __init__(self, expected: str, observed: str, note: str = "", grid: str = "") -> None:
        super().__init__(observed)
        self.expected = expected
        self.observed = observed
        self.note = note
        self.grid = grid


def close(
    observed: torch.Tensor,
    expected: torch.Tensor,
    name: str,
    law: str,
    *,
    tolerance: float | None = None,
    note: str = "",
) -> None:
    """`observed` equals `expected` up to `tolerance` times the size of the largest expected value.

    Args:
        name: what the tensor is called in the message.
        law: what it should be equal to, completing "NAME equals ...".
        tolerance: None for the usual one of the dtype that the student's code ran in.
    """
    __tracebackhide__ = True
    if tolerance is None:
        tolerance = FLOAT32_TOLERANCE if observed.dtype is torch.float32 else TOLERANCE
    have, want = observed.double(), expected.double()
    largest, gaps = _largest(want), have - want
    if not math.isfinite(largest):
        largest = _largest(want[torch.isfinite(want)])
        gaps = gaps.masked_fill(have == want, 0.0)  # of infinities
    allowed = tolerance * max(1.0, largest)
    # Written so that NaN is wrong: it compares false with everything.
    if _largest(gaps) <= allowed:
        return
    wrong = ~(gaps.abs() <= allowed)
    raise CheckFailure(
        f"{name} equals {law} (within {_rounded(allowed):g})", _difference(have, want, wrong, name), note
    )


def identical(observed: torch.Tensor, expected: torch.Tensor, name: str, law: str, *, note: str = "") -> None:
    """`observed` has exactly the values of `expected`."""
    __tracebackhide__ = True
    if torch.equal(observed, expected):
        return
    have, want = observed.double(), expected.double()
    wrong = ~(observed == expected) if observed.dtype is expected.dtype else ~(have == want)
    if not bool(wrong.any()):
        return  # the same values in another dtype, which is not what is asked here
    raise CheckFailure(f"{name} {law}, exactly", _difference(have, want, wrong, name), note)


def differs(observed: torch.Tensor, unwanted: torch.Tensor, name: str, when: str, *, note: str = "") -> None:
    """`observed` has somewhere another value than `unwanted`, and no NaN.

    Args:
        when: completing "NAME changes ...".
    """
    __tracebackhide__ = True
    finite(observed, name)
    if not bool(((observed.double() - unwanted.double()).abs() > 1e-9).any()):
        raise CheckFailure(f"{name} changes {when}", f"{name} does not change at all {when}", note)


def zero(observed: torch.Tensor, where: torch.Tensor, name: str, law: str, *, note: str = "") -> None:
    """`observed` is exactly 0 at the places `where`, a mask of the same shape."""
    __tracebackhide__ = True
    wrong = where & ~(observed == 0)
    if bool(wrong.any()):
        have = observed.double()
        raise CheckFailure(
            f"{name} is exactly 0 {law}", _difference(have, torch.zeros_like(have), wrong, name), note
        )


def finite(observed: torch.Tensor, name: str, law: str = "is finite", *, note: str = "") -> None:
    """`observed` has neither NaN nor an infinity."""
    __tracebackhide__ = True
    if math.isfinite(_largest(observed.double())):
        return
    wrong = ~torch.isfinite(observed)
    index = _first(wrong)
    raise CheckFailure(
        f"{name} {law}",
        f"{_at(name, index)} is {_value(observed[index])}"
        + counted(int(wrong.sum()), wrong.numel(), "not finite"),
        note,
    )


def at_least_zero(observed: torch.Tensor, name: str) -> None:
    """`observed` has no negative value and no NaN."""
    __tracebackhide__ = True
    wrong = ~(observed >= 0)
    if bool(wrong.any()):
        index = _first(wrong)
        raise CheckFailure(f"{name} is nowhere negative", f"{_at(name, index)} is {_value(observed[index])}")


def that(holds: bool, expected: str, observed: str, *, note: str = "") -> None:
    """`holds`; both sentences are the caller's."""
    __tracebackhide__ = True
    if not holds:
        raise CheckFailure(expected, observed, note)


def _largest(values: torch.Tensor) -> float:
    """The largest absolute value, NaN where there is one; 0 of nothing."""
    return float(torch.linalg.vector_norm(values, math.inf)) if values.numel() else 0.0


def _difference(have: torch.Tensor, want: torch.Tensor, wrong: torch.Tensor, name: str) -> str:
    nan = int(torch.isnan(have[wrong]).sum())
    if nan:
        index = _first(wrong & torch.isnan(have))
        wanted = "" if bool(torch.isnan(want[index])) else f", not {_value(want[index])}"
        return f"{_at(name, index)} is nan{wanted}" + counted(nan, wrong.numel(), "nan")
    index = _first(wrong)
    gaps = (have - want)[wrong].abs()
    worst = float(gaps.max())
    wrongly = "wrong" + (f", by up to {worst:.{2 if worst > 1e-3 else 3}g}" if math.isfinite(worst) else "")
    digits = _digits(have[index], want[index])
    first = f"{_at(name, index)} is {_value(have[index], digits)}, not {_value(want[index], digits)}"
    return first + counted(int(wrong.sum()), wrong.numel(), wrongly)


def _digits(have: torch.Tensor, want: torch.Tensor) -> int:
    """How many show that the two are different, and by what."""
    size, gap = float(torch.max(have.abs(), want.abs())), float((have - want).abs())
    if not (math.isfinite(gap) and gap):
        return 5
    return min(17, max(5, math.ceil(math.log10(size / gap)) + 2))


def _rounded(value: float) -> float:
    """To one digit, as tolerances are told."""
    return float(f"{value:.0e}")


def counted(number: int, of: int, what: str, values: str = "values") -> str:
    """How many values are so; of a single one there is nothing to count."""
    return "" if of == 1 else f"; {number} of {of} {values} {'is' if number == 1 else 'are'} {what}"


def _first(wrong: torch.Tensor) -> tuple[int, ...]:
    return tuple(int(position) for position in wrong.nonzero()[0])


def _at(name: str, index: tuple[int, ...]) -> str:
    """The name of one value: `output[0, 1]`, or `output of sequence 0, at [0, 1],`."""
    if not index:
        return name
    return f"{name}{list(index)}" if name.isidentifier() else f"{name.rstrip(',')}, at {list(index)},"


def _value(scalar: torch.Tensor, digits: int = 5) -> str:
    return f"{float(scalar):.{digits}g}"
