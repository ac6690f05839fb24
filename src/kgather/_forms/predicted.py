"""The default: what the members of a group are predicted to think, on average."""

from kgather._forms._sentences import MODEL
from kgather._forms.record import Form

FORM = Form(
    name="predicted",
    text="the members' mean predicted rating",
    cells=("all", "rated", "top", "best", "popular", "low_rank"),
    needs_solver=True,
    adds_cells=True,
    predicts=True,
    not_promised=MODEL,
)
