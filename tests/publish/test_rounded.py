"""What of an audit leaves with a release: nothing that an exact number of rows, or a checksum, would tell."""

import hashlib
import hmac
import json
from pathlib import Path

import pytest

from kgather._publishing.publish import Published
from kgather._release.rounded import rounded, rows


@pytest.mark.parametrize(
    ("n", "shown"),
    [(0, 0), (3, 0), (5, 10), (14, 10), (15, 20), (99, 100), (100, 100), (149, 150), (100_000, 100_000),
     (99_999, 100_000), (123_456, 120_000), (20_000_263, 20_000_000)],
)  # fmt: skip
def test_numbers_of_rows_have_two_digits(n: int, shown: int) -> None:
    assert rows(n) == shown


def test_attacks_have_two_digits_and_settings_stay() -> None:
    said = {
        "counts": {"read_rows": 1234, "users": 77, "rejected_by_reason": {"x": 17}},
        "attacks": {
            "settings": {"targets": 943, "seed": 12345},
            "results": [
                {"attack": "a", "targets": 943, "user": {"value": 0.0212766, "low": 0.0, "high": 1.0}, "seed": 12345,
                 "known": 8, "chance_user": 0.00106, "details": {"pairs": 141.0, "x": -0.12345}, "matched": None},
            ],
        },
    }  # fmt: skip
    found = rounded(said, None)
    assert found["counts"] == {"read_rows": 1200, "users": 77, "rejected_by_reason": {"x": 20}}
    [result] = found["attacks"]["results"]
    assert result["targets"] == 940
    assert result["user"] == {"value": 0.021, "low": 0.0, "high": 1.0}
    assert result["details"] == {"pairs": 140.0, "x": -0.12}
    assert (result["seed"], result["known"], result["chance_user"]) == (12345, 8, 0.00106)
    assert found["attacks"]["settings"] == said["attacks"]["settings"]
    assert said["counts"]["read_rows"] == 1234  # the publisher's own is as it was


def test_a_release_has_a_keyed_checksum_and_no_plain_one(released: Published, sample: Path) -> None:
    text = (released.folder / "audit.json").read_text(encoding="utf-8")
    page = (released.folder / "report.html").read_text(encoding="utf-8")
    plain = hashlib.sha256(sample.read_bytes()).hexdigest()
    assert plain[:12] not in text
    assert plain[:12] not in page
    key = hashlib.sha256(b"tests").digest()  # as the tests' folder for state has it
    [file] = json.loads(text)["read"]["files"]
    assert file["keyed_sha256"] == hmac.digest(key, plain.encode(), "sha256").hex()
    assert file["rows"] == 5300
    assert "5,256" not in page


def test_one_rating_less_shows_in_no_number_of_rows(
    publish_to, released: Published, sample: Path, tmp_path: Path
) -> None:
    lines = sample.read_text().splitlines()
    fewer = tmp_path / sample.name
    fewer.write_text("\n".join(lines[:-1]) + "\n")
    one, other = (json.loads((each.folder / "audit.json").read_text()) for each in (released, publish_to(fewer, k=5)))
    for name in ("read_rows", "staged_rows", "rejected_rows", "rejected_by_reason", "users", "items"):
        assert one["counts"][name] == other["counts"][name]
    assert [check["check"] for check in one["checks"] if check["measured"] > 1000] == []
