"""Weight files from their headers alone: what is in them, and what is wrong with them; no tensor is read.

The safetensors format is stated at https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from compatcheck.files import limits
from compatcheck.files.reading import open_bytes

_LFS = b"version https://git-lfs.github.com/spec/"
LFS_PROBLEM = "a Git LFS pointer, not the file itself: run `git lfs pull` or download it"
_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}


class HeaderError(Exception):
    """The words say what is wrong with the file, in one line."""


class Tensor(NamedTuple):
    """``elements`` are the numbers stored: weights that are packed count as they are stored."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class Shard(NamedTuple):
    """The header of one safetensors file; ``has_metadata`` is whether it states any metadata at all."""

    tensors: Mapping[str, Tensor]
    has_metadata: bool


def read_shard(path: str) -> Shard:
    """The header of a safetensors file, compared with the length of the file.

    Raises `HeaderError` where the file is truncated, damaged or no safetensors, and `OSError` where it is unreadable.
    """
    size = os.path.getsize(path)
    with open_bytes(path) as stream:
        start = stream.read(8)
        if is_lfs_pointer(start + stream.read(64)):
            raise HeaderError(LFS_PROBLEM)
        stream.seek(8)
        length = int.from_bytes(start, "little")
        if size < 8 or length > size - 8:
            if length <= limits.HEADER_BYTES:
                raise HeaderError(f"truncated: {size} bytes, but its header takes {length + 8}")
            raise HeaderError(f"damaged: its header claims {length} bytes")
        if length > limits.HEADER_BYTES:
            raise HeaderError(f"damaged: its header claims {length} bytes")
        text = stream.read(length).decode("utf-8", "replace")
    if sum(map(text.count, "{[,:")) > limits.HEADER_VALUES:
        raise HeaderError(f"damaged: its header holds more than {limits.HEADER_VALUES} values")
    header = _object(text)
    tensors = {name: _tensor(name, stated) for name, stated in header.items() if name != "__metadata__"}
    expected = 8 + length + _end(tensors)
    if size != expected:
        told = f"truncated: {size} bytes of {expected}" if size < expected else f"{size - expected} bytes too long"
        raise HeaderError(told)
    return Shard(tensors, isinstance(header.get("__metadata__"), dict))


def is_lfs_pointer(start: bytes) -> bool:
    return start.startswith(_LFS)


def summary(shards: Iterable[Shard]) -> dict[str, object]:
    """What the tensors of some files are together: how many numbers, how many bytes, and the bytes by dtype."""
    dtypes: dict[str, int] = {}
    elements = 0
    for shard in shards:
        for tensor in shard.tensors.values():
            dtypes[tensor.dtype] = dtypes.get(tensor.dtype, 0) + tensor.end - tensor.begin
            elements += tensor.elements
    return {"elements": elements, "bytes": sum(dtypes.values()), "bytes_by_dtype": dict(sorted(dtypes.items()))}


def _object(text: str) -> dict[str, object]:
    try:
        header = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        seen = "the content is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise HeaderError(f"damaged: its safetensors header is invalid: {seen:.160}") from None
    if not isinstance(header, dict):
        raise HeaderError("damaged: its header is not a JSON object")
    return header


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)[:60]!r} is given twice")
    return result


def _tensor(name: str, stated: Any) -> Tensor:
    def refuse(what: str) -> HeaderError:
        return HeaderError(f"damaged: the tensor {name[:60]!r} has {what} in the header")

    offsets = stated.get("data_offsets") if isinstance(stated, dict) else None
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise refuse("no data_offsets")
    shape, dtype = stated.get("shape"), stated.get("dtype")
    if not isinstance(shape, list) or not all(map(_is_count, shape)):
        raise refuse("no shape")
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise refuse(f"the dtype {str(dtype)[:20]!r}, which safetensors does not have")
    tensor = Tensor(dtype, tuple(shape), offsets[0], offsets[1])
    bits = tensor.elements * _BITS[dtype]
    if (tensor.end - tensor.begin) * 8 != bits:
        raise refuse(f"{tensor.end - tensor.begin} bytes, but its shape and dtype take {-(-bits // 8)}")
    return tensor


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _end(tensors: Mapping[str, Tensor]) -> int:
    """Where the last tensor ends; raises `HeaderError` where two overlap or leave a gap."""
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin != end:
            told = "overlaps the tensor before it" if tensor.begin < end else "leaves a gap before it"
            raise HeaderError(f"damaged: the tensor {name[:60]!r} {told}")
        end = tensor.end
    return end


def index_problems(
    index: Mapping[str, object], names: Iterable[str], shards: Mapping[str, Shard]
) -> Iterator[tuple[str | None, str]]:
    """What an index states that the files do not hold, as the file at fault (None: the index) and the words."""
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        yield None, "the index has no weight_map of tensor names and files"
        return
    here = set(names)
    placed: dict[str, list[str]] = {}
    for tensor, file in weight_map.items():
        placed.setdefault(file, []).append(tensor)
    if len(placed) > limits.MODEL_FILES:
        yield None, f"the index names {len(placed)} files"
        return
    for name, wanted in sorted(placed.items()):
        if name not in here:
            yield name[:200], f"missing: the index places {len(wanted)} tensors in this file"
        elif name in shards:
            lost = [tensor for tensor in wanted if tensor not in shards[name].tensors]
            if lost:
                yield (
                    name,
                    f"lacks {len(lost)} of the {len(wanted)} tensors that the index places in this file: {lost[0]:.80}",
                )


def size_note(index: Mapping[str, object], shards: Iterable[Shard]) -> str | None:
    """Where the index states another total size than its shards have; some published ones do and load all the same."""
    metadata = index.get("metadata")
    stated = metadata.get("total_size") if isinstance(metadata, dict) else None
    held = summary(shards)["bytes"]
    if isinstance(stated, (int, float)) and not isinstance(stated, bool) and stated != held:
        return (
            f"the total_size is {(int(stated) if math.isfinite(stated) else stated)}, but the shards hold {held} bytes"
        )
    return None
