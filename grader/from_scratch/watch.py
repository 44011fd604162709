"""Forbidden operators while the code runs, and whose code called them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import CodeType, FrameType
from typing import Any

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from grader.from_scratch.operators import FORBIDDEN_NAMES
from grader.loader import PACKAGE, SubmissionModules
from grader.terms import Use

_OWNERS = {
    "torch.nn.functional": F,
    "torch": torch,
    "torch._C._nn": torch._C._nn,
    "torch.ops.aten": torch.ops.aten,
}

Function = Callable[..., Any]


def _forbidden_functions() -> dict[Function, str]:
    found: dict[Function, str] = {}
    for where, owner in _OWNERS.items():
        for name in sorted(FORBIDDEN_NAMES):
            function = getattr(owner, name, None)
            if callable(function):
                found.setdefault(function, f"{where}.{name}")
                for overload in getattr(function, "overloads", list)():
                    found.setdefault(getattr(function, overload), f"{where}.{name}")
    return found


_FUNCTIONS = _forbidden_functions()


class OperatorWatch:
    """Notes every call of a forbidden operator, with the line of the submission that made it.

    Two ways together: the operators' entry points in torch's modules are wrapped while the watch is
    on, which costs nothing until one is called; and a function mode sees whatever reaches torch by
    another way, which makes a forward half as slow again, so that it is on in a part of the calls.

    Args:
        modules: the submission, to tell its frames from torch's.
        class_names: the contract's class of each part.

    Attributes:
        uses: what was noted so far.
        part: the part that is asked.
    """

    def __init__(self, modules: SubmissionModules, class_names: Mapping[str, str]) -> None:
        self.uses: dict[Use, None] = {}
        self.part = ""
        self._modules = modules
        self._class_names = class_names
        self._part_of = {path: name for name, path in modules.parts.items()}
        self._exempt: dict[int, CodeType] = {}

    def exempt(self, code: Iterable[CodeType]) -> None:
        """Let these code objects, and no copies of them, call what they like."""
        self._exempt |= {id(one): one for one in code}

    @contextmanager
    def on(self) -> Iterator[None]:
        """Wrap the entry points."""
        wrapped = []
        for function, name in _FUNCTIONS.items():
            where, _, attribute = name.rpartition(".")
            if where != "torch.ops.aten" and not isinstance(function, _OverloadTypes):
                wrapped.append((_OWNERS[where], attribute, function))
                setattr(_OWNERS[where], attribute, self._noting(function, name))
        try:
            yield
        finally:
            for owner, attribute, function in wrapped:
                setattr(owner, attribute, function)

    def forward(self, *, closely: bool) -> AbstractContextManager[object]:
        """Watch one forward, with the function mode if `closely`."""
        return _FunctionWatch(self) if closely else nullcontext()

    def note(self, operator: str) -> None:
        """Note that the operator is being called, by whichever contract's class is running nearest.

        Where none is (a module's own statements, another thread), by the file, or by the part that is
        asked; unless a part before it has been found already, whose doing it may be.
        """
        frame: FrameType | None = sys._getframe(1)
        caller: tuple[str, int] | None = None
        charged = None
        while frame is not None and charged is None:
            if caller is None and id(frame.f_code) in self._exempt:
                return
            path = self._modules.path_of(frame.f_code.co_filename)
            if path is not None:
                caller = caller or (path, frame.f_lineno)
            charged = self._running_in(frame)
            frame = frame.f_back
        if charged is None and caller is not None:
            charged = self._part_of.get(caller[0])
        if charged is None:
            charged = self.part
            if not charged or any(use.part != charged for use in self.uses):
                return
        self.uses.setdefault(Use(charged, *(caller or (self._modules.parts.get(charged, ""), 1)), operator))

    def _running_in(self, frame: FrameType) -> str | None:
        """The part whose contract's class the frame is a method of, whatever file it says it is from."""
        names = frame.f_code.co_varnames[:1]
        first = frame.f_locals.get(names[0]) if names and frame.f_code.co_argcount else None
        bases = type.mro(type(first)) if first is not None else []
        for part, class_name in self._class_names.items():
            module = sys.modules.get(f"{PACKAGE}.{part}")
            own = vars(module).get(class_name) if module is not None else None
            if own is not None and any(base is own for base in bases):
                return part
        return None

    def _noting(self, function: Function, operator: str) -> Function:
        def noting(*args: Any, **kwargs: Any) -> Any:
            self.note(operator)
            return function(*args, **kwargs)

        # Named like the original, which it does not give away.
        noting.__name__, noting.__doc__ = function.__name__, function.__doc__
        return noting


_OverloadTypes = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)


class _FunctionWatch(TorchFunctionMode):
    def __init__(self, watch: OperatorWatch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_function__(
        self,
        func: Function,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        operator = _FUNCTIONS.get(func)
        if operator is not None:
            self._watch.note(operator)
        return func(*args, **(kwargs or {}))
