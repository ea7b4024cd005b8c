"""Bytes as text: UTF-8, UTF-16 and UTF-32 with and without mark, GB18030, and UTF-8 with some bytes that are none."""

from __future__ import annotations

import codecs

from compatcheck.errors import InputError
from compatcheck.language import gettext as _

_DOING = "reading the report"
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b\x1e"))
_SAMPLE = 1 << 16
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PICTURES = (
    (b"\x89PNG\r\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"%PDF-", "PDF"),
)
_ARCHIVES = (
    (b"PK\x03\x04", "ZIP"),
    (b"\x1f\x8b", "gzip"),
    (b"7z\xbc\xaf", "7z"),
)
_PASTE = "copy the text and paste it"
_USUAL = 0.95
_FEW = 0.02


def decoded(raw: bytes, source: str) -> str:
    """The text of the bytes; raises `InputError` where they are none."""
    _refuse_pictures(raw, source)
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    if b"\0" in raw[:_SAMPLE]:
        for encoding in ("utf-16-le", "utf-16-be"):
            text = raw.decode(encoding, "replace")
            if _share_of_usual(text[:_SAMPLE]) >= _USUAL:
                return text
    sample = raw[:_SAMPLE]
    if (len(sample) - len(sample.translate(None, _CONTROLS))) * 100 > len(sample):
        raise InputError(_DOING, source, "the file is binary", "paste the text of the report")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _likeliest(raw, source)


def _refuse_pictures(raw: bytes, source: str) -> None:
    webp = raw[:4] == b"RIFF" and raw[8:12] == b"WEBP"
    kind = "WebP" if webp else next((kind for start, kind in _PICTURES if raw.startswith(start)), None)
    if kind:
        raise InputError(
            _DOING, source, _("this is a {kind} file, and images and PDFs are not read").format(kind=kind), _PASTE
        )
    archive = next((kind for start, kind in _ARCHIVES if raw.startswith(start)), None)
    if archive:
        raise InputError(
            _DOING, source, _("this is a {kind} archive").format(kind=archive), "unpack it and pass the text"
        )


def _likeliest(raw: bytes, source: str) -> str:
    """Text that is no UTF-8: GB18030 where that gives common characters, else UTF-8 but for a few bytes."""
    loose = raw.decode("utf-8", "replace")
    stray, wide = loose.count("\ufffd"), sum(char >= "\u2000" for char in loose)
    if wide - stray >= 2 * stray:
        return loose
    chinese = raw.decode("gb18030", "replace")
    if chinese.count("\ufffd") <= _FEW * len(chinese) and _share_of_common(chinese[:_SAMPLE]) >= _USUAL - 0.1:
        return chinese
    if stray <= _FEW * len(loose):
        return loose
    raise InputError(_DOING, source, "the encoding is not UTF-8, UTF-16 or GBK", "save it as UTF-8")


def _share_of_usual(text: str) -> float:
    """The share of characters that an English or Chinese text has."""
    return sum(_is_usual(char) for char in text) / max(len(text), 1)


def _is_usual(char: str) -> bool:
    return (
        " " <= char <= "~"
        or char in "\t\n\r\x1b"
        or "\u4e00" <= char <= "\u9fff"
        or "\u2000" <= char <= "\u303f"
        or "\uff00" <= char <= "\uffef"
    )


def _share_of_common(text: str) -> float:
    """Of the characters that are no ASCII, the share of those that GB 2312 has, which are the ones in use."""
    wide = [char for char in text if char > "\x7f"]
    return sum(_is_common(char) for char in wide) / max(len(wide), 1)


def _is_common(char: str) -> bool:
    try:
        char.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return "\u4e00" <= char <= "\u9fff" or "\u2000" <= char <= "\u303f" or "\uff00" <= char <= "\uffef"
