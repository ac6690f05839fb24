"""Structure-based and label-based attacks (Chang, Thompson, Wang and Yao 2010, sections 4.3, 5.2 and 6).

The first knows which items the target rated, the second the ratings too. Both keep all candidates that agree with what
is known and take any of them; they are sure where a single one is left. Who finds none names nobody.
"""

from kgather._attacks.guesses import Guesses
from kgather._attacks.results import AttackResult
from kgather.udfs.attacking._scoring import LABEL, STRUCTURE


def structure(guesses: Guesses, *, seed: int = 0) -> AttackResult:
    """Candidates that show all known items. Where all show all, this is chance."""
    return _consistent(guesses, "structure", guesses.known.knowledge.items, STRUCTURE, seed)


def label(guesses: Guesses, *, seed: int = 0) -> AttackResult:
    """Candidates that show all known items with values within the tolerance of the known ratings."""
    return _consistent(guesses, "label", guesses.known.knowledge.ratings, LABEL, seed)


def _consistent(guesses: Guesses, attack: str, knowledge: str, rule: int, seed: int) -> AttackResult:
    ties = guesses.ties(rule)
    details = {"consistent": float(ties.mean()) if len(ties) else 0.0}
    return guesses.result(attack, knowledge, rule, seed, guesses.stands_out(rule) > 0, details)
