"""One contract over both backends: who answers a call cannot be told from the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from grader.assignment import Assignment
from grader.in_process import InProcessSubmission
from grader.loader import SubmissionModules
from grader.sandbox.backend import SandboxSubmission, Source
from grader.sandbox.budget import Budget, TimeLimits
from grader.sandbox.confine import Limits
from grader.sandbox.zygote import Zygote
from grader.submission import (
    BadReturn,
    Call,
    NotImportable,
    OutOfMemory,
    PartMissing,
    Raised,
    Run,
    StubReached,
    Submission,
    SubmissionError,
    TimedOut,
    WrongParameters,
)
from tests.submissions import reference, submission

Open = Callable[[dict[str, str]], Submission]


@pytest.fixture(params=["in_process", "sandbox"])
def opened(request: pytest.FixtureRequest, assignment: Assignment, zygote: Zygote) -> Iterator[Open]:
    """Open a submission behind the backend; it is closed at the end."""
    open_ones: list[Submission] = []

    def open_one(files: dict[str, str]) -> Submission:
        found = submission(files)
        one: Submission
        if request.param == "in_process":
            modules = SubmissionModules(found.files, found.parts)
            one = InProcessSubmission(modules, assignment.classes, call_s=3.0)
        else:
            source = Source(found.files, found.parts, assignment.targets)
            one = SandboxSubmission(source, zygote, Budget(TimeLimits(call_s=3.0)), Limits(384 << 20))
        open_ones.append(one)
        return one

    yield open_one
    for one in open_ones:
        one.close()


def call(assignment: Assignment, part: str, operation: str, **options: object) -> Call:
    """A call with sizes that every part takes."""
    sizes = {"d_model": 6, "n_heads": 2} | ({"d_ff": 5} if part == "block" else {})
    return Call(
        assignment.parts[part].target,
        operation,
        **({"config": {} if part == "attention" else sizes} | options),
    )


def qkv(**more: torch.Tensor) -> Run:
    """Inputs of one attention."""
    return Run({name: torch.ones(2, 3, 4, dtype=torch.float64) for name in "qkv"} | more)


def test_forward_gives_the_outputs_by_name(opened: Open, assignment: Assignment) -> None:
    """Every run its own tensors, in the order asked; the caller's tensors are its own."""
    one = opened(reference())
    mask = torch.tensor([True, False, False])
    runs = [qkv(), qkv(mask=mask)]
    answer = one.call(call(assignment, "attention", "forward", runs=runs))
    assert [sorted(run) for run in answer.runs] == [["output", "weights"]] * 2
    assert answer.runs[0]["weights"][0, 0].tolist() == pytest.approx([1 / 3] * 3)
    assert answer.runs[1]["weights"][0, 0].tolist() == pytest.approx([0, 0.5, 0.5])
    assert answer.facts["changed"] == [[], []]
    assert answer.runs[0]["output"].dtype is torch.float64


def test_arguments_changed_in_place_are_told_and_are_copies(opened: Open, assignment: Assignment) -> None:
    """A student's edit reaches a copy; its name is told."""
    files = reference()
    files["attention.py"] = files["attention.py"].replace(
        "        d_head = q", "        v += 1\n        d_head = q"
    )
    run = qkv()
    answer = opened(files).call(call(assignment, "attention", "forward", runs=[run]))
    assert answer.facts["changed"] == [["v"]]
    assert bool((run.tensors["v"] == 1).all())


def test_weights_are_loaded_by_name_and_travel_with_the_call(opened: Open, assignment: Assignment) -> None:
    """A call without weights after one with weights has the student's own, drawn under the seed."""
    one = opened(reference())
    x = {"x": torch.randn(1, 2, 6, dtype=torch.float64)}
    shapes = {"qkv.weight": (18, 6), "qkv.bias": (18,), "proj.weight": (6, 6), "proj.bias": (6,)}
    weights = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()}
    plain = call(assignment, "multi_head", "forward", runs=[Run(x)], seed=3)
    before = one.call(plain).runs[0]["output"]
    zeros = one.call(call(assignment, "multi_head", "forward", runs=[Run(x)], weights=weights)).runs[0][
        "output"
    ]
    assert bool((zeros == 0).all())
    assert torch.equal(one.call(plain).runs[0]["output"], before)


def test_weights_that_do_not_fit(opened: Open, assignment: Assignment) -> None:
    """Required ones are refused; others leave the student's own in place."""
    one = opened(reference())
    runs = [Run({"x": torch.ones(1, 2, 6, dtype=torch.float64)})]
    options = {"runs": runs, "weights": {"other.weight": torch.ones(2, 2)}}
    assert one.call(call(assignment, "multi_head", "forward", **options)).runs
    with pytest.raises(WrongParameters, match=r"other\.weight"):
        one.call(call(assignment, "multi_head", "forward", weights_required=True, **options))


def test_weights_that_are_known_by_name(opened: Open, assignment: Assignment) -> None:
    """They count in every call that names them, however often they travel, and tell whether they fitted."""
    one = opened(reference())
    x = torch.randn(1, 2, 6, dtype=torch.float64)
    for name, size in (("one", 1.0), ("other", 2.0), ("one", 1.0), ("other", 2.0)):
        weights = {"proj.weight": torch.zeros(6, 6).double(), "proj.bias": torch.full((6,), size).double()}
        options = {"runs": [Run({"x": x})], "weights": weights, "weights_name": name}
        answer = one.call(call(assignment, "multi_head", "forward", **options))
        assert torch.equal(answer.runs[0]["output"], torch.full_like(x, size))
        assert answer.facts["loaded"] is True
    weights = {"proj.bias": torch.zeros(7)}
    asked = call(assignment, "multi_head", "forward", runs=[Run({"x": x})], weights=weights)
    assert one.call(asked).facts["loaded"] is False


def test_gradients_of_inputs_and_parameters(opened: Open, assignment: Assignment) -> None:
    """By name, summed over what comes back into the outputs."""
    run = Run({"x": torch.ones(1, 2, 6).double(), "grad.output": torch.ones(1, 2, 6).double()})
    answer = opened(reference()).call(call(assignment, "multi_head", "gradients", runs=[run]))
    assert sorted(answer.runs[0]) == ["proj.bias", "proj.weight", "qkv.bias", "qkv.weight", "x"]
    assert answer.runs[0]["proj.bias"].tolist() == [2.0] * 6
    assert answer.facts["heads"] == [["output"]]


def test_a_stack_chains_instances(opened: Open, assignment: Assignment) -> None:
    """Three blocks with weights of their own, one behind the other."""
    one = opened(reference())
    x = {"x": torch.randn(1, 2, 6, dtype=torch.float64)}
    names = one.call(call(assignment, "block", "parameters")).facts["parameters"]
    weights = {
        f"{i}.{name}": torch.full(shape, 0.1 * (i + 1)).double()
        for i in range(3)
        for name, shape, *_ in names
    }
    stacked = one.call(call(assignment, "block", "forward", runs=[Run(x)], weights=weights, depth=3)).runs[0][
        "output"
    ]
    for i in range(3):
        own = {name: weights[f"{i}.{name}"] for name, *_ in names}
        x = {
            "x": one.call(call(assignment, "block", "forward", runs=[Run(x)], weights=own)).runs[0]["output"]
        }
    assert torch.equal(stacked, x["x"])


def test_parameters_tell_names_shapes_and_identity(opened: Open, assignment: Assignment) -> None:
    """A module under two names has its parameters twice, as one."""
    files = reference()
    files["multi_head.py"] = files["multi_head.py"].replace(
        "        self.attention =",
        "        self.again = self.proj\n        self.proj.bias.requires_grad_(False)\n        self.attention =",
    )
    facts = opened(files).call(call(assignment, "multi_head", "parameters")).facts["parameters"]
    by_name = {name: (tuple(shape), trainable, identity) for name, shape, trainable, identity in facts}
    assert by_name["again.bias"] == by_name["proj.bias"] == ((6,), False, by_name["proj.bias"][2])
    assert by_name["qkv.weight"][:2] == ((18, 6), True)
    assert len({identity for *_, identity in by_name.values()}) == 4


def test_construct_tells_what_is_raised(opened: Open, assignment: Assignment) -> None:
    """By the names of its classes; nothing, if it is constructed."""
    one = opened(reference())
    assert one.call(call(assignment, "multi_head", "construct")).facts == {"raised": []}
    bad = call(assignment, "multi_head", "construct", config={"d_model": 5, "n_heads": 2})
    assert one.call(bad).facts["raised"][0] == "ValueError"


ERRORS: dict[str, tuple[str, type[SubmissionError], str]] = {
    "raise ValueError('at 0x7f00deadbeef')": ("forward", Raised, "ValueError: at 0x..."),
    "raise NotImplementedError": ("forward", StubReached, "not implemented"),
    "torch.ones(1) | torch.ones(1)": (
        "forward",
        Raised,
        "NotImplementedError: .* not implemented for 'Float'",
    ),
    "raise MemoryError": ("forward", OutOfMemory, "memory"),
    "raise RuntimeError('std::bad_alloc')": ("forward", OutOfMemory, "memory"),
    "return q": ("forward", BadReturn, "a single tensor"),
    "while True: pass": ("forward", TimedOut, "no answer within 3 s"),
    "class A: 1/0": ("top", NotImportable, "ZeroDivisionError"),
    "del ScaledDotProductAttention": ("top", PartMissing, "not ScaledDotProductAttention"),
}


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_is_the_same_behind_both(opened: Open, assignment: Assignment, code: str) -> None:
    """Its kind, its sentence, and where it was."""
    place, kind, sentence = ERRORS[code]
    files = reference()
    if place == "top":
        files["attention.py"] += f"\n{code}\n"
    else:
        files["attention.py"] = files["attention.py"].replace(
            "        d_head = q", f"        {code}\n        d_head = q"
        )
    one = opened(files)
    with pytest.raises(kind, match=sentence) as caught:
        one.call(call(assignment, "attention", "forward", runs=[qkv()]))
    if kind is not TimedOut:
        assert caught.value.where.startswith("attention.py")
    if kind in (Raised, NotImportable):
        line = files["attention.py"].splitlines().index(f"        {code}" if place != "top" else code) + 1
        assert caught.value.where == f"attention.py:{line}"
    if place != "top":  # the next call is answered as if nothing had been
        assert one.call(call(assignment, "block", "parameters")).facts["parameters"]


def test_process_wide_switches_do_not_outlive_a_call(opened: Open, assignment: Assignment) -> None:
    """A default dtype or a switched-off autograd of one call is not there in the next."""
    files = reference()
    files["attention.py"] = files["attention.py"].replace(
        "        d_head = q",
        "        torch.set_default_dtype(torch.float64)\n        torch.set_grad_enabled(False)\n        d_head = q",
    )
    files["own.py"] = reference()["attention.py"]
    files["multi_head.py"] = files["multi_head.py"].replace("from .attention", "from .own")
    one = opened(files)
    one.call(call(assignment, "attention", "forward", runs=[qkv()]))
    assert (torch.is_grad_enabled(), torch.get_default_dtype()) == (True, torch.float32)
    run = Run({"x": torch.ones(1, 2, 6).double(), "grad.output": torch.ones(1, 2, 6).double()})
    assert "x" in one.call(call(assignment, "multi_head", "gradients", runs=[run])).runs[0]


SHARED = {
    "for the class": ("self.n_heads = n_heads", "MultiHeadSelfAttention.n_heads = n_heads"),
    "of all of a size": (
        "self.proj = nn.Linear(d_model, d_model)",
        "self.proj = MultiHeadSelfAttention.made.setdefault(d_model, nn.Linear(d_model, d_model))",
    ),
    "from older weights": (
        "qkv = self.qkv(x)",
        "self.kept = getattr(self, 'kept', self.qkv.bias.clone()); qkv = (self.qkv(x) + self.kept)",
    ),
}


@pytest.mark.parametrize("kept", [*SHARED, None])
def test_what_is_kept_shows_among_neighbours(opened: Open, assignment: Assignment, kept: str | None) -> None:
    """An instance that has a past and neighbours gives the same, unless it keeps what it should not."""
    files = reference()
    if kept is not None:
        files["multi_head.py"] = files["multi_head.py"].replace(*SHARED[kept])
        files["multi_head.py"] += "\n\nMultiHeadSelfAttention.made = {}\n"
    shapes = {"qkv.weight": (18, 6), "qkv.bias": (18,), "proj.weight": (6, 6), "proj.bias": (6,)}
    weights = {name: torch.ones(shape, dtype=torch.float64) for name, shape in shapes.items()}
    options = {"runs": [Run({"x": torch.randn(1, 3, 6, dtype=torch.float64)})], "weights": weights}
    one = opened(files)
    alone = one.call(call(assignment, "multi_head", "forward", **options))
    neighbours = [{"d_model": 6, "n_heads": 2}, {"d_model": 9, "n_heads": 3}]
    among = one.call(call(assignment, "multi_head", "forward", neighbours=neighbours, **options))
    same = torch.equal(alone.runs[0]["output"], among.runs[0]["output"])
    assert same is (kept is None)


def test_strided_inputs_have_the_same_values(opened: Open, assignment: Assignment) -> None:
    """They only lie otherwise, where there are three dimensions or more."""
    files = reference()
    files["attention.py"] = files["attention.py"].replace(
        "        d_head = q", "        q = q if q.is_contiguous() else q + 1\n        d_head = q"
    )
    one = opened(files)
    runs = [
        Run({n: torch.randn(2, 3, 4, dtype=torch.float64) for n in "qkv"}),
        Run(dict.fromkeys("qkv", torch.eye(4))),
    ]
    plain = one.call(call(assignment, "attention", "forward", runs=runs, dtype=torch.float64))
    strided = one.call(call(assignment, "attention", "forward", runs=runs, strided=True))
    assert not torch.equal(plain.runs[0]["output"], strided.runs[0]["output"])
    assert torch.equal(plain.runs[1]["output"], strided.runs[1]["output"])
    assert strided.facts["changed"] == [[], []]


LEFT_BEHIND = {
    "attribute": ("self.mask = torch.ones(9, 9).triu(1).bool()", "mask = self.mask[:T, :T]", True),
    "in a list": ("self.masks = [torch.ones(9, 9).triu(1).bool()]", "mask = self.masks[0][:T, :T]", True),
    "buffer": (
        "self.register_buffer('mask', torch.ones(9, 9).triu(1).bool())",
        "mask = self.mask[:T, :T]",
        False,
    ),
    "moved": ("self.mask = torch.ones(9, 9).triu(1).bool()", "mask = self.mask[:T, :T].to(x.device)", False),
    "moved if need be": (
        "self.mask = torch.ones(9, 9).triu(1).bool()",
        "self.mask = self.mask if self.mask.device == x.device else self.mask.to(x.device); "
        "mask = self.mask[:T, :T]",
        False,
    ),
    "the device is kept": (
        "self.mask = torch.ones(9, 9).triu(1).bool(); self.where = self.mask.device",
        "self.mask = self.mask if self.where == x.device else self.mask.to(x.device); mask = self.mask[:T, :T]",
        False,
    ),
    "the device is kept for nothing": (
        "self.where = torch.device('cpu'); self.mask = torch.ones(9, 9, device=self.where).triu(1).bool()",
        "mask = self.mask[:T, :T]",
        True,
    ),
    "its own device is asked": (
        "self.mask = torch.ones(9, 9).triu(1).bool()",
        "mask = self.mask[:T, :T] | torch.zeros(T, T, dtype=torch.bool, device=self.mask.device)",
        True,
    ),
    "sent if need be": (
        "self.mask = torch.ones(9, 9).triu(1).bool()",
        "mask = self.mask[:T, :T]; mask = mask.cuda() if x.is_cuda else mask",
        False,
    ),
    "made again there": (
        "self.mask = torch.ones(9, 9).triu(1).bool()",
        "mask = torch.as_tensor(self.mask, device=x.device)[:T, :T]",
        False,
    ),
    "a device that is not there": (
        "self.mask = torch.ones(9, 9).triu(1).bool()",
        "mask = torch.empty_like(self.mask, device='cuda:0') if x.is_cuda else self.mask[:T, :T]; "
        "torch.Generator(x.device)",
        False,
    ),
    "made there": ("pass", "mask = torch.ones(T, T).triu(1).bool()", False),
    "a number": ("self.factor = torch.tensor(1.0)", "x = x * self.factor", False),
}


@pytest.mark.parametrize("kept", LEFT_BEHIND)
def test_what_a_move_would_leave_behind(opened: Open, assignment: Assignment, kept: str) -> None:
    """Plain attributes that meet the input are found, with their line; all else is let pass."""
    made, used, found = LEFT_BEHIND[kept]
    files = reference()
    source = files["multi_head.py"].replace("self.n_heads = n_heads", f"self.n_heads = n_heads; {made}")
    source = source.replace("if causal:\n", f"if causal:\n            {used}\n")
    files["multi_head.py"] = source.replace("            mask = torch.ones_like(mask).triu(1)\n", "")
    one = opened(files)
    asked = call(
        assignment, "multi_head", "forward", runs=[Run({"x": torch.ones(1, 3, 6).double()})], elsewhere=True
    )
    if not found:
        assert one.call(asked).runs
        return
    with pytest.raises(
        Raised, match=r"two devices: a tensor of shape \(3, 3\) that comes from a plain attribute"
    ) as caught:
        one.call(asked)
    assert caught.value.where.startswith("attention.py:")  # where the two meet


def test_parameters_that_cannot_be_read_are_the_students_fault(opened: Open, assignment: Assignment) -> None:
    """Also where they are only looked at, not used."""
    files = reference()
    files["multi_head.py"] += "\n\nMultiHeadSelfAttention.parameters = lambda self, recurse=True: 1 / 0\n"
    run = Run({"x": torch.ones(1, 3, 6).double()})
    with pytest.raises(Raised, match="reading the parameters raised ZeroDivisionError"):
        opened(files).call(call(assignment, "multi_head", "forward", runs=[run], elsewhere=True))
