"""What a release is: its audit, and the folder of files."""
