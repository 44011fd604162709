"""Frames: what goes in comes out, and what is no frame is said to be none."""

from __future__ import annotations

import json
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.wire import DTYPES, HEADER, MAGIC, MalformedFrame, decode, decode_header, encode


@given(
    st.lists(st.tuples(st.sampled_from(sorted(DTYPES)), st.lists(st.integers(0, 4), max_size=4)), max_size=5)
)
@settings(deadline=None)
def test_a_frame_comes_back_as_it_was(tensors: list[tuple[str, list[int]]]) -> None:
    """Every dtype and shape, empty ones included, with all bits."""
    sent = {
        f"tensor {i}": (torch.rand(shape) * 3).to(DTYPES[dtype]) for i, (dtype, shape) in enumerate(tensors)
    }
    head, received = _decoded(encode(7, {"a": [1, "é", None]}, sent))
    assert head == {"a": [1, "é", None]}
    assert list(received) == list(sent)
    for name, tensor in sent.items():
        assert received[name].dtype is tensor.dtype
        assert torch.equal(received[name], tensor)


def test_strided_tensors_arrive_in_order() -> None:
    """Values cross, not memory."""
    tensor = torch.arange(12.0).reshape(3, 4).T
    _, received = _decoded(encode(1, {}, {"t": tensor}))
    assert torch.equal(received["t"], tensor)


@given(st.binary(max_size=200), st.binary(max_size=64))
@settings(deadline=None, max_examples=300)
def test_any_bytes_are_a_frame_or_malformed(head: bytes, body: bytes) -> None:
    """No bytes raise anything but MalformedFrame."""
    try:
        decode(head, bytearray(body))
    except MalformedFrame:
        return


HEADS = {
    "no JSON": b"{",
    "no UTF-8": b'{"head":{},"tensors":[]}\xff',
    "NaN": b'{"head":{"x":NaN},"tensors":[]}',
    "duplicate key": b'{"head":{},"head":{},"tensors":[]}',
    "nested too deep": b'{"head":' + b"[" * 200_000 + b"]" * 200_000 + b',"tensors":[]}',
    "long integer": b'{"head":{"x":' + b"9" * 500_000 + b'},"tensors":[]}',
    "a list": b"[]",
    "no tensors": b'{"head":{}}',
    "another key": b'{"head":{},"tensors":[],"more":1}',
    "head no object": b'{"head":1,"tensors":[]}',
}
TENSORS = {
    "unknown dtype": ["t", "complex64", [1]],
    "dtype no text": ["t", 5, [1]],
    "name no text": [5, "float32", [1]],
    "negative size": ["t", "float32", [-1]],
    "size no integer": ["t", "float32", [1.0]],
    "size a boolean": ["t", "float32", [True]],
    "overflow": ["t", "float32", [1 << 26] * 16],
    "overflow with a zero": ["t", "float32", [0] + [1 << 26] * 15],
    "too many dimensions": ["t", "float32", [1] * 100],
    "too large": ["t", "float32", [2]],
    "too small": ["t", "uint8", [1]],
    "no list": "t",
}


@pytest.mark.parametrize("name", HEADS)
def test_a_malformed_head_is_refused(name: str) -> None:
    """Strict JSON of the one form."""
    with pytest.raises(MalformedFrame):
        decode(HEADS[name], bytearray())


@pytest.mark.parametrize("name", TENSORS)
def test_a_malformed_tensor_is_refused(name: str) -> None:
    """Declarations are checked before memory is taken for them."""
    head = json.dumps({"head": {}, "tensors": [TENSORS[name]]}).encode()
    with pytest.raises(MalformedFrame):
        decode(head, bytearray(4))


def test_a_boolean_is_0_or_1() -> None:
    """A bool tensor with other bytes would behave differently from kernel to kernel."""
    head = json.dumps({"head": {}, "tensors": [["t", "bool", [1]]]}).encode()
    with pytest.raises(MalformedFrame):
        decode(head, bytearray(b"\x07"))


@pytest.mark.parametrize(
    "header",
    [
        HEADER.pack(b"HTTP", 1, 2, 3),
        HEADER.pack(MAGIC, 1, 0xFFFFFFFF, 0),
        HEADER.pack(MAGIC, 1, 0, 0xFFFFFFFF),
    ],
)
def test_a_malformed_header_is_refused(header: bytes) -> None:
    """Before anything is read or allocated."""
    with pytest.raises(MalformedFrame):
        decode_header(header)


def test_an_answer_may_be_less_large_than_a_call() -> None:
    """A hostile worker sends as much as it may, each time."""
    for header in (HEADER.pack(MAGIC, 1, 1 << 20, 0), HEADER.pack(MAGIC, 1, 2, 64 << 20)):
        decode_header(header)
        with pytest.raises(MalformedFrame):
            decode_header(header, of_answer=True)


def _decoded(frame: bytes) -> tuple[dict, dict[str, torch.Tensor]]:
    call_id, head_bytes, body_bytes = decode_header(frame[: HEADER.size])
    head_end = HEADER.size + head_bytes
    assert call_id == struct.unpack("!Q", frame[4:12])[0]
    assert len(frame) == head_end + body_bytes
    return decode(frame[HEADER.size : head_end], bytearray(frame[head_end:]))
