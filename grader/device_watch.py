"""Finds tensors that `module.to(device)` leaves behind, on machines that have no other device.

A mask that is a plain attribute of its module, no buffer, stays on the CPU when the module goes to a GPU.
A forward runs on the CPU as ever, while it is noted which tensors come from the input, the parameters and
the buffers, and which from such attributes. Who asks the former where they are is told a GPU, and what is
sent there counts as there. Where torch would refuse the two together, it is refused here. What is not known
to be of either kind is let pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

THERE = torch.device("cuda", 0)

_WHERE: Mapping[Callable[..., Any], object] = {
    torch.Tensor.device.__get__: THERE,
    torch.Tensor.is_cuda.__get__: True,  # type: ignore[attr-defined]
    torch.Tensor.is_cpu.__get__: False,  # type: ignore[attr-defined]
    torch.Tensor.get_device: 0,
    torch.get_device: 0,
}
"""What asks where a tensor is, and the answer for those that are there."""

_OF_THE_FIRST = (
    "__getitem__",
    "__setitem__",
    "__set__",
    "copy_",
    "new_tensor",
    "expand_as",
    "view_as",
    "reshape_as",
    "broadcast_tensors",
    "is_same_size",
    "result_type",
)
"""What takes tensors of two devices; the result is where the first one is."""


class TwoDevices(RuntimeError):
    """A tensor that was left behind meets one that was not."""


class DeviceWatch(TorchFunctionMode):
    """Raises `TwoDevices`; anything else that is raised may come from there being no such device.

    Args:
        modules: where parameters and buffers go along, and plain attributes do not.
        inputs: tensors that are on the modules' device.
    """

    def __init__(self, modules: Sequence[nn.Module], inputs: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._moved: dict[int, tuple[torch.Tensor, bool]] = {}
        self._note(_left_behind(modules), moved=False)
        for module in modules:
            self._note((*module.parameters(), *module.buffers()), moved=True)
        self._note(inputs, moved=True)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        _types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call the operator, and note where its results are."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func in _WHERE and self._is_there(args[0]):
            return _WHERE[func]
        goes = self._destination(name, args, kwargs)
        if goes is not None:
            return self._sent(func, args, kwargs, there=goes)
        known = [self._moved[id(t)] for t in _tensors((args, kwargs)) if id(t) in self._moved]
        moved = [each for _, each in known]
        behind = [tensor for tensor, each in known if not each and tensor.dim()]
        if behind and any(moved) and name not in _OF_THE_FIRST:
            raise TwoDevices(
                f"two devices: a tensor of shape {tuple(behind[0].shape)} that comes from a plain attribute, "
                "which module.to(device) leaves behind, meets the input"
            )
        result = func(*args, **kwargs)
        if moved:
            self._note(_tensors(result), moved=moved[0] if name in _OF_THE_FIRST else any(moved))
        return result

    def _destination(self, name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> bool | None:
        """Whether the result is asked for there; None: nobody asks for a place."""
        if name == "cuda":
            return True
        asked = [kwargs.get("device"), *(args[1:2] if name in ("to", "type_as") else ())]
        for place in asked:
            if isinstance(place, torch.Tensor):
                return self._is_there(place)
            if isinstance(place, (str, torch.device)):
                return str(place).startswith(THERE.type)
        return None

    def _sent(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], *, there: bool
    ) -> Any:
        """Run on the CPU what asks for a place, and note that its result is there, or nothing."""
        if func is torch.Tensor.cuda:
            result = args[0]
        else:
            result = func(*map(_here, args), **{name: _here(value) for name, value in kwargs.items()})
        if isinstance(result, torch.Tensor) and any(result is each for each in args):
            result = result.clone()  # it was on the CPU already
        if there:
            self._note(_tensors(result), moved=True)
        return result

    def _is_there(self, tensor: object) -> bool:
        return self._moved.get(id(tensor), (tensor, False))[1]

    def _note(self, tensors: Iterable[torch.Tensor], *, moved: bool) -> None:
        # Tensors are kept, so that no other gets the id of one.
        self._moved |= {id(tensor): (tensor, moved) for tensor in tensors}


def _here(value: object) -> object:
    goes = isinstance(value, (str, torch.device)) and str(value).startswith(THERE.type)
    return "cpu" if goes else value


def _left_behind(modules: Iterable[nn.Module]) -> Iterator[torch.Tensor]:
    for module in modules:
        for part in module.modules():
            own = (type(part)._apply, type(part).to, type(part).cuda)
            if own == (nn.Module._apply, nn.Module.to, nn.Module.cuda):
                yield from _tensors(vars(part))


def _tensors(value: object, depth: int = 4) -> Iterator[torch.Tensor]:
    """The tensors in nested tuples, lists and dictionaries, as arguments are."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)) and depth:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors(each, depth - 1)
