"""What scripts of Python clients share: where the server is, and how a step is told."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

HOST = os.environ["PGHOST"]
PORT = int(os.environ["PGPORT"])
USER = os.environ["PGUSER"]
PASSWORD = os.environ["PGPASSWORD"]
DATABASE = os.environ["PGDATABASE"]
URI = f"postgresql://{USER}:{PASSWORD.replace(' ', '%20')}@{HOST}:{PORT}/{DATABASE}"

COUNT = "SELECT COUNT(*) FROM people"
AVERAGE = "SELECT AVG(salary) FROM people"
GROUPS = "SELECT city, COUNT(*) AS n FROM people WHERE film_a IN ({}, {}) GROUP BY city ORDER BY city"
REFUSED = "SELECT AVG(salary) FROM people WHERE zip = 'Z1'"


def step(name: str, work: Callable[[], Any]) -> None:
    """Do a step of a script and print what came of it, as a line of JSON."""
    try:
        told = {"step": name, "value": work()}
    except Exception as error:  # whatever goes wrong is what the test looks at
        told = {"step": name, "error": f"{type(error).__name__}: {error}"}
    print(json.dumps(told, default=str), flush=True)


def refusal(work: Callable[[], Any]) -> str:
    """The message of what has to be refused."""
    try:
        work()
    except Exception as error:  # of every client's own kind
        return str(error)
    sys.exit("This had to be refused.")
