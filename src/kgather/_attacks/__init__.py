"""Attacks on a release by whoever made it: how often a person is found, and what is learnt of them."""

from kgather._attacks.auxiliary import Knowledge
from kgather._attacks.results import AttackReport, AttackResult, Rate
from kgather._attacks.runner import ATTACKS, KNOWN, Extra, quick, run

__all__ = ["ATTACKS", "KNOWN", "AttackReport", "AttackResult", "Extra", "Knowledge", "Rate", "quick", "run"]
