"""What audit.json says of a made-up release with all that a report can show."""

from typing import Any

CHECKS = [
    {"check": "k-anonymity: users in the smallest group", "promised": 5, "measured": 5, "passed": True},
    {"check": "users of the input in exactly one group", "promised": 240, "measured": 240, "passed": True},
    {"check": "original user ids among pseudonyms and group ids", "promised": 0, "measured": 0, "passed": True},
    {
        "check": "cells that show the exact rating of their only rater",
        "promised": None,
        "measured": 12,
        "passed": True,
    },
]


def rate(value: float, spread: float = 0.03) -> dict[str, float]:
    return {"value": value, "low": max(value - spread, 0.0), "high": min(value + spread, 1.0)}


def attack(name: str, known: str, user: float, group: float, on: str = "release", **more: Any) -> dict[str, Any]:
    people = 240 if on == "release" else 1
    return {
        "attack": name,
        "knowledge": known,
        "targets": 1000,
        "user": rate(user, 0.01),
        "group": rate(group),
        "matched": None,
        "wrong_among_matched": None,
        "chance_user": 1 / 240,
        "chance_group": 1 / (45 if people > 1 else 240),
        "seed": 0,
        "on": on,
        **more,
    }


def sweep_row(method: str, k: int, mae: float, risk: float, *, front: bool = False) -> dict[str, Any]:
    return {
        "method": method,
        "k": k,
        "mae": mae,
        "covered": 0.998,
        "right_group_4": 2 * risk,
        "right_group_8": 4 * risk,
        "user_reidentification": risk,
        "exact_disclosure": 0.0,
        "groups": 240 // k,
        "seconds": 1.25,
        "refused": None,
        "front": front,
    }


SWEEP = [
    sweep_row("bkg", 2, 0.71, 0.061, front=True),
    sweep_row("bkg", 5, 0.722, 0.034, front=True),
    sweep_row("bkg", 10, 0.728, 0.018, front=True),
    sweep_row("bkg", 20, 0.734, 0.009, front=True),
    sweep_row("mdav", 2, 0.712, 0.07),
    sweep_row("mdav", 5, 0.727, 0.04),
    sweep_row("mdav", 10, 0.739, 0.021),
    sweep_row("mdav", 20, 0.75, 0.012),
]


def audit() -> dict[str, Any]:
    """A release that kept what it promised, with metrics, attacks, group sizes and a sweep."""
    matched = {"matched": rate(0.02), "wrong_among_matched": rate(0.81, 0.1)}
    return {
        "kgather_version": "0.1.0",
        "passed": True,
        "parameters": {
            "k": 5,
            "method": "bkg",
            "method_options": {},
            "homogenize": "predicted",
            "generalize": "none",
            "artifacts": 10,
            "epsilon": 1.0,
            "level_column": None,
        },
        "counts": {
            "read_rows": 5271,
            "staged_rows": 5256,
            "rejected_rows": 15,
            "users": 241,
            "items": 80,
            "groups": 45,
            "largest_group": 7,
            "members": 240,
            "rejected_by_reason": {"the rating is no number": 11, "the user id is empty": 4},
        },
        "scale": {"min": 0.5, "max": 5.0, "step": 0.5, "declared": False},
        "checks": [dict(check) for check in CHECKS],
        "not_promised": [
            "What a trained model carries over: predictions come from item factors that all users' ratings formed.",
            "What the frame tells: every item that somebody rated is named.",
        ],
        "metrics": [
            {
                "metric": "MAE",
                "value": 0.7283,
                "about": "How far a shown value is from a rating that a member gave, on average, in rating units.",
            },
            {"metric": "discernibility", "value": 1312.0, "about": "Sum of squared group sizes."},
            {"metric": "coverage", "value": 0.998, "about": "Share of the ratings whose item the group shows."},
        ],
        "attacks": [
            attack("distance", "4 exact ratings", 0.011, 0.06),
            attack("distance", "8 exact ratings", 0.02, 0.1),
            attack("scoring", "4 exact ratings", 0.012, 0.06, **matched, details={"best_is_right": 0.0612}),
            attack("scoring", "8 exact ratings", 0.024, 0.12, **matched),
            attack("label", "4 exact ratings", 0.008, 0.04),
            {
                **attack("disclosure", "the group", 0, 0),
                "user": None,
                "group": None,
                "details": {"cells": 3600.0, "one_rater": 0.31, "exact": 0.0, "near": 0.0212},
            },
            attack("distance", "4 exact ratings", 0.86, 0.86, "original"),
            attack("distance", "8 exact ratings", 0.98, 0.98, "original"),
            attack("scoring", "4 exact ratings", 0.94, 0.94, "original", matched=rate(0.5)),
            attack("scoring", "8 exact ratings", 1.0, 1.0, "original", matched=rate(0.88)),
            attack("label", "4 exact ratings", 0.91, 0.91, "original"),
        ],
        "group_sizes": [{"size": 5, "groups": 34}, {"size": 6, "groups": 7}, {"size": 7, "groups": 4}],
        "files": {
            "ratings.parquet": "2c129a91" * 8,
            "groups.parquet": "766ffc0c" * 8,
            "release.duckdb": "05a8fabc" * 8,
        },
        "sweep": [dict(row) for row in SWEEP],
    }


def sweep_said() -> dict[str, Any]:
    """What sweep.json says of a made-up sweep."""
    refused = {"method": "bokg", "k": 5, "refused": "method bokg needs each user's level, which a sweep has not."}
    return {
        "kgather_version": "0.1.0",
        "inputs": ["ratings.csv"],
        "seed": 0,
        "share": 0.2,
        "settings": {"rank": 10},
        "rows": [*[dict(row) for row in SWEEP], refused],
    }
