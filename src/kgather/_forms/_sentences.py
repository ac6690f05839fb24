"""What several forms say of themselves."""

MODEL = (
    "What a trained model carries over: predictions, and cells padded with them, come from item factors that all "
    "users' ratings formed."
)
