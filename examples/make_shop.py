"""Writes a made-up shop to try the query guard on: people, what they bought, and the items.

python examples/make_shop.py shop.duckdb
"""

import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

PEOPLE, ITEMS, DAYS = 6_000, 40, 730
CITIES = np.array(("Bergen", "Ghent", "Graz", "Lyon", "Wien"))
GENRES = np.array(("cooking", "crime", "history", "poetry", "travel"))


def shop(seed: int = 2026) -> dict[str, pa.Table]:
    """The tables of the shop, by name."""
    rng = np.random.default_rng(seed)
    city = rng.choice(len(CITIES), PEOPLE, p=(0.1, 0.2, 0.15, 0.25, 0.3))
    age = np.clip(rng.normal(45, 15, PEOPLE).round(), 18, 90).astype(int)
    salary = np.clip(rng.lognormal(10.5, 0.4, PEOPLE) + 300 * (age - 45), 8_000, 200_000).round(-2).astype(int)
    rating = np.clip((3.4 + 0.3 * (city == 4) + rng.normal(0, 1.1, PEOPLE)).round(), 1, 5).astype(int)
    number = np.arange(1, PEOPLE + 1)
    customer = np.repeat(number, np.minimum(rng.geometric(0.15, PEOPLE), 30))
    fame = 1 / np.arange(1, ITEMS + 1) ** 0.7
    item = rng.choice(ITEMS, len(customer), p=fame / fame.sum()) + 1
    day = np.datetime64("2024-01-01") + rng.integers(0, DAYS, len(customer))
    every = np.arange(1, ITEMS + 1)
    columns = {
        "people": {"customer_id": number, "city": CITIES[city], "age": age, "salary": salary, "rating": rating},
        "purchases": {"customer_id": customer, "item_id": item, "bought_on": day},
        "items": {"item_id": every, "title": [f"Book {at}" for at in every], "genre": GENRES[every % len(GENRES)]},
    }
    return {name: pa.table(of) for name, of in columns.items()}


def write(path: Path) -> None:
    """Write the shop as a database that is not there yet."""
    with duckdb.connect(path) as con:
        for name, table in shop().items():
            con.register("made_up", table)
            con.execute(f"create table {name} as from made_up")
            con.unregister("made_up")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
