"""Checks anyone can repeat: of a release or of any relation, from what it holds and nothing else."""

from kgather.verify.asked import Asked
from kgather.verify.folder import is_release, promised_size, verify_release
from kgather.verify.models import verify_models, verify_relation

__all__ = ["Asked", "is_release", "promised_size", "verify_models", "verify_relation", "verify_release"]
