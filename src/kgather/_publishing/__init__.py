"""From files of ratings to a release: the order of things, and the folder in which they happen."""
