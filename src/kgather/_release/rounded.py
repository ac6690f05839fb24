"""What of an audit may leave with the release: numbers of rows and of what attackers get are rounded.

Whoever knows all ratings but one reads from an exact number of rows whether there is that one, and from the checksum of
a file what it says. What is exact stays with the publisher.
"""

import hmac
import math
from collections.abc import Mapping
from typing import Any

_DIGITS = 2
_LEAST_STEP = 10  # of numbers of rows: small ones are somebody's
_ROWS = ("read_rows", "staged_rows", "rejected_rows")
_AS_THEY_ARE = frozenset({"seed", "known", "chance_user", "chance_group", "shadows"})


def rounded(said: Mapping[str, Any], key: bytes | None) -> dict[str, Any]:
    """An audit as plain data, as it leaves with the release.

    key: that of the noise, for keyed checksums of the files that were read; None: there are none.
    """
    counts = dict(said["counts"])
    counts |= {name: rows(counts[name]) for name in _ROWS if name in counts}
    if isinstance(counts.get("rejected_by_reason"), Mapping):
        counts["rejected_by_reason"] = {why: rows(n) for why, n in counts["rejected_by_reason"].items()}
    found = {**said, "counts": counts}
    if isinstance(said.get("read"), Mapping):
        found["read"] = _read(said["read"], key)
    if isinstance(said.get("attacks"), Mapping):
        found["attacks"] = {
            name: part if name == "settings" else _attacks(part) for name, part in said["attacks"].items()
        }
    return found


def rows(n: int) -> int:
    """A number of rows, with two digits, and in tens at least."""
    if n <= 0:
        return 0
    step = max(10 ** (len(str(n)) - _DIGITS), _LEAST_STEP)
    return int(step * math.floor(n / step + 0.5))


def _read(read: Mapping[str, Any], key: bytes | None) -> dict[str, Any]:
    found = dict(read)
    found["files"] = [_file(file, key) for file in read.get("files", [])]
    if isinstance(found.get("repeats"), int):
        found["repeats"] = rows(found["repeats"])
    for name in ("set_aside", "merged"):
        if isinstance(found.get(name), Mapping):
            found[name] = {why: rows(n) for why, n in found[name].items()}
    if isinstance(found.get("further_files"), Mapping):
        found["further_files"] = {**found["further_files"], "rows": rows(found["further_files"]["rows"])}
    return found


def _file(file: Mapping[str, Any], key: bytes | None) -> dict[str, Any]:
    kept = {name: value for name, value in file.items() if name != "sha256"}
    kept |= {name: rows(file[name]) for name in ("rows", "set_aside") if name in file}
    if key is not None and "sha256" in file:
        kept["keyed_sha256"] = hmac.digest(key, str(file["sha256"]).encode(), "sha256").hex()
    return kept


def _attacks(part: Any) -> Any:
    """Numbers with two digits, wherever they stand."""
    if isinstance(part, Mapping):
        return {name: each if name in _AS_THEY_ARE else _attacks(each) for name, each in part.items()}
    if isinstance(part, list | tuple):
        return [_attacks(each) for each in part]
    if isinstance(part, bool) or not isinstance(part, int | float) or part == 0 or not math.isfinite(part):
        return part
    digits = _DIGITS - 1 - math.floor(math.log10(abs(part)))
    return type(part)(round(part, digits))
