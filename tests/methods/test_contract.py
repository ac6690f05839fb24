"""What holds of every method and of every form, whatever it does."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from dbt_macros import SQL, load_macros

from kgather._errors import InputError
from kgather._forms import CELLS, forms
from kgather._methods import Method, Users, built_in, method_named
from kgather._settings.publication import PublishSettings
from kgather._steps.gathering import gather
from kgather.udfs.preferences.learning import learn
from kgather.udfs.ratings.matrix import RatingMatrix

DOCS = Path(__file__).parents[2] / "docs"
METHODS = list(built_in().values())
FORMS = list(forms().values())
BY_NAME = {"ids": lambda record: record.name}


def made_up(n: int, *, equal: bool = False, seed: int = 0) -> RatingMatrix:
    """Ratings of n users: five items of ten each, or the same five rated alike."""
    rng = np.random.default_rng(seed)
    items = np.concatenate([np.arange(5) if equal else np.sort(rng.permutation(10)[:5]) for _ in range(n)])
    values = np.full(5 * n, 3.0) if equal else rng.integers(1, 6, 5 * n)
    return RatingMatrix(n, 10, np.arange(0, 5 * n + 1, 5), items.astype(np.int32), values.astype(np.float32))


def users(method: Method, n: int, k: int, *, equal: bool = False, threads: int = 1, seed: int = 0) -> Users:
    ratings = made_up(n, equal=equal)
    artifacts = np.full((n, 4), np.nan)
    for user in range(n):
        mine = slice(ratings.indptr[user], ratings.indptr[user + 1])
        for item, value in zip(ratings.items[mine], ratings.values[mine], strict=True):
            if item < 4:
                artifacts[user, item] = value
    levels = np.where(np.arange(n) % 7 == 0, 1, k) if method.levels else np.full(n, k)
    asked = PublishSettings(
        k=k,
        method=method.name,
        seed=seed,
        **({"i_know_this_is_not_anonymous": True} if not method.anonymous else {}),
        **({"level_column": "level", "user_attributes": "users"} if method.levels else {}),
    )
    return Users(
        n=n,
        read_ratings=lambda: ratings,
        preferences=learn(ratings),
        artifacts=artifacts,
        levels=levels.astype(np.int32),
        sensitive=np.empty((n, 0)),
        sensitive_names=[],
        identifying=np.ones(10, dtype=bool),
        scale=(1.0, 5.0),
        asked=asked,
        threads=threads,
        on_artifacts=method.gathers_on == "artifacts",
    )


@pytest.mark.parametrize("equal", [False, True], ids=["unlike", "all alike"])
@pytest.mark.parametrize(("n", "k"), [(5, 5), (9, 5), (40, 5), (41, 3), (12, 1)])
@pytest.mark.parametrize("method", METHODS, **BY_NAME)
def test_everybody_is_in_one_group_that_is_large_enough(method: Method, n: int, k: int, equal: bool) -> None:
    gathered = users(method, n, k, equal=equal)
    found = gather(gathered, method, gathered.asked.options)
    sizes = np.bincount(found.groups)
    assert found.groups.shape == (n,)
    assert found.groups.dtype == np.int32
    assert (sizes > 0).all(), "numbers of groups have no gap"
    least = gathered.levels if method.levels else np.full(n, k if method.anonymous else 1)
    assert (sizes[found.groups] >= least).all()
    assert (found.bins is not None) == ("bins" in method.tells)
    if "unchanged" not in method.tells:
        assert found.unchanged is None


@pytest.mark.parametrize("method", METHODS, **BY_NAME)
def test_threads_change_nothing(method: Method) -> None:
    one, two = (users(method, 60, 4, threads=threads) for threads in (1, 2))
    options = one.asked.options
    assert np.array_equal(gather(one, method, options).groups, gather(two, method, options).groups)


@pytest.mark.parametrize("method", METHODS, **BY_NAME)
def test_what_its_record_says_is_what_may_be_asked(method: Method) -> None:
    given = {"k": 5, "method": method.name}
    if not method.anonymous:
        with pytest.raises(InputError, match="gives no k-anonymity"):
            PublishSettings(**given)
        given["i_know_this_is_not_anonymous"] = True
    if method.levels:
        given |= {"user_attributes": "users", "level_column": "level"}
    settings = PublishSettings(**given)
    assert (settings.form, settings.generalization) == (method.form, method.generalization)
    assert settings.refines == method.refines
    assert method_named(method.name) is method
    if not method.blocks:
        with pytest.raises(InputError, match="block_size goes with"):
            PublishSettings(**given, block_size=100)
    for form in FORMS:
        allowed = form.name in method.forms if method.forms is not None else not form.by_method
        settings = given | {"homogenize": form.name, "generalize": "none" if not method.anonymous else "ndgh"}
        if allowed:
            PublishSettings(**settings)
        else:
            with pytest.raises(InputError, match="do not go together"):
                PublishSettings(**settings)


@pytest.mark.parametrize("method", METHODS, **BY_NAME)
def test_its_page_says_its_options(method: Method) -> None:
    page = (DOCS / "methods" / f"{method.name}.md").read_text(encoding="utf-8")
    for option in method.options.model_fields:
        assert option in page
    assert all((method.text, method.looks_at, method.groups, method.cost, method.choose))


@pytest.mark.parametrize("form", FORMS, **BY_NAME)
def test_a_form_has_its_macro_and_its_words(form: SimpleNamespace) -> None:
    macros = {file.stem for file in SQL.rglob("form__*.sql")}
    assert (f"form__{form.name}" in macros) == (form.rows != "nobody")
    assert form.text
    assert set(form.cells) <= set(CELLS)
    assert form.anonymous or form.not_promised
    assert re.search(rf"\b{form.name}\b", (DOCS / "vars.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("form", FORMS, **BY_NAME)
def test_a_form_shows_the_cells_of_its_record(form: SimpleNamespace, kind: str) -> None:
    cells = kind if kind in ("all", "rated", "low_rank") else f"{kind} 3"
    given = {"homogenize": form.name, "cells": cells, "generalize": "ndgh", "k": 5, "ratings": "my_ratings"}
    if form.by_method:
        given |= {"method": "gaussian_noise", "i_know_this_is_not_anonymous": True, "generalize": "none"}
    macros = load_macros(**given)
    assert bool(macros.contradicting_settings()) == (kind not in form.cells)
    assert macros.cells_kind() == kind
    assert macros.number_after(kind).strip() == ("3" if cells.endswith("3") else "")


@pytest.mark.parametrize("method", [method for method in METHODS if method.categories], **BY_NAME)
def test_groups_of_categories_are_compared_by_them(method: Method) -> None:
    """Who differs in one category is 1 apart, whichever codes they have; and none is a category of its own."""
    asked = users(method, 12, 3)
    codes = np.array([0.0, 7.0, np.nan, 0.0] * 3)
    several = replace(
        asked, artifacts=np.column_stack([np.full(12, 3.0), codes]), categorical=np.array([False, True]),
        on_artifacts=True,
    )  # fmt: skip
    vectors = several.vectors
    apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    assert apart == pytest.approx((np.nan_to_num(codes, nan=-1)[:, None] != np.nan_to_num(codes, nan=-1)[None]) * 1.0)
    groups = gather(several, method, method.options()).groups
    assert all(len(set(np.nan_to_num(codes[groups == group], nan=-1))) == 1 for group in set(groups))
    with pytest.raises(InputError, match="users x categories"):
        _ = replace(several, asked=asked.asked.model_copy(update={"max_cells": 5})).vectors
