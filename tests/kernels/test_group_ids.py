"""Random names: distinct, of the promised form, and never the same twice."""

import re

import numpy as np
import pytest

from kgather.udfs.gathering import _group_ids as group_ids
from kgather.udfs.gathering._group_ids import random_group_ids, random_pseudonyms


@pytest.mark.parametrize("count", [1, 2, 50_000])
def test_form(count: int) -> None:
    ids = random_group_ids(count)
    assert ids.dtype == np.int64
    assert len(np.unique(ids)) == count
    assert ids.min() >= 0
    assert ids.max() < 2**53
    pseudonyms = random_pseudonyms(count)
    assert len(set(pseudonyms)) == count
    assert all(re.fullmatch("[b-df-hj-np-t]{32}", pseudonym) for pseudonym in pseudonyms)


def test_drawn_anew_each_time() -> None:
    assert not set(random_group_ids(1000)) & set(random_group_ids(1000))
    assert not set(random_pseudonyms(1000)) & set(random_pseudonyms(1000))


def test_names_that_come_twice_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = [bytes(32), bytes(16) + b"\x01" * 16]
    monkeypatch.setattr(group_ids.os, "urandom", lambda _: draws.pop(0))
    assert random_pseudonyms(2) == ["b" * 32, "bc" * 16]
    draws += [bytes(16), bytes(8) + b"\xff" * 8]
    assert random_group_ids(2).tolist() == [0, 2**53 - 1]
    assert not draws
