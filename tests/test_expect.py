"""What checks say of tensors, and how they say it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from grader import expect
from grader.expect import CheckFailure
from grader.text import clean, one_line

NAN, INF = float("nan"), float("inf")
TWO = torch.tensor([[1.0, 2.0]], dtype=torch.float64)


def told(check: Callable[[], None]) -> tuple[str, str]:
    """What a failing expectation says was expected and observed."""
    with pytest.raises(CheckFailure) as caught:
        check()
    return caught.value.expected, caught.value.observed


def test_close_names_the_first_offender_and_how_many() -> None:
    """Index, both values, count, largest gap."""
    expected, observed = told(lambda: expect.close(TWO + torch.tensor([0, 0.5]), TWO, "output", "torch's"))
    assert expected == "output equals torch's (within 2e-05)"
    assert observed == "output[0, 1] is 2.5, not 2; 1 of 2 values is wrong, by up to 0.5"


def test_equal_infinities_are_close() -> None:
    """Only to themselves; what is finite beside them is measured by what is finite."""
    both = torch.tensor([INF, -INF, 1.0])
    expect.close(both, both, "x", "itself")
    assert told(lambda: expect.close(both + torch.tensor([0, 0, 0.1]), both, "x", "y"))[1].startswith("x[2]")
    assert told(lambda: expect.close(both, both.flip(0).roll(-1), "x", "y"))[1].startswith("x[0] is inf, not")


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_nan_and_infinity_are_never_close(bad: float) -> None:
    """To no number; NaN not even to itself."""
    tensor = torch.tensor([bad, 1.0])
    assert told(lambda: expect.close(tensor, torch.ones(2), "x", "1"))[1].startswith(
        f"x[0] is {bad:.5g}, not 1"
    )
    if bad != bad:
        told(lambda: expect.close(tensor, tensor, "x", "itself"))
        told(lambda: expect.identical(tensor, tensor, "x", "is itself"))
        told(lambda: expect.differs(tensor, torch.ones(2), "x", "after an edit"))
    told(lambda: expect.finite(tensor, "x"))


def test_tolerance_grows_with_the_largest_value_and_with_float32() -> None:
    """1e-5 of the largest expected value; five times that for what was computed in float32."""
    big = torch.tensor([1000.0, 0.0], dtype=torch.float64)
    expect.close(big + 0.009, big, "x", "y")
    told(lambda: expect.close(big + 0.011, big, "x", "y"))
    told(lambda: expect.close(TWO + 3e-5, TWO, "x", "y"))
    expect.close((TWO + 3e-5).float(), TWO, "x", "y")
    told(lambda: expect.close((TWO + 3e-4).float(), TWO, "x", "y"))


def test_identical_sees_the_last_bit() -> None:
    """And takes 0 and -0 for the same value."""
    expect.identical(TWO, TWO.clone(), "x", "is the same")
    expect.identical(torch.tensor([0.0]), torch.tensor([-0.0]), "x", "is the same")
    expected, _ = told(lambda: expect.identical(TWO * (1 + 2e-16), TWO, "x", "is the same"))
    assert expected == "x is the same, exactly"


def test_zero_looks_only_where_it_is_told() -> None:
    """Exactly 0 there, anything elsewhere."""
    where = torch.tensor([[False, True]])
    expect.zero(torch.tensor([[5.0, 0.0]]), where, "w", "where blocked")
    assert told(lambda: expect.zero(TWO * 1e-30, where, "w", "where blocked")) == (
        "w is exactly 0 where blocked",
        "w[0, 1] is 2e-30, not 0; 1 of 2 values is wrong, by up to 2e-30",
    )
    told(lambda: expect.zero(TWO * NAN, where, "w", "where blocked"))


def test_the_other_expectations() -> None:
    """Each passes on what it asks for, and fails on the opposite."""
    expect.differs(TWO + 1e-6, TWO, "x", "after an edit")
    told(lambda: expect.differs(TWO.clone(), TWO, "x", "after an edit"))
    expect.at_least_zero(TWO, "x")
    told(lambda: expect.at_least_zero(-TWO, "x"))
    told(lambda: expect.at_least_zero(TWO * NAN, "x"))
    expect.finite(TWO, "x")
    expect.that(True, "a", "b")
    assert told(lambda: expect.that(False, "a", "b")) == ("a", "b")
    expect.close(torch.zeros(0), torch.zeros(0), "x", "nothing")
    scalar = told(lambda: expect.close(torch.tensor(1.0), torch.tensor(3.0), "x", "3"))[1]
    assert scalar.startswith("x is 1, not 3")


def test_text_of_a_students_is_made_safe() -> None:
    """No control characters, no lone surrogates, cut to size, letters of all scripts kept."""
    assert clean("a\x1b[31mb\x00\udce4é\n\tü") == "a\ufffd[31mb\ufffd\ufffdé\n\tü"
    assert len(clean("x" * 10_000, 100)) <= 100
    assert "[...]" in clean("x" * 10_000, 100)
    assert one_line("a\n\n b\tc") == "a b c"
    clean("\ud800" * 10).encode()


def test_values_that_are_nearly_equal_are_told_apart() -> None:
    """As many digits as show the difference, and no more."""
    have, want = torch.tensor([0.290491], dtype=torch.float64), torch.tensor([0.29048], dtype=torch.float64)
    assert told(lambda: expect.close(have, want, "x", "y"))[1] == "x[0] is 0.290491, not 0.29048"
    last_bit = torch.nextafter(want, have)
    assert told(lambda: expect.identical(last_bit, want, "x", "y"))[1] == (
        "x[0] is 0.29048000000000007, not 0.29048000000000002"
    )
