"""The questions that a policy has measured first: planned, or told as what is wrong with the policy."""

import duckdb

from kgather._errors import InputError
from kgather._guard.catalog import Catalog
from kgather._guard.plan import Plan
from kgather._guard.planner import plan
from kgather._guard.refused import Refused


def prepared(catalog: Catalog) -> tuple[Plan, ...]:
    """The plans of what the policy prepares. Decided by its text and the catalog alone.

    Raises InputError for an entry that is refused, or that asks nothing about people: with file, line, entry and why.
    """
    return tuple(_plan(at, text, catalog) for at, text in enumerate(catalog.policy.prepare))


def _plan(at: int, text: str, catalog: Catalog) -> Plan:
    try:
        made = plan(text, catalog)
    except Refused as refusal:
        raise _wrong(at, refusal.reason, catalog) from None
    except (ArithmeticError, ValueError, duckdb.Error):
        told = "It holds a value that is out of range, or a text that cannot be read."
        raise _wrong(at, told, catalog) from None
    if not isinstance(made, Plan) or not made.blocks:
        raise _wrong(at, "It asks nothing about people, so there is nothing to measure. Remove it.", catalog)
    return made


def _wrong(at: int, why: str, catalog: Catalog) -> InputError:
    return catalog.policy.error(("prepare", at), f"this question cannot be prepared. {why}")
