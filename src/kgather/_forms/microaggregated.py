"""The centroid of the members' filled ratings (Casino et al.)."""

from kgather._forms.record import Form

FORM = Form(
    name="microaggregated",
    text="the centroid of filled ratings",
    fills_missing=True,
    not_promised=(
        "That a single rating cannot be worked out: if only one member rated an item, the centroid of filled "
        "ratings and the group's size give that rating."
    ),
)
