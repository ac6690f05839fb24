"""Ratings moved into their group's windows (Sun and Sun): one row a user."""

from kgather._forms.record import Form

FORM = Form(
    name="interval",
    text="each user's ratings, moved into the windows of the group",
    rows="users",
    bounded=True,
    not_promised=(
        "That members of a group look the same: in user_ratings they differ by up to epsilon, which is (k, epsilon)-"
        "anonymity and weaker than k-anonymity."
    ),
    meaning=(
        "Each person is gathered with at least {others} (k = {k}) whose shown ratings differ by no more than "
        "{epsilon} on any item. That is weaker than looking the same: whoever knows ratings more exactly than that "
        "may tell the members of a group apart."
    ),
    warning=(
        "members of a group still differ by up to {epsilon} on every item: (k, epsilon)-anonymity, which is weaker "
        "than k-anonymity."
    ),
)
