"""Gaussian noise on every rating: one row a user, and no k-anonymity."""

from kgather._forms.record import Form

FORM = Form(
    name="noise",
    text="every user's ratings under noise",
    rows="users",
    by_method=True,
    anonymous=False,
    not_promised=(
        "Any k-anonymity: every user keeps a row of their own, with noise. This release is for comparison only."
    ),
    meaning="Every person has a row of their own in this release: noise was added, but nobody is hidden.",
    warning="Gaussian noise gives NO k-anonymity: every user keeps a row of their own. Do not hand this out.",
)
