"""Right parts that stand in for a student's own, so that a part is graded apart from those it builds on.

`attention.py`, `multi_head.py`, ... beside this file define the contract's classes on torch's ready-made
operators. Their text goes to the one worker that grades a later part with them, and to no other: where
a part earns its own points there is nothing to borrow, in memory or by import.
"""

from __future__ import annotations

import contextlib
import importlib
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from grader.loader import PACKAGE, SubmissionModules
from grader.terms import Target

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class StandIn:
    """One part that is replaced.

    Attributes:
        class_name: the contract's class, the only name that is replaced.
        source: Python text that defines it.
        alone: the student's own file is not imported: it is missing, or cannot be.
    """

    part: str
    class_name: str
    source: str
    alone: bool = False


def stand_in(target: Target, *, alone: bool = False) -> StandIn:
    """The stand-in for a part, see `StandIn.alone`."""
    return StandIn(target.part, target.class_name, stand_in_source(target.part), alone)


def stand_in_source(part: str) -> str:
    """The text of a part's stand-in."""
    return (_FOLDER / f"{part}.py").read_text(encoding="utf-8")


class StandIns:
    """The stand-ins of one submission, put in place once, before the part that is graded is imported.

    Args:
        modules: the submission.
        stand_ins: what to replace, the parts that others build on first.

    Attributes:
        code: the code objects of the stand-ins, to tell their frames from the student's.
    """

    def __init__(self, modules: SubmissionModules, stand_ins: Sequence[StandIn]) -> None:
        self.code: list[types.CodeType] = []
        self._modules = modules
        self._waiting = list(stand_ins)
        self._replaced: list[tuple[type, type]] = []

    def put_in_place(self) -> None:
        """Let each stand for the student's module of that part, with the contract's class alone in it.

        What else the student's file defines is there when it is asked for: only then is the file run.
        Must run inside `installed()`.
        """
        while self._waiting:
            stand_in = self._waiting.pop(0)
            module = types.ModuleType(f"{PACKAGE}.{stand_in.part}")
            setattr(module, stand_in.class_name, self._made(stand_in))
            if not stand_in.alone and stand_in.part in self._modules.parts:
                module.__getattr__ = partial(self._of_the_student, stand_in, module)  # type: ignore[method-assign]
            self._modules.register(module.__name__, module)
            setattr(importlib.import_module(PACKAGE), stand_in.part, module)

    def _of_the_student(self, stand_in: StandIn, module: types.ModuleType, name: str) -> object:
        """A name that the stand-in has not: the student's own, whose file is run now."""
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)  # what Python asks of every module
        del module.__getattr__
        with contextlib.suppress(Exception):  # what it is, the part's own checks say
            own = self._modules.run_apart(stand_in.part)
            standing = vars(module)[stand_in.class_name]
            if isinstance(vars(own).get(stand_in.class_name), type):
                self._replaced.append((vars(own)[stand_in.class_name], standing))
            setattr(own, stand_in.class_name, standing)
            for known, value in vars(own).items():
                vars(module).setdefault(known, value)
            self.replace_everywhere()
        if name == "__all__" and name not in vars(module):
            return [known for known in vars(module) if not known.startswith("_")]
        return getattr(module, name)

    def replace_everywhere(self) -> None:
        """Replace the classes wherever else a module of the submission names them."""
        for module in self._modules.imported():
            names = vars(module)
            for own, standing in self._replaced:
                for name in [name for name, value in names.items() if value is own]:
                    names[name] = standing

    def _made(self, stand_in: StandIn) -> type:
        code = compile(stand_in.source, f"<stand-in for {stand_in.part}>", "exec", dont_inherit=True)
        self.code += _nested(code)
        names: dict[str, object] = {"__name__": f"{PACKAGE}.{stand_in.part}"}
        exec(code, names)  # noqa: S102 - our own source
        found = names[stand_in.class_name]
        assert isinstance(found, type)  # noqa: S101 - for the type checker
        return found


def to_json(stand_ins: Sequence[StandIn]) -> list[dict[str, object]]:
    """Stand-ins as JSON; `from_json` undoes it."""
    return [vars(stand_in) for stand_in in stand_ins]


def from_json(entries: Sequence[Mapping[str, object]]) -> list[StandIn]:
    """Rebuild the stand-ins that `to_json` wrote."""
    return [StandIn(**entry) for entry in entries]  # type: ignore[arg-type]


def _nested(code: types.CodeType) -> list[types.CodeType]:
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return [code, *(one for nested in inner for one in _nested(nested))]
