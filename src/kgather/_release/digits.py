"""How many decimals a release shows, as the macro `kg_digits` has it."""

import math


def shown_digits(width: float) -> int:
    """The decimals of a released rating on a scale of this width: the last one is worth at most a hundredth of it."""
    return 2 - math.floor(math.log10(width)) if 0 < width < math.inf else 2
