"""A database with everything that may go wrong in rows of people, and random questions about it."""

from collections.abc import Iterator

import numpy as np
from worlds_of_people import GENEROUS

PEOPLE = 40
MANY = 7
"""The person with hundreds of rows."""
STRANGE = 9
"""The person whose values are the ends of what a type holds."""

POLICY = f"""version: 1
database: db.duckdb
k: 2
{GENEROUS}
tables:
  people:
    privacy_unit: user_id
    artifacts: [f0, f1, x, huge, exact, small, flag, title]
    measures: [salary, weight]
    dimensions: [city, region]
    coarsened: {{joined: month}}
    values: {{f0: [1, 2, 3, "03"], exact: [1, "1.0", 2.5]}}
    bounds: {{salary: [0, 1000]}}
  visits:
    privacy_unit: who
    grain: rows
    artifacts: [place, stars, spent]
    dimensions: [device]
    coarsened: {{day: week}}
    bounds: {{spent: [-5, 5]}}
  ratings:
    privacy_unit: user_id
    grain: rows
    unique: item_id
    artifacts: [item_id, rating]
    measures: [minutes]
    rows_per_person: 3
    bounds: {{rating: [1, 5]}}
  more:
    privacy_unit: person
    grain: unit
    artifacts: [a, b]
    dimensions: [job]
  items:
    public: true
  regions:
    public: true
joins:
  - ratings.user_id = people.user_id
  - visits.who = people.user_id
  - more.person = people.user_id
  - ratings.item_id = items.item_id
  - people.region = regions.region
principals:
  a: {{}}
"""
UNITS = {"people": "user_id", "visits": "who", "ratings": "user_id", "more": "person"}


def tables(seed: int) -> dict[str, str]:
    """The SQL of each table's rows; deterministic."""
    rng = np.random.default_rng(seed)
    people, visits, ratings, more = [], [], [], []
    doubles = ["0.0", "-0.0", "nan", "-nan", "inf", "-inf", "1e308", "-1e308", "5e-324", "1.5", "2.5", "1e-70"]
    texts = ["Graz", "GRAZ", "Wien", "", " ", "it''s", "ünï", "null", "a''); drop"]
    dates = ["2024-01-05", "2024-02-28", "infinity", "-infinity", "5881580-07-10", "5877642-06-25 (BC)", "0001-01-01"]
    for person in range(1, PEOPLE + 1):
        strange = person == STRANGE

        def pick(of: list[str], cast: str, missing: float = 0.2) -> str:
            return "null" if rng.random() < missing else f"cast('{of[rng.integers(len(of))]}' as {cast})"

        huge = "170141183460469231731687303715884105727" if strange else str(rng.integers(-3, 4))
        exact = "99999999999999999999999999999999.999999" if strange else ["1", "2.5", "-7.25"][rng.integers(3)]
        people.append(
            f"({person}, {pick(['1', '2', '3', '4'], 'integer')}, {pick(['-1', '0', '5'], 'smallint')}, "
            f"{pick(doubles, 'double')}, {pick([huge], 'hugeint')}, {pick([exact], 'decimal(38, 6)')}, "
            f"{pick(['0', '255', '7'], 'utinyint')}, {pick(['true', 'false'], 'boolean')}, {pick(texts, 'varchar')}, "
            f"{pick(doubles, 'double')}, {pick(['-9223372036854775808', '9223372036854775807', '55'], 'bigint')}, "
            f"{pick(texts, 'varchar')}, {pick(['north', 'south', 'nowhere'], 'varchar')}, {pick(dates, 'date')})"
        )
        for _ in range(400 if person == MANY else int(rng.integers(0, 12))):
            visits.append(
                f"({person}, {pick(['1', '2', '3', '40000'], 'bigint')}, {pick(['1', '2', '5'], 'integer')}, "
                f"{pick(doubles, 'double')}, {pick(['tv', 'phone', 'TV'], 'varchar')}, "
                f"{pick(['2024-03-01 10:00:00', 'infinity', '290309-12-22 (BC) 00:00:00'], 'timestamp')})"
            )
        for _ in range(int(rng.integers(0, 9))):  # some items twice, though the policy says that they are not
            ratings.append(
                f"({person}, {pick(['1', '2', '3', '4'], 'integer', 0.05)}, {pick(['1', '3', '5', '100'], 'integer')}, "
                f"{pick(doubles, 'double')})"
            )
        if rng.random() < 0.7:
            more.append(
                f"({person}, {pick(['1', '2'], 'integer')}, {pick(doubles, 'double')}, {pick(texts, 'varchar')})"
            )
    visits.append("(null, 1, 1, 1.5, 'tv', timestamp '2024-03-01 10:00:00')")

    def listed(rows: list[str], names: str) -> str:
        return f"select * from (values {', '.join(rows)}) as v({names})"

    return {
        "people": listed(
            people, "user_id, f0, f1, x, huge, exact, small, flag, title, weight, salary, city, region, joined"
        ),
        "visits": listed(visits, "who, place, stars, spent, device, day"),
        "ratings": listed(ratings, "user_id, item_id, rating, minutes"),
        "more": listed(more, "person, a, b, job"),
        "items": "select * from (values (1, 'sf', 1.5), (2, 'sf', null), (3, 'saga', 2.5)) as v(item_id, genre, price)",
        "regions": "select * from (values ('north', 'cold', 1), ('south', 'warm', 2)) as v(region, climate, code)",
    }


_CONDITIONS = {
    "p": [
        "p.f0 = 1", "p.f0 <> 2", "p.f0 IS NULL", "p.f1 > 0", "p.x > 0", "1 / p.x > 0", "p.x * 1e308 > 1", "p.huge > 1",
        "p.huge * p.huge > 5", "p.exact >= 2.5", "p.exact * 1e300 > 0", "p.small = 255", "p.small - 300 < 0", "p.flag",
        "NOT p.flag", "p.title = 'Graz'", "p.title IN ('GRAZ', 'Wien')", "p.f0 + p.f1 > p.small", "p.f0 / p.f1 > 1",
        "ROUND(p.x, 2) = 1.5", "FLOOR(p.x) < 2", "ABS(p.huge) > 2", "COALESCE(p.f0, p.small) = 7",
        "GREATEST(p.f0, p.huge) > 3", "CASE WHEN p.flag THEN p.f0 ELSE p.f1 END > 0",
        "p.x IS NOT DISTINCT FROM p.exact",
        "p.f0 BETWEEN 1 AND 3", "p.f1 = p.small",
        "p.user_id IN (SELECT user_id FROM ratings WHERE item_id = 1 AND rating >= 3)",
        "p.user_id NOT IN (SELECT who FROM visits WHERE stars = 5)",
        "p.user_id IN (SELECT user_id FROM ratings JOIN items USING (item_id) WHERE genre = 'sf')",
    ],
    "m": ["m.a = 1", "m.b > 0", "m.a IS NULL", "m.b * m.a < 3"],
    "v": ["v.place = 1", "v.stars >= 2", "v.spent > 0", "v.spent / v.stars < 1", "v.place = 40000", "v.spent IS NULL"],
    "r": ["r.item_id = 1", "r.item_id IN (2, 3)", "r.rating >= 3", "r.rating = 100", "r.item_id + r.rating > 4"],
    "i": ["i.genre = 'sf'", "i.price > 2", "i.price IS NULL"],
    "g": ["g.climate = 'cold'", "g.code > 1"],
}  # fmt: skip
_KEYS = {
    "p": ["p.f0", "p.f1", "p.x", "p.title", "p.city", "p.flag", "p.exact", "p.huge", "DATE_TRUNC('year', p.joined)",
          "CASE WHEN p.f0 = 1 THEN 1.5 WHEN p.f0 = 2 THEN 1.50 ELSE 2 END", "p.small", "p.region", "p.f0 * p.f1",
          "CASE WHEN p.f0 = 1 AND p.f1 = 5 THEN p.x END", "CASE WHEN p.f0 > 1 THEN p.title ELSE 'none' END"],
    "m": ["m.a", "m.job", "m.b"],
    "v": ["v.place", "v.stars", "v.device", "DATE_TRUNC('week', v.day)", "v.spent"],
    "r": ["r.item_id", "r.rating", "CASE WHEN r.rating > 3 THEN 'good' ELSE 'bad' END"],
    "i": ["i.genre", "i.price"],
    "g": ["g.climate"],
}  # fmt: skip
_NUMBERS = {
    "p": ["AVG(p.salary)", "SUM(p.weight)", "AVG(p.x)", "STDDEV_SAMP(p.salary)", "CORR(p.salary, p.weight)",
          "COVAR_POP(p.f0, p.x)", "SUM(p.huge)", "AVG(p.exact)", "COUNT(p.x)", "VAR_POP(p.f1)",
          "MEDIAN(p.salary)", "QUANTILE_DISC(p.x, 0.9)", "MEDIAN(p.huge)", "HISTOGRAM(p.weight)", "MODE(p.title)",
          "QUANTILE_CONT(p.x * p.salary, 0.1)", "MEDIAN(p.exact)", "COUNT(DISTINCT LOWER(p.title))"],
    "m": ["AVG(m.b)", "SUM(m.a)"],
    "v": ["AVG(v.spent)", "SUM(v.stars)", "COUNT(DISTINCT v.who)", "COUNT(v.spent)", "AVG(v.place)",
          "MEDIAN(v.spent)", "QUANTILE_CONT(v.stars, 0.25)", "MEDIAN(v.spent * v.stars)", "MODE(v.device)"],
    "r": ["AVG(r.rating)", "SUM(r.minutes)", "COUNT(DISTINCT r.user_id)", "STDDEV_POP(r.rating)",
          "COUNT(DISTINCT r.item_id)", "MEDIAN(r.minutes)", "HISTOGRAM(r.rating)", "MEDIAN(r.rating)"],
    "i": [],
    "g": [],
}  # fmt: skip
_FROM = [
    ("people p", "p"),
    ("people p LEFT JOIN more m ON m.person = p.user_id", "pm"),
    ("people p JOIN more m ON m.person = p.user_id", "pm"),
    ("people p JOIN regions g ON p.region = g.region", "pg"),
    ("people p LEFT JOIN regions g ON p.region = g.region", "pg"),
    ("visits v", "v"),
    ("visits v JOIN people p ON v.who = p.user_id", "vp"),
    ("visits v LEFT JOIN people p ON v.who = p.user_id", "vp"),
    ("ratings r", "r"),
    ("ratings r JOIN items i ON r.item_id = i.item_id", "ri"),
    ("ratings r LEFT JOIN items i ON r.item_id = i.item_id JOIN people p ON r.user_id = p.user_id", "rip"),
    ("ratings r JOIN people p ON r.user_id = p.user_id JOIN regions g ON p.region = g.region", "rpg"),
    ("more m", "m"),
]
_OF_PEOPLE = [
    "SELECT n, COUNT(*) FROM (SELECT who, COUNT(*) n FROM visits GROUP BY who) t GROUP BY n",
    "SELECT COUNT(*), AVG(n) FROM (SELECT who, SUM(spent) n FROM visits WHERE stars > 1 GROUP BY who) t WHERE n > 2",
    "SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) n FROM ratings GROUP BY user_id HAVING COUNT(*) > 2) t",
    "SELECT n > 5, COUNT(*) FROM (SELECT user_id, SUM(rating) n FROM ratings GROUP BY user_id) t GROUP BY 1",
    "SELECT n, COUNT(*) FROM (SELECT who, MIN(DATE_TRUNC('week', day)) n FROM visits GROUP BY who) t GROUP BY n",
    "SELECT MEDIAN(n), STDDEV_POP(n) FROM (SELECT who, COUNT(*) n FROM visits WHERE stars > 1 GROUP BY who) t",
    "SELECT AVG(n), COUNT(*) FROM (SELECT user_id, MAX(minutes) n FROM ratings GROUP BY user_id) t WHERE n > 2",
    "SELECT DATE_DIFF('year', d, e), COUNT(*) FROM (SELECT who, MIN(DATE_TRUNC('week', day)) d, "
    "MAX(DATE_TRUNC('week', day)) e FROM visits GROUP BY who) t GROUP BY 1",
    "SELECT COUNT(*) FROM people WHERE f0 > (SELECT AVG(f0) FROM people)",
    "SELECT AVG(DATE_DIFF('day', joined, DATE '2024-06-01')) FROM people",
]


def questions(seed: int, count: int) -> Iterator[str]:
    """So many statements; some of them are refused by their text."""
    rng = np.random.default_rng(seed)

    def some(of: list[str]) -> str:
        return of[int(rng.integers(len(of)))]

    for _ in range(count):
        if rng.random() < 0.06:
            yield some(_OF_PEOPLE)
            continue
        from_, aliases = _FROM[int(rng.integers(len(_FROM)))]
        of = {kind: [part for alias in aliases for part in parts[alias]] for kind, parts in _PARTS.items()}
        keys = sorted({some(of["keys"]) for _ in range(int(rng.integers(0, 3)))})
        parts = [some(of["conditions"]) for _ in range(int(rng.integers(0, 5)))]
        where = ""
        for part in parts:
            where = f"({where} {some(['AND', 'OR'])} {some(['', 'NOT '])}({part}))" if where else part
        numbers = ["COUNT(*)", *({some(of["numbers"])} if of["numbers"] and rng.random() < 0.6 else [])]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        yield f"SELECT {', '.join([*keys, *numbers])} FROM {from_}{f' WHERE {where}' if where else ''}{group}"


_PARTS = {"conditions": _CONDITIONS, "keys": _KEYS, "numbers": _NUMBERS}
