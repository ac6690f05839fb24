"""The forms of a release: one module each, which says all that the rest of kgather needs to know of a form.

What a form computes is SQL: the macro `form__<name>` in src/kgather/dbt/sql/homogenize, and `form__<name>__checks` for
checks of its own in the audit.
"""

from kgather._forms.record import CELLS, Form, FormFacts
from kgather._forms.registry import form_named, forms

__all__ = ["CELLS", "Form", "FormFacts", "form_named", "forms"]
