"""Checks anyone can repeat: of a release or of any relation, from what it holds and nothing else."""

from kgather._verify.asked import Asked
from kgather._verify.folder import is_release, promised_size, verify_release
from kgather._verify.models import verify_models, verify_relation
from kgather._verify.targets import Verified, verify_named, verify_rows

__all__ = [
    "Asked",
    "Verified",
    "is_release",
    "promised_size",
    "verify_models",
    "verify_named",
    "verify_relation",
    "verify_release",
    "verify_rows",
]
