"""The methods of gathering: one module each, which says all that the rest of kgather needs to know of a method.

`registered()` finds them: every module here with a `METHOD`, and those that other packages register under the entry
point `kgather.methods` (docs/methods/README.md).
"""

from kgather._methods.record import Facts, Method, NoOptions
from kgather._methods.registry import built_in, method_named, registered
from kgather._methods.users import Groups, Users

__all__ = ["Facts", "Groups", "Method", "NoOptions", "Users", "built_in", "method_named", "registered"]
