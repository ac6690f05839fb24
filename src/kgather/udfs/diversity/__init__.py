"""Groups that differ enough: diversity of what is sensitive, and of the items that are shown."""
