"""Tables of people, anonymized where they lie."""
