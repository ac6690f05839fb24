"""Multiply and add with one rounding: a * b + c.

Written out, the compiler may choose which product of a sum it fuses, and so on which value the next step
has to wait; and results would hang on that choice.
"""

# ruff: noqa: ARG001 (an intrinsic names arguments that only its signature uses)

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c in float32, rounded once."""
    scalar = types.float32

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return scalar(scalar, scalar, scalar), codegen
