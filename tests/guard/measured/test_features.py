"""What a question asks of a record: the same question in other words asks for the same features."""

import pytest
from guard_data import ITEMS, POLICY

from kgather._guard.canonical import canonical
from kgather._guard.catalog import Catalog
from kgather._guard.measured.domain import declared
from kgather._guard.measured.features import SYMBOLS, Asked, as_feature, asked, symbols
from kgather._guard.plan import TRUE, Bound, Op, Plan
from kgather._guard.planner import plan
from kgather._guard.policy import parse_policy


def _asked(sql: str, catalog: Catalog) -> Asked:
    made = plan(sql, catalog)
    assert isinstance(made, Plan)
    (block,) = made.blocks
    return asked(block.question, catalog)


def _names(sql: str, catalog: Catalog) -> tuple[str, ...]:
    return tuple(feature.name for feature in _asked(sql, catalog).features)


SAME = [
    [
        "SELECT COUNT(*) FROM ratings_wide WHERE warcross = 5 AND joy_ride < 3",
        "SELECT COUNT(*) FROM ratings_wide AS w WHERE 3 > w.joy_ride AND 5.0 = w.warcross",
        "SELECT COUNT(*) FROM ratings_wide WHERE NOT (joy_ride >= 3 OR warcross <> 5)",
    ],
    [  # the column of a pivot, and the row that it shows
        "SELECT COUNT(*) FROM ratings_wide WHERE warcross >= 4",
        "SELECT COUNT(*) FROM ratings WHERE item_id = 1 AND rating >= 4",
        "SELECT COUNT(*) FROM ratings WHERE rating >= 4 AND 1 = item_id",
    ],
    [
        "SELECT COUNT(*) FROM ratings_wide WHERE pachinko IS NULL",
        "SELECT COUNT(*) FROM ratings_wide WHERE NOT (pachinko IS NOT NULL)",
    ],
    [
        "SELECT COUNT(*) FROM ratings r JOIN items i USING (item_id) WHERE i.genre = 'sf'",
        "SELECT COUNT(*) FROM items i JOIN ratings r ON i.item_id = r.item_id WHERE 'sf' = i.genre",
    ],
    [
        "SELECT COUNT(*) FROM users WHERE user_id IN (SELECT user_id FROM ratings WHERE rating = 5)",
        "SELECT COUNT(*) FROM users u WHERE EXISTS (SELECT 1 FROM ratings r "
        "WHERE r.user_id = u.user_id AND 5 = r.rating)",
    ],
]


@pytest.mark.parametrize("texts", SAME)
def test_the_same_question_has_the_same_features(texts: list[str], catalog: Catalog) -> None:
    found = [_asked(text, catalog) for text in texts]
    names = [{feature.name for feature in of.features} for of in found]
    shared = set.intersection(*names)
    assert shared
    assert max(len(of - shared) for of in names) <= 1  # one may ask for a row that the other has by itself
    if "item_id = 1" not in texts[1]:
        assert len({canonical(of.condition) for of in found}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(*) FROM users WHERE user_id IN (SELECT user_id FROM ratings WHERE rating = 5)",
         "SELECT COUNT(*) FROM users WHERE user_id IN (SELECT user_id FROM ratings WHERE rating = 4)"),
        ("SELECT gender, COUNT(*) FROM users GROUP BY 1", "SELECT city, COUNT(*) FROM ratings_wide GROUP BY 1"),
        ("SELECT COUNT(*) FROM ratings WHERE rating = 5", "SELECT COUNT(*) FROM ratings_wide WHERE warcross = 5"),
    ],
)  # fmt: skip
def test_other_questions_have_other_features(one: str, other: str, catalog: Catalog) -> None:
    assert _names(one, catalog) != _names(other, catalog)


def test_a_row_that_a_key_names_is_a_fact_of_a_person(catalog: Catalog) -> None:
    of_rows = _asked("SELECT rating, COUNT(*) FROM ratings GROUP BY rating", catalog)
    of_people = _asked("SELECT rating, COUNT(*) FROM ratings WHERE item_id = 2 GROUP BY rating", catalog)
    assert of_rows.rows == "ratings"
    assert of_people.rows is None
    assert [feature.name for feature in of_people.features] == ['"ratings_wide"."joy_ride"']


def test_a_row_without_a_pivot_is_a_value_that_may_be_absent() -> None:
    without = POLICY.replace("pivot_of:", "# pivot_of:").replace("      5: geekerella}}\n", "")
    policy = parse_policy(
        without.replace("artifacts: [item_id, rating]", "artifacts: [item_id, rating]\n    unique: item_id")
    )
    columns = dict.fromkeys(("user_id", *ITEMS, "salary", "age"), "INTEGER")
    schema = {
        "ratings_wide": columns | dict.fromkeys(("marital_status", "city", "education"), "VARCHAR"),
        "ratings": {"user_id": "INTEGER", "item_id": "INTEGER", "rating": "INTEGER", "rated_at": "TIMESTAMP"},
        "users": {
            "user_id": "INTEGER",
            "age": "INTEGER",
            "gender": "VARCHAR",
            "occupation": "VARCHAR",
            "zip": "VARCHAR",
        },
        "items": {"item_id": "INTEGER", "title": "VARCHAR", "genre": "VARCHAR"},
    }
    catalog = Catalog.of(policy, schema, {"ratings_wide": "unit", "ratings": "rows", "users": "unit"})
    (feature,) = _asked("SELECT rating, COUNT(*) FROM ratings WHERE item_id = 2 GROUP BY rating", catalog).features
    assert feature.row is not None
    assert feature.may_be_absent
    assert feature.name.startswith("VALUE(")
    twice = _asked("SELECT COUNT(*) FROM ratings WHERE item_id = 2 AND rating > 3", catalog)
    assert [one.name for one in twice.features] == [feature.name]


def test_counts_and_sums_of_a_persons_rows_are_features(catalog: Catalog) -> None:
    names = _names(
        "SELECT n, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM ratings GROUP BY user_id) AS t GROUP BY n", catalog
    )
    assert any(name.startswith("COUNT(") for name in names)


def test_who_must_have_a_row_is_a_feature(catalog: Catalog) -> None:
    both = _asked("SELECT COUNT(*) FROM ratings_wide w JOIN users u USING (user_id) WHERE w.warcross = 1", catalog)
    assert len(both.present) == 2
    assert {both.features[at].table for at in both.present} == {"ratings_wide", "users"}


def test_a_condition_as_one_feature_is_true_or_false(catalog: Catalog) -> None:
    of = _asked("SELECT COUNT(*) FROM ratings_wide WHERE warcross = 1 OR joy_ride > 2", catalog)
    whole = of.whole(of.condition, of.present)
    domain = declared(whole, catalog)
    assert domain is not None
    assert (domain.values, domain.null, domain.other, domain.absent) == (("true", "false"), False, False, False)
    assert whole.needs == ("ratings_wide",)
    turned = as_feature(Op("or", tuple(reversed(of.condition.args))), of.features, of.present)  # type: ignore[union-attr]
    assert turned.name == whole.name


def test_places_of_features(catalog: Catalog) -> None:
    of = _asked("SELECT warcross, COUNT(*) FROM ratings_wide GROUP BY warcross", catalog)
    assert of.condition == TRUE
    assert of.keys == (Bound(SYMBOLS, "0", "integer"),)
    assert symbols(of.keys[0]) == {0}
    assert symbols(TRUE) == set()
