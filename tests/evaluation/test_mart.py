"""kgather__metrics says for every form of release what the kernels say, rounded."""

import shutil
from pathlib import Path

import pytest
from built import Build, built

from kgather._dbt_package import dbt_path
from kgather._evaluation.metrics import ABOUT, measure
from kgather._publishing import pipeline

pytestmark = pytest.mark.long

FORMS: dict[str, dict[str, object]] = {
    "predicted": {},
    "low_rank": {"cells": "low_rank"},
    "pure": {"homogenize": "pure", "single_rater": "drop", "refine": False},
    "sets": {"method": "k_likeness"},
    "ranges": {"method": "mondrian", "generalize": "dgh"},
    "intervals": {"method": "epsilon"},
    "noise": {"method": "gaussian_noise", "i_know_this_is_not_anonymous": True},
    "cells and sets": {"homogenize": "padded", "cells": "top 20", "generalize": "ndgh"},
}
OF_CLASSES = {"discernibility", "average_class_size"}
OF_RATINGS = {
    "mean_absolute_error", "root_mean_square_error", "sum_of_squares", "items_shown", "ratings_shown", "cells_shown",
    "entries_of_groups", "entries_repeated", "entries_added", "cells_added",
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_mart_agrees_with_what_is_measured(build: Build, form: str) -> None:
    built = build(**FORMS[form])
    measured = {metric.metric: metric.value for metric in measure(built.evidence)}
    by_user, generalized = form in ("intervals", "noise"), form in ("sets", "ranges", "cells and sets")
    expected = OF_RATINGS | (set() if by_user else OF_CLASSES)
    if generalized:
        expected |= {"generalized_information_loss"}
    if form != "low_rank":
        expected |= {"popularity_of_means"}
    if form in ("pure", "sets", "ranges", "intervals"):
        expected |= {"popularity_of_counts"}
    assert built.mart.keys() == expected
    assert expected <= ABOUT.keys()
    for name, value in built.mart.items():
        if name in measured:
            # Cells are 32 bit floats to the kernels: means that are equal in one may differ in the other.
            loose = name.startswith("popularity")
            assert value == pytest.approx(measured[name], rel=5e-3 if loose else 6e-4), name


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("intervals", "noise")])
def test_class_metrics_are_those_of_the_groups(build: Build, form: str) -> None:
    built = build(**FORMS[form])
    sizes = built.evidence.group_sizes
    mart = built.mart
    assert 1 <= mart["average_class_size"] < 3
    if form not in ("sets", "ranges", "cells and sets"):
        assert mart["discernibility"] == pytest.approx((sizes**2).sum(), rel=6e-4)
        assert mart["average_class_size"] == pytest.approx(sizes.mean() / 5, rel=6e-4)
    else:
        # Groups that show the same are one class.
        assert mart["discernibility"] >= (sizes**2).sum() * (1 - 6e-4)
        assert 0 < mart["generalized_information_loss"] < 1


def test_values_have_four_significant_digits(build: Build) -> None:
    for value in build().mart.values():
        assert value == float(f"{value:.3e}")


def test_none_leaves_all_out(build: Build) -> None:
    assert build(metrics="none").mart == {}


@pytest.mark.slow
def test_other_choices_are_refused(sample: Path) -> None:
    with pytest.raises(Exception, match=r"metrics is one of auto, all, none, not \"some\""):
        built(sample, {"metrics": "some"})


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["auto", "all"])
def test_large_inputs_are_read_again_only_where_asked(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    package = shutil.copytree(dbt_path(), tmp_path / "kgather")
    choices = package / "sql" / "hooks" / "choices.sql"
    choices.write_text(choices.read_text().replace("20000000", "5000"))
    monkeypatch.setattr(pipeline, "dbt_path", lambda: package)
    found = built(sample, {"metrics": asked}).mart.keys()
    assert found == OF_CLASSES if asked == "auto" else found > OF_CLASSES
