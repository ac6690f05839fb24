"""Addresses of what a policy attaches: a path, or one through an extension of DuckDB, as ducklake:lake.ducklake or
iceberg:FOLDER."""

from pathlib import Path

ICEBERG = "iceberg"
_BY_EXTENSION = ("ducklake", ICEBERG)


def extension_of(address: str) -> str:
    """The extension that an address is attached through, "" of a path."""
    word, colon, _ = address.partition(":")
    return word if colon and word in _BY_EXTENSION else ""


def path_of(address: str) -> Path:
    """The file or folder of an address."""
    return Path(address.partition(":")[2] if extension_of(address) else address)


def beside(address: str, folder: Path) -> str:
    """An address with its path beside a folder, if it is relative."""
    word = extension_of(address)
    return f"{word}:{folder / path_of(address)}" if word else str(folder / address)
