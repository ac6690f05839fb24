"""What a package needs to register a method of gathering of its own: docs/methods/README.md shows one.

What is named here is public; see docs/stability.md for what may change between versions.
"""

from kgather._methods import Groups, Method, NoOptions, Users

__all__ = ["Groups", "Method", "NoOptions", "Users"]
