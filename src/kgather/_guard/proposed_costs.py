"""What a proposed policy's decisions cost: which part of the budget a question takes, and how far answers are off.

It follows from the policy and a rough number of people, as `purchase` says it.
"""

import math
from dataclasses import dataclass

from kgather._guard.catalog import Catalog
from kgather._guard.guessed import Column, Table
from kgather._guard.measured.accounting import noise_for
from kgather._guard.measured.answering import SURE
from kgather._guard.measured.coding import FINE
from kgather._guard.measured.measuring import counted_beside
from kgather._guard.measured.purchase import least_of_values, least_people
from kgather._guard.measured.shares import Prices

_PART = 0.1
"""The part of all people whose mean stands for means in general."""
_BLURRED = 0.25  # of the distance of its bounds, by which a mean is off that tells nothing
_TOLD = 0.04  # of that distance: a mean that tells something


@dataclass(frozen=True)
class Costs:
    """Costs of the tables of a policy, as short sentences."""

    catalog: Catalog
    prices: Prices

    def of_columns(self, table: Table) -> list[str]:
        """What questions about a table's columns cost, and their errors, in lines."""
        rows = table.grain == "rows"
        what, before = ("rows", f"{table.name} ") if rows else ("people", "")
        reach = float(table.rows_per_person or 1) if rows else 1.0
        told = []
        for pool, columns in (("ones", "one column"), ("pairs", "two columns")):
            price = self.prices.of.get(f"{before}{pool}")
            if price:
                part, error = percent(price / self.prices.total), number(noise_for(reach, price))
                told.append(f"by {columns} {part}, error {error} {what}")
        if not told:
            return []
        many = table.rows if rows else table.people
        return [
            f"Costs of a count, in parts of the budget: {'; '.join(told)}.",
            f"There are about {rough(many):,} {what}. It is paid once. Fewer columns make smaller errors.",
        ]

    @property
    def least_people(self) -> float:
        """From how many people on a group is shown."""
        return least_people(self.catalog, self.prices)

    def least_rows(self, table: Table) -> float:
        """From how many rows on a group of a long table is shown; 0 of others, whose people count."""
        price = self.prices.of.get(f"{table.name} ones")
        if table.grain == "unit" or not price:
            return 0.0
        return self.catalog.policy.k + SURE * noise_for(float(table.rows_per_person or 1), price)

    def of_mean(self, table: Table, column: Column) -> str:
        """The error of the mean of a column in a tenth of the people, or rows."""
        error = self.error_of_mean(table, column)
        if error is None:
            return ""
        low, high = table.bounds[column.name]
        if error >= _BLURRED * float(high - low):
            return "AVG: too few people, but for all of them together"
        return f"AVG of a tenth of the {'rows' if table.grain == 'rows' else 'people'}: error {number(error)}"

    def error_of_mean(self, table: Table, column: Column, part: float = _PART) -> float | None:
        """The standard error of the mean of a column in a part of the people, or rows; None where it is not known."""
        limits = table.bounds.get(column.name)
        rows = table.grain == "rows"
        price = self.prices.of.get(f"{table.name} sums" if rows else "sums", self.prices.fresh)
        most = float(table.rows_per_person or 1) if rows else 1.0
        many = min(table.rows, table.people * most) if rows else table.people
        if limits is None or not many:
            return None
        half = float(limits.high - limits.low) / 2
        length = math.hypot(FINE, counted_beside("rows" if rows else "people")) / FINE
        return half * noise_for(most * length, price) / max(part * rough(many), 1)

    def tells_means(self, table: Table, column: Column, part: float) -> bool:
        """Whether means of a column in so large parts of the people are told from noise."""
        error = self.error_of_mean(table, column, part)
        low, high = table.bounds[column.name]
        return error is not None and error < _TOLD * float(high - low)

    def of_found(self, table: Table) -> str:
        """From how many people on values are shown that are not listed."""
        info = self.catalog.table(table.name)
        least = least_of_values(self.catalog, self.prices, info) if info is not None else None
        return "" if least is None else f"shown from about {number(least)} people on"


def rough(many: float) -> int:
    """A number with its first digit only."""
    digits = int(math.log10(max(many, 1.0)))
    return max(round(many / 10**digits), 1) * 10**digits


def number(value: float) -> str:
    """Two digits, or what is before the point."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def percent(part: float) -> str:
    """A part with one digit."""
    return f"{100 * part:,.0f}%" if part >= 0.1 else f"{100 * part:.1g}%"
