"""Name the misconception behind a failure, if the student's values are exactly those of one.

A part that failed is asked for more: for its outputs on a family of cases, for gradients, for its
parameters, for what its constructor refuses. The known wrong versions (`misconceptions/`) answer the
same questions in this process, for they are ours; one that answers all of them alike, down to NaN and
exact zeros, is recognised. A check's failure is explained by it if the wrong version fails the check in
the same case, with the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from grader.assignment import Assignment, Probe
from grader.cases import Case
from grader.check import CheckRun, Found
from grader.client import PartClient
from grader.expect import CheckFailure
from grader.in_process import InProcessSubmission
from grader.loader import SubmissionModules
from grader.misconceptions import Misconception, Variant, edited, misconceptions_about
from grader.stand_ins import stand_in
from grader.submission import FATAL, SubmissionError

TOLERANCE = 1e-9
"""Relative to the largest value: two ways to write the same idea in float64 are nearer than that."""

NEARLY = 1e-6
"""What is as near as that to the reference's outputs is right; if a check fails, look at the gradients."""

Answer = Any
"""Tensors by name, plain data, or what went wrong."""


@dataclass(frozen=True)
class Refused:
    """There was no answer; two refusals are alike if they are of one kind, whatever the text."""

    kind: str
    sentence: str = field(compare=False)


@dataclass(frozen=True)
class Recognised:
    """A misconception, and the failed checks that it explains."""

    misconception: Misconception
    checks: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """Something that a part is asked; the same question gets the same answer from the same code."""

    kind: str
    case: Any = None
    config: tuple[tuple[str, int], ...] = ()


class Recogniser:
    """Knows the wrong versions of all parts, and remembers their answers.

    Args:
        assignment: names the families of cases that are asked about.
        sources: the reference's files by name.
        cases: the recorded cases by family.
    """

    def __init__(
        self, assignment: Assignment, sources: Mapping[str, bytes], cases: Mapping[str, Sequence[Case]]
    ) -> None:
        self._assignment = assignment
        self._sources = sources
        self._cases = cases
        self._clients: dict[tuple[str, Variant | None], PartClient] = {}
        self._known: dict[tuple[str, Variant | None, Question], Answer] = {}

    def recognise(self, run: CheckRun) -> list[Recognised]:
        """Explain the failures of a run, part by part."""
        found: list[Recognised] = []
        for part in self._assignment.parts:
            failures = {
                name: failure for name, failure in run.failures.items() if name.partition(".")[0] == part
            }
            if failures:
                try:
                    found += self._of_part(part, run, failures)
                except FATAL:
                    continue
        return found

    def _of_part(self, part: str, run: CheckRun, failures: Mapping[str, Found]) -> Iterator[Recognised]:
        client = next(iter(failures.values())).client
        left = dict(failures)
        for misconception, variant in self.matching(part, client):
            explained = [
                name for name, failure in left.items() if self._explains(part, variant, run, failure)
            ]
            if explained:
                yield Recognised(misconception, tuple(explained))
                left = {name: failure for name, failure in left.items() if name not in explained}
        # Two mistakes in one part equal no single idea, but each may show alone in the cases of some checks.
        if len(left) == len(failures):
            yield from self._by_family(part, run, left)

    def _by_family(self, part: str, run: CheckRun, failures: Mapping[str, Found]) -> Iterator[Recognised]:
        explained: dict[Misconception, list[str]] = {}
        families: dict[str, tuple[Misconception, Variant] | None] = {}
        for name, failure in failures.items():
            family = failure.check.family
            if family is None or failure.client.dtype is not torch.float64:
                continue
            if family not in families:
                questions = [Question("output", case) for case in self._cases[family]]
                families[family] = self._alike_on(part, failure.client, questions)
            found = families[family]
            if found is not None and self._explains(part, found[1], run, failure):
                explained.setdefault(found[0], []).append(name)
        for misconception, names in explained.items():
            yield Recognised(misconception, tuple(names))

    def _alike_on(
        self, part: str, client: PartClient, questions: Sequence[Question]
    ) -> tuple[Misconception, Variant] | None:
        answer = _remembering(client, self._probe(part))
        if not all(isinstance(answer(question), dict) for question in questions):
            return None
        if all(self._same(part, None, question, answer(question)) for question in questions):
            return None
        return next(iter(self._first_alike(part, "output", questions, answer)), None)

    def _explains(self, part: str, variant: Variant, run: CheckRun, failure: Found) -> bool:
        """Whether the wrong version fails the check in the same case, with the same values."""
        question = Question("output", failure.case)
        same = failure.case is None or self._same(
            part, variant, question, _ask(failure.client, question, self._probe(part))
        )
        return same and run.attempt(failure.check, self._client(part, variant), failure.case) is not None

    def matching(self, part: str, client: PartClient) -> list[tuple[Misconception, Variant]]:
        """The misconceptions that a part's values equal, at most one for each way to show."""
        answer = _remembering(client, self._probe(part))
        found = []

        def like_the_reference(questions: Sequence[Question], tolerance: float = TOLERANCE) -> bool:
            return all(
                self._same(part, None, question, answer(question), tolerance) for question in questions
            )

        parameters = self._questions(part, "parameters")
        outputs = self._questions(part, "output")
        kinds = ["constructor"]
        if not like_the_reference(parameters):
            kinds.append("parameters")
        elif client.dtype is torch.float64:
            kinds += [] if like_the_reference(outputs) else ["output"]
            kinds += ["gradients"] if like_the_reference(outputs, NEARLY) else []
        for kind in kinds:
            questions = self._questions(part, kind)
            if questions and not like_the_reference(questions):
                found += self._first_alike(part, kind, questions, answer)
        return found

    def _first_alike(
        self, part: str, kind: str, questions: Sequence[Question], answer: Callable[[Question], Answer]
    ) -> list[tuple[Misconception, Variant]]:
        candidates = [
            (misconception, variant)
            for misconception in misconceptions_about(part)
            for variant in misconception.variants
            if variant.shows_in == kind
        ]
        for question in questions:
            observed = answer(question)
            candidates = [one for one in candidates if self._same(part, one[1], question, observed)]
            if not candidates:
                break
        if all(isinstance(answer(question), Refused) for question in questions):
            # Where nothing but errors comes, only their texts can tell one idea from another. A part that
            # this one uses may be another than there, so not all of them must be the same.
            def alike(variant: Variant) -> int:
                known = [self._answer(part, variant, question) for question in questions]
                return sum(
                    one.sentence == answer(q).sentence for one, q in zip(known, questions, strict=True)
                )

            candidates = [one for one in candidates if alike(one[1]) > len(questions) / 2]
        return candidates[:1]

    def _questions(self, part: str, kind: str) -> list[Question]:
        probe = self._probe(part)
        if kind == "constructor":
            return [Question(kind, config=tuple(config.items())) for config in probe.refused]
        cases = self._cases[probe.family]
        if kind == "parameters":
            return [Question(kind, case) for case in cases[-3:]]
        return [Question(kind, case) for case in cases]

    def _same(
        self,
        part: str,
        variant: Variant | None,
        question: Question,
        observed: Answer,
        tolerance: float = TOLERANCE,
    ) -> bool:
        known = self._answer(part, variant, question)
        if question.kind == "gradients":
            return _same_gradients(observed, known, tolerance)
        # Exact zeros tell a blocked weight from a tiny one.
        return _alike(observed, known, tolerance, zeros=tolerance == TOLERANCE)

    def _answer(self, part: str, variant: Variant | None, question: Question) -> Answer:
        """What the reference answers, with one variant in it if there is one."""
        key = (part, variant, question)
        if key not in self._known:
            self._known[key] = _ask(self._client(part, variant), question, self._probe(part))
        return self._known[key]

    def _client(self, part: str, variant: Variant | None) -> PartClient:
        """The reference on stand-ins, as failures come from there, with one variant in it if there is one."""
        key = (part, variant)
        if key not in self._clients:
            files = dict(self._sources)
            parts = self._assignment.files
            if variant is not None:
                source = files[parts[part]].decode()
                files[parts[part]] = edited(source, variant.edits).encode()
            modules = SubmissionModules(files, parts, display_root="<misconception>/")
            before = self._assignment.before(part)
            stand_ins = [stand_in(self._assignment.parts[name].target) for name in before]
            wrong = InProcessSubmission(modules, stand_ins=stand_ins)
            self._clients[key] = PartClient(self._assignment.parts[part], wrong)
        return self._clients[key]

    def _probe(self, part: str) -> Probe:
        return self._assignment.parts[part].probe


def _remembering(client: PartClient, probe: Probe) -> Callable[[Question], Answer]:
    """`_ask` of one client, each question once."""
    answers: dict[Question, Answer] = {}

    def answer(question: Question) -> Answer:
        if question not in answers:
            answers[question] = _ask(client, question, probe)
        return answers[question]

    return answer


def _ask(client: PartClient, question: Question, probe: Probe) -> Answer:
    """The answer; what went wrong is an answer, too, unless it says nothing about the code.

    Raises:
        TimedOut, Died, OutOfTime: see `submission.FATAL`.
    """
    try:
        return _QUESTIONS[question.kind](client, question, probe)
    except FATAL:
        raise
    except SubmissionError as error:
        return Refused(type(error).__name__, error.sentence)
    except CheckFailure as failure:
        return failure.observed


def _output(client: PartClient, question: Question, probe: Probe) -> Answer:
    """The outputs in the case itself, with only what `forward` must be given, and at another scale."""
    case = question.case
    required = {name: case.inputs[name] for name in client.part.inputs}
    first = next(iter(required))
    runs = [case.inputs, required, case.inputs | {first: case.inputs[first] * probe.factor}]
    returned = client.forwards(case, runs)
    return {
        f"{index}.{name}": tensor
        for index, run in enumerate(returned)
        for name, tensor in run.by_name.items()
    } | {"changed": [run.changed for run in returned]}


def _gradients(client: PartClient, question: Question, _probe: Probe) -> Answer:
    case = question.case
    back = {
        name: case.randn(f"back {name}", *shape) for name, shape in client.output_shapes(case.inputs).items()
    }
    return dict(client.raw_gradients(case, back, **case.inputs))


def _parameters(client: PartClient, question: Question, _probe: Probe) -> Answer:
    facts = client.parameters(question.case)
    names = {
        identity: sorted(f.name for f in facts if f.identity == identity) for identity in range(len(facts))
    }
    return sorted([fact.name, list(fact.shape), fact.trainable, names[fact.identity]] for fact in facts)


def _constructor(client: PartClient, question: Question, _probe: Probe) -> Answer:
    return client.construct(**dict(question.config))[:1]


_QUESTIONS: dict[str, Callable[[PartClient, Question, Probe], Answer]] = {
    "output": _output,
    "gradients": _gradients,
    "parameters": _parameters,
    "constructor": _constructor,
}


def _alike(one: Answer, other: Answer, tolerance: float, zeros: bool) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return bool(one == other)
    if one.keys() != other.keys():
        return False
    return all(_alike_values(value, other[name], tolerance, zeros) for name, value in one.items())


def _same_gradients(one: Answer, other: Answer, tolerance: float) -> bool:
    """Alike where both are finite; how far a NaN spreads, and which zero is rounding, is chance."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return bool(one == other)
    if one.keys() != other.keys():
        return False
    for name, have in one.items():
        want = other[name]
        if have.shape != want.shape or bool(have.isnan().any()) != bool(want.isnan().any()):
            return False
        finite = have.isfinite() & want.isfinite()
        if not _alike_values(have[finite], want[finite], tolerance, zeros=False):
            return False
    return True


def _alike_values(one: Answer, other: Answer, tolerance: float, zeros: bool) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not torch.equal(torch.isnan(one), torch.isnan(other)):
        return False
    have, want = one.nan_to_num(nan=0.0), other.nan_to_num(nan=0.0)
    largest = max(1.0, float(want.abs().max())) if want.numel() else 1.0
    near = bool(((have - want).abs() <= tolerance * largest).all())
    return near and (not zeros or torch.equal(have == 0, want == 0))
