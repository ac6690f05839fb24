"""From a table and its settings to classes: the SQL that every way runs, and what it calls."""
