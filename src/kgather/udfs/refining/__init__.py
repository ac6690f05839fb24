"""Groups that lose less: users moved and exchanged between near groups, whatever the method."""
