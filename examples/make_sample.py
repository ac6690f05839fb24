"""Writes examples/ratings.csv: made-up ratings of made-up people, by four tastes.

python examples/make_sample.py examples/ratings.csv
"""

import csv
import sys
from pathlib import Path

import numpy as np

USERS, ITEMS, TASTES = 240, 80, 4


def sample(seed: int = 2026) -> list[tuple[str, int, float, int]]:
    """Return rows (user, item, rating in half stars, time), by time."""
    rng = np.random.default_rng(seed)
    taste = rng.integers(TASTES, size=USERS)
    level = rng.normal(0, 0.4, USERS)
    appeal = rng.normal(0, 0.5, ITEMS) + rng.normal(0, 0.9, (TASTES, ITEMS))
    fame = 1 / np.arange(1, ITEMS + 1) ** 0.6
    rows = []
    for user in range(USERS):
        activity = int(np.clip(rng.lognormal(3.0, 0.5), 5, 60))
        liked = fame * np.exp(0.5 * appeal[taste[user]])
        for item in rng.choice(ITEMS, activity, replace=False, p=liked / liked.sum()):
            opinion = 3.4 + level[user] + appeal[taste[user], item] + rng.normal(0, 0.6)
            rating = float(np.clip(np.round(opinion * 2) / 2, 0.5, 5))
            second = int(rng.integers(1_700_000_000, 1_730_000_000))
            rows.append((f"user-{user + 1:04d}", int(item) + 1, rating, second))
    rows.sort(key=lambda row: row[3])
    return rows


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("user_id", "item_id", "rating", "rated_at"))
        writer.writerows(sample())
