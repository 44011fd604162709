"""Frames between grader and worker: a strict JSON head and raw tensor bytes.

A frame is a 20-byte header (magic, id of the call, length of the head, length of the body), then head
and body. Whoever reads one trusts nothing in it: every length is checked against a cap before memory
is taken, the JSON must be plain, the body must be exactly the tensors that the head declares.
"""

from __future__ import annotations

import functools
import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy
import torch

Bytes = bytes | bytearray

HEADER = struct.Struct("!4sQII")
MAGIC = b"HW3\x01"
MAX_HEAD_BYTES = 1 << 20
MAX_BODY_BYTES = 64 << 20
MAX_ANSWER_HEAD_BYTES = 128 << 10
MAX_ANSWER_BODY_BYTES = 8 << 20
"""Ten times what a right answer needs: a hostile worker could send as much each time, to fill our memory."""

MAX_DIMENSIONS = 16
ALIGNMENT = 8
"""Every tensor begins at a multiple of so many bytes in the body, zeros between."""

_PADDING = [b"\0" * (-used % ALIGNMENT) for used in range(ALIGNMENT)]

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
    )
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_NUMPY = {dtype: numpy.dtype("int16" if name == "bfloat16" else name) for name, dtype in DTYPES.items()}
"""For the bytes: numpy has no bfloat16, and is several times as fast with them as torch."""


class MalformedFrame(Exception):
    """What arrived is no frame, or not the one that was asked for."""


def encode(call_id: int, head: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> bytes:
    """Pack one frame; the tensors' dtypes must be in `DTYPES`, and none may require a gradient."""
    body: list[bytes] = []
    declared = []
    for name, tensor in tensors.items():
        data = tensor_bytes(tensor)
        body += (data, _PADDING[len(data) % ALIGNMENT])
        declared.append((name, DTYPE_NAMES[tensor.dtype], list(tensor.shape)))
    packed = _ENCODER.encode({"head": head, "tensors": declared}).encode()
    return b"".join([HEADER.pack(MAGIC, call_id, len(packed), sum(map(len, body))), packed, *body])


def decode_header(header: Bytes, *, of_answer: bool = False) -> tuple[int, int, int]:
    """Return the call's id and the lengths of head and body, none above the cap of a call or an answer."""
    magic, call_id, head_bytes, body_bytes = HEADER.unpack(header)
    if magic != MAGIC:
        raise MalformedFrame("the frame does not begin as one")
    max_head = MAX_ANSWER_HEAD_BYTES if of_answer else MAX_HEAD_BYTES
    max_body = MAX_ANSWER_BODY_BYTES if of_answer else MAX_BODY_BYTES
    if head_bytes > max_head or body_bytes > max_body:
        raise MalformedFrame(f"the frame is too large ({head_bytes} + {body_bytes} bytes)")
    return call_id, head_bytes, body_bytes


def decode(packed: Bytes, body: Bytes) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the head, to be read only, and the tensors, which share the body's memory.

    Raises:
        MalformedFrame: the head is not plain JSON of the expected form, or head and body disagree.
    """
    read = _read_often if len(packed) <= _MAX_KEPT_BYTES else _read
    head, declared, size = read(bytes(packed))
    if size != len(body):
        raise MalformedFrame("the body is not as long as its tensors")
    memory = bytearray(body) if isinstance(body, bytes) else body
    return head, {name: _tensor(memory, *where) for name, *where in declared}


def _read(packed: bytes) -> tuple[dict[str, Any], list[tuple[Any, ...]], int]:
    """Return the head, each tensor's name, dtype, shape, length and place, and the body's size."""
    frame = _strict_json(packed)
    if not isinstance(frame, dict) or set(frame) != {"head", "tensors"}:
        raise MalformedFrame("the head has not the two expected keys")
    if not isinstance(frame["head"], dict) or not isinstance(frame["tensors"], list):
        raise MalformedFrame("the head has the wrong types")
    found = []
    start = 0
    for name, dtype, shape in map(_declaration, frame["tensors"]):
        count = math.prod(shape)
        found.append((name, dtype, shape, count, start))
        start += count * dtype.itemsize
        start += len(_PADDING[start % ALIGNMENT])
    if len({name for name, *_ in found}) != len(found):
        raise MalformedFrame("two tensors have the same name")
    return frame["head"], found, start


_MAX_KEPT_BYTES = 512
_read_often = functools.lru_cache(2048)(_read)
"""Most answers of a class have the same heads."""


def decode_trusted(packed: Bytes, body: bytearray) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """`decode` for the worker, which has the grader's frames only, and many of them."""
    frame = json.loads(packed)
    tensors: dict[str, torch.Tensor] = {}
    start = 0
    for name, dtype_name, shape in frame["tensors"]:
        dtype = DTYPES[dtype_name]
        tensors[name] = _in_memory(body, dtype, shape, start)
        end = start + math.prod(shape) * dtype.itemsize
        start = end + len(_PADDING[end % ALIGNMENT])
    return frame["head"], tensors


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """The values of a CPU tensor in order, as bytes."""
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.contiguous().view(torch.int16)
    data: bytes = tensor.numpy().tobytes()
    return data


def _tensor(memory: bytearray, dtype: torch.dtype, shape: list[int], count: int, start: int) -> torch.Tensor:
    if not count:
        return _empty(shape, dtype)
    if dtype is torch.bool and max(memory[start : start + count]) > 1:
        raise MalformedFrame("a boolean is neither 0 nor 1")
    return _in_memory(memory, dtype, shape, start)


def _in_memory(memory: bytearray, dtype: torch.dtype, shape: list[int], start: int) -> torch.Tensor:
    tensor = torch.from_numpy(numpy.ndarray(shape, _NUMPY[dtype], memory, start))
    return tensor.view(dtype) if dtype is torch.bfloat16 else tensor


def _empty(shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    try:
        return torch.empty(shape, dtype=dtype)
    except RuntimeError as error:
        raise MalformedFrame("a tensor has sizes that overflow") from error


def _declaration(declared: object) -> tuple[str, torch.dtype, list[int]]:
    if not isinstance(declared, list) or len(declared) != 3:
        raise MalformedFrame("a tensor is not declared as name, dtype, shape")
    name, dtype, shape = declared
    if not isinstance(name, str) or not isinstance(dtype, str) or dtype not in DTYPES:
        raise MalformedFrame("a tensor has no proper name or dtype")
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        raise MalformedFrame("a tensor has no proper shape")
    if any(type(size) is not int or not 0 <= size <= MAX_BODY_BYTES for size in shape):
        raise MalformedFrame("a tensor has a size out of range")
    return name, DTYPES[dtype], shape


def _strict_json(packed: Bytes) -> object:
    try:
        return _DECODER.decode(packed.decode())
    except (ValueError, RecursionError) as error:
        raise MalformedFrame(f"the head is not plain JSON ({type(error).__name__})") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_refuse)
