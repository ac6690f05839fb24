"""Hierarchies of ranges that ratings are generalized to (DGH; Riyana & Natwichai, definition 7)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, isfinite
from typing import Any

from kgather._errors import InputError

Range = tuple[float, float]
Level = tuple[Range, ...]

HALVES: tuple[Level, ...] = (((0.0, 2.0), (3.0, 5.0)), ((0.0, 5.0),))
"""The hierarchy `halves`, of the scale 0 to 5."""

_KINDS = "halves, binary or a list of levels, each a list of [low, high], the finest first"


@dataclass(frozen=True)
class Hierarchy:
    """Levels of closed ranges, the finest first and one range last; level 0, the ratings themselves, is not listed.

    Within a level the ranges are disjoint and ascend, and each lies inside one range of the next level.
    """

    levels: tuple[Level, ...]

    @classmethod
    def parse(
        cls, levels: object, low: float | None = None, high: float | None = None, step: float | None = None
    ) -> "Hierarchy":
        """Build a hierarchy from what a user wrote: `halves`, `binary` or a list of levels.

        low, high, step: the scale of the ratings, where it is known. Every level has to cover the steps of the scale
        and 0, which stands for "not rated"; gaps between steps do no harm. Of a scale without a step only the last
        level has to cover both ends and 0: what falls into a gap takes a wider range.
        `binary` has no levels before the scale is known.

        Raises InputError saying which level and which ranges are wrong.
        """
        domain = domain_of(low, high, step) if low is not None and high is not None else []
        if isinstance(levels, str):
            if levels == "binary":
                return cls(binary(domain, stepped=step is not None) if domain else ())
            if levels != "halves":
                msg = f"a hierarchy is {_KINDS}, not {levels!r}."
                raise InputError(msg)
            parsed: Sequence[Level] = HALVES
        else:
            parsed = [_level(number, ranges) for number, ranges in enumerate(_listed(levels), start=1)]
        for number, ranges in enumerate(parsed, start=1):
            _check_disjoint(number, ranges)
        for number, (ranges, wider) in enumerate(pairwise(parsed), start=1):
            _check_nested(number, ranges, wider)
        if len(parsed[-1]) > 1:
            msg = f"level {len(parsed)} of the hierarchy, the last, is one range, not {_text(parsed[-1])}."
            raise InputError(msg)
        for number, ranges in enumerate(parsed, start=1):
            if step is not None or number == len(parsed):
                _check_covering(number, ranges, domain)
        return cls(tuple(parsed))

    def rows(self) -> list[tuple[int, float, float]]:
        """Return (level, low, high) of every range, level 1 first: the relation that `kg_generalize_ranges` takes."""
        return [(number, *each) for number, ranges in enumerate(self.levels, start=1) for each in ranges]


def domain_of(low: float, high: float, step: float | None) -> list[float]:
    """The values of a scale and 0 for "not rated", ascending; of a scale without a step its ends and 0.

    Raises InputError if low is not below high or the step does not fit in between.
    """
    # 10 - 9.9 is a little less than 0.1.
    if not (isfinite(low) and isfinite(high) and low < high) or (
        step is not None and not 0 < step <= high - low + 1e-6
    ):
        msg = f"a scale is min, max and perhaps a step that fits between them, not {low!r}, {high!r}, {step!r}."
        raise InputError(msg)
    values = {0.0, float(low), float(high)}
    if step is not None:
        # Nine digits, so that 3 steps of 0.1 are 0.3.
        steps = ceil((high - low) / step - 1e-6)
        values |= {float(round(low + number * step, 9)) for number in range(1, steps)}
    return sorted(values)


def binary(domain: Sequence[float], *, stepped: bool = True) -> tuple[Level, ...]:
    """Halve the sorted values until they are single; the last level is the whole. O(n log n) for n values.

    Raises InputError if the values are not the steps of a scale.
    """
    if not stepped or len(domain) < 2:
        msg = "the hierarchy binary needs a scale with a step; give the scale's step, or list the levels."
        raise InputError(msg)
    n = len(domain)
    levels = []
    # Cut c times, value i falls into part i * 2^c // n. Parts are nested: floor(floor(2 x) / 2) = floor(x).
    for cuts in range((n - 1).bit_length()):
        parts: dict[int, list[float]] = {}
        for place, value in enumerate(domain):
            parts.setdefault((place << cuts) // n, []).append(value)
        levels.append(tuple((part[0], part[-1]) for part in parts.values()))
    return tuple(reversed(levels))


def _listed(levels: object) -> list[Any]:
    if not isinstance(levels, list | tuple) or not levels:
        msg = f"a hierarchy is {_KINDS}, not {levels!r}."
        raise InputError(msg)
    return list(levels)


def _level(number: int, ranges: object) -> Level:
    if not isinstance(ranges, list | tuple) or not ranges:
        msg = f"level {number} of the hierarchy is a list of [low, high], not {ranges!r}."
        raise InputError(msg)
    return tuple(sorted(_range(number, each) for each in ranges))


def _range(number: int, given: object) -> Range:
    if isinstance(given, list | tuple) and len(given) == 2 and all(map(_is_number, given)) and given[0] <= given[1]:
        return float(given[0]), float(given[1])
    msg = f"level {number} of the hierarchy is a list of [low, high] with low not above high, not {given!r}."
    raise InputError(msg)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _check_disjoint(number: int, ranges: Level) -> None:
    for one, next_one in pairwise(ranges):
        if one[1] >= next_one[0]:
            msg = (
                f"level {number} of the hierarchy: the ranges {_text([one])} and {_text([next_one])} overlap; "
                "both ends belong to a range."
            )
            raise InputError(msg)


def _check_nested(number: int, ranges: Level, wider: Level) -> None:
    # The wider ranges are disjoint, so a range lies in one of them at most.
    for low, high in ranges:
        if not any(other[0] <= low and high <= other[1] for other in wider):
            msg = (
                f"level {number} of the hierarchy: the range {_text([(low, high)])} lies in no range of level "
                f"{number + 1}, which has {_text(wider)}; list the finest level first."
            )
            raise InputError(msg)


def _check_covering(number: int, ranges: Level, domain: Iterable[float]) -> None:
    left_out = [value for value in domain if not any(low <= value <= high for low, high in ranges)]
    if left_out:
        some = ", ".join(f"{value:g}" for value in left_out[:5]) + (", ..." if len(left_out) > 5 else "")
        zero = " (0 stands for not rated)" if 0 in left_out else ""
        msg = (
            f"level {number} of the hierarchy: no range covers {some}{zero}; its ranges are {_text(ranges)}. "
            "Extend them, or use the hierarchy binary."
        )
        raise InputError(msg)


def _text(ranges: Iterable[Range]) -> str:
    return ", ".join(f"[{low:g}, {high:g}]" for low, high in ranges)
