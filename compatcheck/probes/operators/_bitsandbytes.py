"""What several probes ask of the installed bitsandbytes: which native library it loaded, and its stored numbers."""

from __future__ import annotations

from typing import Iterator

from compatcheck.probes._criterion import Row, Tensor

NATIVE = "native library"


def native_rows(device: str) -> Iterator[Row]:
    """On CUDA a row that fails where the CPU's library was loaded, and torch's own view of the GPU as control.

    bitsandbytes falls back to its CPU library where it finds none for torch's CUDA version
    (bitsandbytes-foundation/bitsandbytes#719), and says so in a log line only.
    """
    if device != "cuda":
        return
    row = {"case": NATIVE, "dtype": "any", "tensor": "its CUDA library", "theta": 0.0, "rho": 0.0, "nonfinite": 0}
    yield {**row, "variant": "torch sees the GPU", "control": True}
    library = native_library()
    if library["cuda"]:
        yield {**row, "variant": "bitsandbytes"}
    else:
        yield {
            **row,
            "variant": "bitsandbytes",
            "error": f"nothing, but loaded {library['file']} and not a CUDA library",
        }


def native_library() -> Row:
    """File name of the native library, and whether it is for a GPU; the file is empty where none was loaded."""
    from bitsandbytes import cextension

    library = getattr(cextension, "lib", None)
    handle = getattr(library, "_lib", library)
    file = str(getattr(handle, "_name", "") or "").replace("\\", "/").rpartition("/")[2]
    built = getattr(library, "compiled_with_cuda", getattr(cextension, "COMPILED_WITH_CUDA", False))
    return {"file": file, "cuda": bool(built)}


def blockwise(codes: Tensor, code_book: Tensor, absmax: Tensor, block: int) -> Tensor:
    """Code book entry times its block's largest magnitude, flat float64 on the CPU."""
    values = code_book.double().cpu()[codes.flatten().cpu().long()]
    return values * absmax.double().cpu().repeat_interleave(block)[: values.numel()]
