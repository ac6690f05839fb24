"""No ratings of groups: the generalized table alone."""

from kgather._forms.record import Form

FORM = Form(
    name="none",
    text="the generalized table alone",
    rows="nobody",
    cells=("all", "rated", "top", "low_rank"),
    bounded=True,
)
