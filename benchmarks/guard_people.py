"""People to ask a guard about, random questions about them, and the truth. Needs numpy only: rivals read it, too."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

People = Mapping[str, NDArray]
"""Columns by name, each of one value a person: float64[n] with NaN where there is none, or text."""
BLENDED = 0.15  # of the values of a resampled person, those that come from somebody else
ADULTS = 48_842  # as the whole data set has


@dataclass(frozen=True)
class Condition:
    """A column against a value; "is not null" has none."""

    column: str
    operation: str
    value: float | str | None = None

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.column} {self.operation}"
        return f"{self.column} {self.operation} {_literal(self.value)}"

    def met(self, people: People) -> NDArray[np.bool_]:
        """Who meets it, bool[n]."""
        values = people[self.column]
        match self.operation:
            case "is not null":
                return ~np.isnan(values)
            case ">=":
                return values >= self.value
            case "<=":
                return values <= self.value
            case _:
                return values == self.value


@dataclass(frozen=True)
class Question:
    """How many people meet all conditions, where counted, and the mean of a column among them."""

    conditions: tuple[Condition, ...]
    counted: bool = True
    mean_of: str | None = None

    def sql(self, table: str = "people") -> str:
        """The question with the count as n and the mean as a."""
        asked = ["COUNT(*) AS n"] * self.counted
        if self.mean_of is not None:
            asked.append(f"AVG({self.mean_of}) AS a")
        return f"SELECT {', '.join(asked)} FROM {table} WHERE {' AND '.join(map(str, self.conditions))}"

    def met(self, people: People) -> NDArray[np.bool_]:
        """Who meets all conditions, bool[n]."""
        return np.logical_and.reduce([condition.met(people) for condition in self.conditions])

    def told(self, people: People) -> tuple[int, float]:
        """The number of people and the mean of the column among them; NaN where there is nobody."""
        mine = self.met(people)
        values = people[self.mean_of][mine] if self.mean_of is not None else np.empty(0)
        values = values[~np.isnan(values)]
        return int(mine.sum()), float(values.mean()) if len(values) else np.nan


def _literal(value: float | str) -> str:
    return f"'{value}'" if isinstance(value, str) else f"{value:g}"


def save(folder: Path, people: People, questions: Sequence[Question]) -> None:
    """Write what a rival in another environment is asked."""
    np.savez(folder / "people.npz", **people)
    listed = [
        {
            "conditions": [[one.column, one.operation, one.value] for one in question.conditions],
            "counted": question.counted,
            "mean_of": question.mean_of,
        }
        for question in questions
    ]
    (folder / "questions.json").write_text(json.dumps(listed), encoding="utf-8")


def load(folder: Path) -> tuple[People, list[Question]]:
    """Read what `save` wrote."""
    with np.load(folder / "people.npz") as file:
        people = {name: file[name] for name in file.files}
    listed = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    return people, [
        Question(tuple(Condition(*one) for one in each["conditions"]), each["counted"], each["mean_of"])
        for each in listed
    ]


def ratings(data: Path, name: str) -> NDArray[np.int64]:
    """User, film and rating, int64[r, 3]."""
    if name == "ml-100k":
        text, columns = (data / name / "u.data").read_text(encoding="ascii"), 4
    else:
        text = (data / name / "ratings.csv").read_text(encoding="ascii").split("\n", 1)[1].replace(",", " ")
        columns = 3
    return np.array(text.split(), dtype=np.float64).reshape(-1, columns)[:, :3].astype(np.int64)


def raters(data: Path, name: str, films: int) -> People:
    """Users who rated one of the most rated films: what they gave to each, f0 to the last, and their age."""
    rows = ratings(data, name)
    if name == "ml-100k":
        path, mark, place = data / name / "u.user", "|", 1
    else:
        path, mark, place = data / name / "users.dat", "::", 2
    lines = [line.split(mark) for line in path.read_text(encoding="latin-1").splitlines()]
    ages = {int(line[0]): float(line[place]) for line in lines}
    most = np.argsort(-np.bincount(rows[:, 1]), kind="stable")[:films]
    rows = rows[np.isin(rows[:, 1], most)]
    users, user = np.unique(rows[:, 0], return_inverse=True)
    table = np.full((len(users), films), np.nan)
    for column, film in enumerate(most):
        mine = rows[:, 1] == film
        table[user[mine], column] = rows[mine, 2]
    return {**_films(table), "age": np.array([ages[one] for one in users.tolist()])}


def resampled(people: People, times: int) -> People:
    """So many times as many people without an age: each like somebody, but for some films, seen as by somebody else."""
    rng = np.random.default_rng(0)
    table = np.column_stack([values for name, values in people.items() if name != "age"])
    count = times * len(table)
    made, others = table[rng.integers(len(table), size=count)], table[rng.integers(len(table), size=count)]
    blended = rng.random(made.shape) < BLENDED
    return _films(np.where(blended, others, made))


def _films(table: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    return {f"f{place}": column for place, column in enumerate(table.T)}


def about_films(films: int, count: int, mean_of: str | None) -> list[Question]:
    """Random conjunctions of one to three conditions: at least 3 to 5, at most 1 to 3, exactly 1 to 5, or rated."""
    rng = np.random.default_rng(1)

    def condition() -> Condition:
        column = f"f{rng.integers(films)}"
        match rng.integers(4):
            case 0:
                return Condition(column, ">=", float(rng.integers(3, 6)))
            case 1:
                return Condition(column, "<=", float(rng.integers(1, 4)))
            case 2:
                return Condition(column, "=", float(rng.integers(1, 6)))
            case _:
                return Condition(column, "is not null")

    return [Question(tuple(condition() for _ in range(rng.integers(1, 4))), mean_of=mean_of) for _ in range(count)]


def adults(data: Path) -> People:
    """Adult, drawn again to the size that it has with incomplete rows, and a made-up salary in whole thousands that
    hangs on age, schooling and class of salary."""
    rng = np.random.default_rng(0)
    lines = (data / "adult" / "adult.csv").read_text(encoding="utf-8").splitlines()
    names = [name.replace("-", "_") for name in lines[0].split(";")]
    rows = np.array([line.split(";") for line in lines[1:] if line])
    drawn = rows[rng.integers(len(rows), size=ADULTS)]
    people: dict[str, NDArray] = {name: drawn[:, place] for place, name in enumerate(names)}
    people["age"] = people["age"].astype(np.float64)
    schooled = np.isin(people["education"], ["Bachelors", "Masters", "Doctorate", "Prof-school"])
    middle = np.where(people["salary_class"] == ">50K", 72.0, 30.0) * (1 + 0.15 * schooled + 0.003 * people["age"])
    people["salary"] = np.clip(np.rint(middle * np.exp(0.35 * rng.normal(size=ADULTS))), 5, 250)
    return people


def about_adults(people: People, count: int) -> list[Question]:
    """Means of age or salary under a condition on the same column, and for half of them one on a column of text."""
    rng = np.random.default_rng(2)
    texts = [name for name, values in people.items() if values.dtype.kind == "U"]
    questions = []
    for _ in range(count):
        column = ("age", "salary")[rng.integers(2)]
        low, high = sorted(float(people[column][rng.integers(ADULTS)]) for _ in range(2))
        conditions = (
            [Condition(column, ">=", high)],
            [Condition(column, "<=", low)],
            [Condition(column, ">=", low), Condition(column, "<=", high)],
        )[rng.integers(3)]
        if rng.random() < 0.5:
            text = texts[rng.integers(len(texts))]
            conditions.append(Condition(text, "=", str(people[text][rng.integers(ADULTS)])))
        questions.append(Question(tuple(conditions), counted=False, mean_of=column))
    return questions
