"""Writes projects to start from."""

from pathlib import Path

from kgather._errors import InputError

_FILES = {
    "dbt_project.yml": """\
name: my_ratings_release
version: 0.1.0
profile: my_ratings_release
model-paths: [models]
seed-paths: [seeds]

flags:
  send_anonymous_usage_stats: false

models:
  kgather:
    marts:
      +database: release       # the release's own file holds nothing but the marts

vars:
  kgather:
    ratings: my_ratings        # the model that holds your ratings
    k: {k}
""",
    "packages.yml": """\
packages:
  - local: "{{{{ env_var('KGATHER_DBT') }}}}"    # export KGATHER_DBT=$(kgather dbt-path)
""",
    "profiles.yml": """\
my_ratings_release:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: work.duckdb                   # holds the secret map from user to group: keep it to yourself
      attach:
        - {{path: release.duckdb, alias: release}}
""",
    "models/my_ratings.sql": """\
-- Your ratings: one row each, with user_id, item_id, rating and, where you have it, rated_at.
select user_id, item_id, rating
from {{{{ ref("example_ratings") }}}}
""",
    ".gitignore": "*.duckdb\n*.duckdb.wal\ntarget/\nlogs/\ndbt_packages/\npackage-lock.yml\n.user.yml\n",
}


def write_project(folder: Path, k: int) -> None:
    """Write a dbt project that publishes a made-up example, to be filled with real ratings.

    Raises InputError where the folder is a file or is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        msg = f"{folder} exists and is not an empty folder. Give another one."
        raise InputError(msg)
    for name, text in _FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(k=k), encoding="utf-8")
    seeds = folder / "seeds"
    seeds.mkdir()
    (seeds / "example_ratings.csv").write_text(_example(users=4 * k, items=8), encoding="utf-8")


def _example(users: int, items: int) -> str:
    """Made-up ratings in which every user rates half of the items, by two tastes."""
    lines = ["user_id,item_id,rating"]
    for user in range(1, users + 1):
        for item in range(1, items + 1):
            if (user + item) % 2 == 0:
                lines.append(f"{user},{item},{1 + (user * item + user // 3) % 5}")
    return "\n".join(lines) + "\n"
