"""Measures again what is asked most, from what other questions did not use.

After so many different questions, half of what each pool has left goes to the margins of it that were asked for most.
When that happens, and what is measured, follows from the questions alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kgather._guard.measured.kinds import People
from kgather._guard.measured.ledger import Measurement
from kgather._guard.measured.measuring import Wanted
from kgather._guard.measured.shares import payer

FIRST = 500
"""Different questions after which it is done for the first time; then after twice as many each time."""
_MOST = 10  # margins of a pool that are measured again
_PART = 0.5  # of what a pool has left


@dataclass
class Tally:
    """How often each measurement was asked for. questions: different ones in all."""

    questions: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    known: dict[str, Wanted] = field(default_factory=dict)
    """What the names stand for, of those asked for here."""

    def count(self, used: Iterable[Wanted]) -> bool:
        """Count a question by what it used; whether it is time to measure again."""
        self.questions += 1
        for wanted in used:
            self.asked[wanted.known_as] += 1
            self.known[wanted.known_as] = wanted
        done = self.questions
        return done >= FIRST and done % FIRST == 0 and (done // FIRST) & (done // FIRST - 1) == 0

    def again(self, people: People, before: Iterable[Measurement]) -> list[Wanted]:
        """What is measured again of people of a kind, each with its price. before: all measurements."""
        prices, before = people.prices, people.charged(before)
        spent: Counter[str] = Counter()
        for one in before:
            spent[str(one.about.get("pool", ""))] += one.rho  # type: ignore[assignment]
        found = []
        for pool, whole in prices.pools.items():
            left = whole - spent[pool]
            if left <= prices.fresh:
                continue
            names = [
                name
                for name, wanted in self.known.items()
                if wanted.whom == people.kind and payer(wanted.pool) == pool and wanted.kind in ("counts", "sums")
            ]
            most = sorted(names, key=lambda name: (-self.asked[name], name))[:_MOST]
            found += [replace(self.known[name], price=left * _PART / len(most)) for name in most]
        return found


def merged(kept: Mapping[str, int], tally: Tally) -> Tally:
    """A tally that goes on from what a ledger kept."""
    return Tally(
        kept.get("", 0) + tally.questions, Counter({name: times for name, times in kept.items() if name}) + tally.asked
    )
