"""The mean over all members of the rating, or of the prediction where there is none."""

from kgather._forms._sentences import MODEL
from kgather._forms.record import Form

FORM = Form(
    name="padded",
    text="the mean over all members of the rating, or of the prediction if there is none",
    cells=("all", "rated", "top", "best", "popular"),
    needs_solver=True,
    adds_cells=True,
    not_promised=MODEL,
)
