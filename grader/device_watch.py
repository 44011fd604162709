"""Finds tensors that `module.to(device)` leaves behind, on machines that have no other device.

A mask that is a plain attribute of its module, no buffer, stays on the CPU when the module goes to a GPU.
A forward runs on the CPU as ever, while it is noted which tensors come from the input, the parameters and
the buffers, and which from such attributes. Where torch would refuse the two together, it is refused here.
What is not known to be of either kind is let pass; so is what takes care of itself, in a branch that no CPU
takes: a tensor whose device is asked for, and a module that keeps the device it was on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

_OF_THE_FIRST = (
    "__getitem__",
    "__setitem__",
    "__set__",
    "copy_",
    "expand_as",
    "view_as",
    "reshape_as",
    "broadcast_tensors",
    "is_same_size",
    "result_type",
)
"""What takes tensors of two devices; the result is where the first one is."""


_ASKS_WHERE = {
    torch.Tensor.device.__get__,
    torch.Tensor.is_cuda.__get__,  # type: ignore[attr-defined]
    torch.Tensor.get_device,
}


class DeviceWatch(TorchFunctionMode):
    """Raises `RuntimeError` where a tensor that was left behind meets one that was not.

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
        if func in _ASKS_WHERE and not self._moved.get(id(args[0]), (None, True))[1]:
            del self._moved[id(args[0])]
        known = [self._moved[id(t)] for t in _tensors((args, kwargs)) if id(t) in self._moved]
        moved = [each for _, each in known]
        behind = [tensor for tensor, each in known if not each and tensor.dim()]
        moves = name == "type_as" or (name == "to" and _names_a_device(args[1:], kwargs))
        if behind and any(moved) and name not in _OF_THE_FIRST and not moves:
            raise RuntimeError(
                f"two devices: a tensor of shape {tuple(behind[0].shape)} that comes from a plain attribute, "
                "which module.to(device) leaves behind, meets the input"
            )
        result = func(*args, **kwargs)
        if moves:
            self._moved.pop(id(result), None)  # which may be the tensor itself: it was on the CPU already
        elif moved:
            self._note(_tensors(result), moved=moved[0] if name in _OF_THE_FIRST else any(moved))
        return result

    def _note(self, tensors: Iterable[torch.Tensor], *, moved: bool) -> None:
        # Tensors are kept, so that no other gets the id of one.
        self._moved |= {id(tensor): (tensor, moved) for tensor in tensors}


def _names_a_device(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    return "device" in kwargs or any(isinstance(each, (torch.device, torch.Tensor, str)) for each in args)


def _left_behind(modules: Iterable[nn.Module]) -> Iterator[torch.Tensor]:
    for module in modules:
        for part in module.modules():
            keeps_its_device = any(isinstance(value, torch.device) for value in vars(part).values())
            if type(part)._apply is nn.Module._apply and not keeps_its_device:
                yield from _tensors(vars(part))


def _tensors(value: object, depth: int = 4) -> Iterator[torch.Tensor]:
    """The tensors in nested tuples, lists and dictionaries, as arguments are."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)) and depth:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors(each, depth - 1)
