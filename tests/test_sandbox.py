"""What a submission does to its own process is an outcome with a sentence; the rest is unharmed."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch

from grader.assignment import Assignment
from grader.grading import Grader, Options
from grader.sandbox.backend import SandboxSubmission, Source
from grader.sandbox.budget import Budget, TimeLimits
from grader.sandbox.channel import Channel
from grader.sandbox.confine import Limits
from grader.sandbox.zygote import WorkerProcess, Zygote
from grader.submission import Answer, BadReturn, Call, Died, Run, TimedOut
from tests.conftest import Grade, outcomes, output
from tests.submissions import edited, reference, submission, with_part

Opened = Callable[..., SandboxSubmission]

FORWARD = "        d_head = q.shape[-1]\n"
"""The first line of the reference's attention forward, before which a fault is put."""

FAULTS = {
    "raises": ("raise KeyError('no such thing')", "raised", "raised KeyError: 'no such thing'"),
    "exits": ("import sys; sys.exit(0)", "raised", "raised SystemExit: 0"),
    "hard-exit": ("import os; os._exit(0)", "died", "ended its own process (exit code 0)"),
    "kills-itself": ("import os; os.kill(os.getpid(), 11)", "died", "ended by SIGSEGV"),
    "out-of-memory": ("torch.ones(10**11)", "out_of_memory", "more memory than there is"),
    "list-of-memory": ("x = bytearray(1 << 40)", "out_of_memory", "more memory than there is"),
    "returns-none": ("return None", "bad_return", "returns None, not (output, weights)"),
    "returns-one": ("return v", "bad_return", "returns a single tensor, not (output, weights)"),
    "returns-strings": ("return 'output', 'weights'", "bad_return", "returns a str as output"),
    "returns-sparse": ("return v.to_sparse(), v", "bad_return", "not a plain tensor but sparse_coo"),
    "returns-meta": ("return v.to('meta'), v", "bad_return", "on the device meta"),
    "returns-complex": ("return v + 0j, v", "bad_return", "has dtype torch.complex128"),
    "returns-huge": ("return v.new_zeros(1).expand(10**10), v", "bad_return", "far too large"),
    "returns-shape": ("return v[..., :1], v", "failed", "output has shape"),
    "stub": ("raise NotImplementedError", "not_implemented", "is not implemented yet"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_forward_is_an_outcome(grade: Grade, fault: str) -> None:
    """Whatever the code does instead of answering is named, and said where."""
    code, outcome, sentence = FAULTS[fault]

    document = grade(edited("attention", (FORWARD, f"        {code}\n{FORWARD}")), "attention")

    found = set(outcomes(document).values())
    assert outcome in found
    assert "passed" not in found
    assert sentence in " ".join(output(document, "attention.shapes").split())
    assert document["score"] == 0


def test_nan_and_expanded_tensors_are_values(grade: Grade) -> None:
    """NaN is a wrong value; a tensor with strides of its own is as good as any."""
    nan = grade(edited("attention", (FORWARD, f"        v = v * float('nan')\n{FORWARD}")), "attention")
    assert outcomes(nan)["attention.torch_agrees"] == "failed"
    assert "nan" in output(nan, "attention.torch_agrees")

    strided = "(weights @ v).transpose(-1, -2).contiguous().transpose(-1, -2)"
    source = reference()["attention.py"].replace("return weights @ v,", f"return {strided},")
    assert grade(with_part("attention", source), "attention")["score"] == 30


@pytest.fixture(scope="module")
def impatient(assignment: Assignment, zygote: Zygote) -> Grader:
    """A grader that gives a call little time."""
    limits = dict(assignment.limits) | {"call_s": 1.0, "impatient_call_s": 0.5}
    return Grader(replace(assignment, limits=limits), zygote)


def test_a_hang_ends_and_costs_only_its_own_checks(impatient: Grader) -> None:
    """An endless loop under padding is timed out, and what does not pad is graded as ever."""
    edit = ("            mask = mask | key", "            while True: pass\n            mask = mask | key")
    document = impatient.grade(edited("multi_head", edit), Options(["multi_head"])).document

    found = outcomes(document)
    assert found["multi_head.padding_does_not_matter"] == "timed_out"
    assert found["multi_head.head_slices"] == "passed"
    assert found["multi_head.not_causal"] == "passed"
    assert "no answer within" in output(document, "multi_head.padding_does_not_matter")


def test_a_sleep_is_timed_out_although_it_computes_nothing(impatient: Grader) -> None:
    """Wall time ends what CPU time does not see; an import that hangs is not tried again."""
    source = "import time\ntime.sleep(10**6)\n" + reference()["attention.py"]
    document = impatient.grade(with_part("attention", source), Options(["attention"])).document
    assert document["execution_time"] < 20
    assert set(outcomes(document).values()) == {"timed_out"}


def test_output_is_drained_and_capped(grader: Grader) -> None:
    """A flood on stdout neither blocks the code nor fills the grader's memory."""
    flood = f"        print('x' * 1000000); import sys; sys.stderr.write('y' * 1000000)\n{FORWARD}"
    graded = grader.grade(edited("attention", (FORWARD, flood)))
    assert graded.document["extra_data"]["parts"]["attention"]["score"] == 30
    assert len(graded.printed) <= 64 << 10
    assert graded.printed.startswith("xxx")


class Refilled(socket.socket):
    """Whenever it is read, its other end has printed more already."""

    reads = 0
    printer: socket.socket

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Read after the other end has printed once more."""
        self.reads += 1
        assert self.reads < 1000, "somebody goes on reading"
        self.printer.send(b"yes" * 1000)
        return super().recv(size, flags)


def test_who_prints_without_end_is_not_waited_for() -> None:
    """What is there is taken; a worker that prints faster than anybody reads holds nobody up."""
    frames, theirs = socket.socketpair()
    output, printed = socket.socketpair()
    endless = Refilled(fileno=output.detach())
    endless.printer = printed
    with frames, theirs, endless, printed:
        channel = Channel(WorkerProcess(0, frames, endless))
        channel.drain()
        assert channel.output.startswith(b"yesyes")
        assert len(channel.output) == 64 << 10


def test_a_death_at_import_leaves_the_other_parts(grade: Grade) -> None:
    """A part that ends the process while it is imported takes only those with it that import it."""
    files = reference() | {"block.py": "import os\nos._exit(3)\n"}
    document = grade(submission(files))
    assert {v for k, v in outcomes(document).items() if k.startswith("block.")} == {"died"}
    assert document["score"] == 70


def attention_calls(assignment: Assignment, *sizes: int) -> list[Call]:
    """Calls of attention over so many positions each."""
    target = assignment.parts["attention"].target
    return [
        Call(target, "forward", runs=[Run({n: torch.ones(size, 4, dtype=torch.float64) for n in "qkv"})])
        for size in sizes
    ]


@pytest.fixture
def sandboxed(assignment: Assignment, zygote: Zygote) -> Iterator[Opened]:
    """Open a submission whose reference attention is edited."""
    with contextlib.ExitStack() as stack:

        def opened(code: str, memory_mb: int = 1024, **limits: float) -> SandboxSubmission:
            files = edited("attention", (FORWARD, f"        {code}\n{FORWARD}"))
            source = Source(files.files, files.parts, assignment.targets)
            budget = Budget(TimeLimits(**limits))
            one = SandboxSubmission(source, zygote, budget, Limits(memory_mb << 20))
            stack.callback(one.close)
            return one

        yield opened


FREED = {
    "in between": "self.kept = [(torch.empty(1 << 21), torch.empty(1000))[1] for _ in range(40)]",
    "in a cycle, among many": (
        "cycle = [torch.empty(1 << 24)]; cycle.append(cycle); kept = [[] for _ in range(20000)]"
    ),
    "in a cycle": "cycle = [torch.empty(1 << 24)]; cycle.append(cycle)",
}
"""What asks for far more than 200 MB in all, but never for more than 64 MB at once."""


@pytest.mark.parametrize("way", FREED)
def test_what_is_freed_does_not_count(sandboxed: Opened, assignment: Assignment, way: str) -> None:
    """Large tensors come and go within the limit, whatever lies between them and whoever refers to whom."""
    one = sandboxed(FREED[way], memory_mb=200)
    answers = list(one.answers(attention_calls(assignment, *[3] * 10)))
    assert [type(answer) for answer in answers] == [Answer] * 10


ENDS = {
    "dies": ("import os; q.shape[0] == 3 and os._exit(4)", Died),
    "hangs": ("while q.shape[0] == 3: pass", TimedOut),
    "forges": ("import os; q.shape[0] == 3 and os.write(3, b'x' * 64)", Died),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_batch_ends_where_the_worker_does(sandboxed: Opened, assignment: Assignment, end: str) -> None:
    """What was answered before counts; what comes after is asked again, of a fresh worker."""
    code, error = ENDS[end]
    one = sandboxed(code, call_s=0.5)

    first, second, third = one.answers(attention_calls(assignment, 1, 2, 3, 4, 5))
    fourth, fifth = one.answers(attention_calls(assignment, 4, 5))

    assert isinstance(third, error)
    for answer, size in ((first, 1), (second, 2), (fourth, 4), (fifth, 5)):
        assert isinstance(answer, Answer)
        assert answer.runs[0]["output"].shape == (size, 4)


def test_a_call_that_is_forgiven_leaves_all_patience(sandboxed: Opened, assignment: Assignment) -> None:
    """It may hang, and the next one that does has its full time."""
    one = sandboxed("while True: pass", call_s=0.5)
    (call,) = attention_calls(assignment, 3)
    for forgiven, counted in ((True, 0), (False, 1)):
        with pytest.raises(TimedOut):
            one.call(replace(call, forgiven=forgiven))
        assert one.budget.timeouts == counted


def test_a_batch_may_be_larger_than_a_socket_takes(sandboxed: Opened, assignment: Assignment) -> None:
    """Calls and answers of megabytes pass each other; neither side waits for the other for ever."""
    one = sandboxed("pass", call_s=20.0)
    answers = list(one.answers(attention_calls(assignment, *[500] * 8)))
    assert [type(answer) for answer in answers] == [Answer] * 8


def test_answers_that_nobody_takes_are_not_the_next_ones(sandboxed: Opened, assignment: Assignment) -> None:
    """Whoever stops in the middle of a batch is answered the next one."""
    one = sandboxed("pass")
    batch = one.answers(attention_calls(assignment, 1, 2, 3))
    next(batch)
    batch.close()
    answer = one.call(attention_calls(assignment, 7)[0])
    assert answer.runs[0]["output"].shape == (7, 4)


COUNTING = """import sys
        sys.count = getattr(sys, "count", 0) + 1
        while q.shape[0] == 2: pass
        return v + sys.count, q @ k.transpose(-1, -2)
"""


def test_an_answer_that_nobody_takes_leaves_nothing_behind(sandboxed: Opened, assignment: Assignment) -> None:
    """It takes no time, hangs nobody, and whether it was begun cannot be told from what comes later."""
    one = sandboxed(COUNTING, call_s=600.0)
    batch = one.answers(attention_calls(assignment, 1, 2, 3))
    next(batch)
    batch.close()
    assert one.budget.used_s < 30
    assert one.budget.timeouts == 0
    assert one.call(attention_calls(assignment, 7)[0]).runs[0]["output"].max() == 2  # v is 1, the count 1


def test_an_answer_that_was_there_in_time_counts(sandboxed: Opened, assignment: Assignment) -> None:
    """However long the grader looks elsewhere, while the worker computes ahead."""
    busy = "import time; end = time.process_time() + 0.25\n        while time.process_time() < end: pass"
    one = sandboxed(busy, call_s=1.0)
    answers = []
    for answer in one.answers(attention_calls(assignment, *range(1, 8))):
        answers.append(type(answer))
        time.sleep(2.0 if len(answers) == 1 else 0)
    assert answers == [Answer] * 7


def test_time_of_a_batch_is_booked_whole(sandboxed: Opened, assignment: Assignment) -> None:
    """What the worker computes while the grader looks at an answer counts, too."""
    one = sandboxed(
        "import time; end = time.process_time() + 0.1\n        while time.process_time() < end: pass"
    )
    for _ in one.answers(attention_calls(assignment, 1, 2, 3, 4)):
        time.sleep(0.15)
    assert one.budget.used_s > 0.4


ANSWERS = {
    "another id": "struct.pack('!4sQII', b'HW3\\x01', 7, 2, 0) + b'{}'",
    "no magic": "b'x' * 4096",
    "huge lengths": "struct.pack('!4sQII', b'HW3\\x01', 1, 0xFFFFFFFF, 0xFFFFFFFF)",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_forged_answer_is_an_outcome(grade: Grade, name: str) -> None:
    """Bytes that the student's code writes into the socket are no answer."""
    code = f"import os, struct; os.write(3, {ANSWERS[name]})"
    document = grade(edited("attention", (FORWARD, f"        {code}\n{FORWARD}")), "attention")
    assert set(outcomes(document).values()) == {"died"}
    assert document["score"] == 0


STUFFED = {
    "a tensor too many": ("torch.zeros(1)", "0/more", "that were not asked for"),
    "a run too many": ("torch.zeros(1)", "7/output", "that were not asked for"),
    "too large": ("torch.zeros(2 << 20)", "0/output", "the frame is too large"),
}


@pytest.mark.parametrize("name", STUFFED)
def test_an_answer_that_is_stuffed_is_an_outcome(
    sandboxed: Opened, assignment: Assignment, name: str
) -> None:
    """Whoever takes the harness over cannot fill the grader's memory, answer after answer."""
    tensor, where, said = STUFFED[name]
    one = sandboxed(
        "import sys; frame = sys._getframe()\n"
        "        while 'pack_answer' not in frame.f_globals: frame = frame.f_back\n"
        "        known = frame.f_globals; honest = known['encode']\n"
        f"        known['encode'] = lambda n, head, body: honest(n, head, body | {{'{where}': {tensor}}})"
    )
    with pytest.raises(Died, match=said):
        one.call(attention_calls(assignment, 1)[0])


def test_returning_far_too_much_is_a_bad_return(sandboxed: Opened, assignment: Assignment) -> None:
    """Honest code that returns more than anybody asks for hears of it in its own words."""
    one = sandboxed("return q, torch.ones(300_000, dtype=torch.float64)")
    with pytest.raises(BadReturn, match="far too large"):
        one.call(attention_calls(assignment, 1)[0])
    one = sandboxed("return torch.ones(200_000).double(), torch.ones(200_000).double()")
    with pytest.raises(BadReturn, match="far too large"):
        one.call(replace(attention_calls(assignment, 1)[0], runs=2 * attention_calls(assignment, 1)[0].runs))


def test_the_harness_is_out_of_sight(grade: Grade) -> None:
    """A worker can import neither reference nor checks, and holds none of them."""
    probe = """
import sys
for name in ("reference", "reference.attention", "grader.checks.hidden", "grader.cases", "tests"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(name)
assert not [name for name in sys.modules if name.startswith(("grader", "reference", "pytest", "hypothesis"))]
"""
    document = grade(with_part("attention", probe + reference()["attention.py"]), "attention")
    assert document["score"] == 30


def test_two_runs_give_the_same_result(grader: Grader) -> None:
    """Timings aside, the same submission gives the same document."""
    files = edited("attention", (" / math.sqrt(d_head)", ""))
    first, second = (grader.grade(files).document for _ in range(2))
    assert first.pop("execution_time") > 0
    assert second.pop("execution_time") > 0
    assert first == second
