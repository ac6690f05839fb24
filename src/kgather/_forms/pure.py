"""The mean over those members who rated the item."""

from kgather._forms._sentences import MODEL
from kgather._forms.record import Form

FORM = Form(
    name="pure",
    text="the mean over the members who rated the item",
    bounded=True,
    adds_cells=True,
    not_promised=MODEL,
)
