"""What each method of gathering costs and gives away, on the same data.

    make bench-methods

Vector methods: whole releases of four fifths of the ratings, as in choices.py (MAE on the other fifth, how often an
attacker who knows a few ratings picks the right group), bare and refined, and the loss of the groups themselves.
Methods on the artifact table: discernibility, average class size and generalized information loss of the generalized
table. Needs real data under $KGATHER_DATA. Writes benchmarks/results/methods.md.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
from choices import measure, split
from harness import RESULTS, machine

from kgather._loaders import LoadOptions
from kgather._publishing.publish import publish
from kgather._settings.publication import PublishSettings

DATA = {"ml-100k": "ml-100k/u.data", "ml-latest-small": "ml-latest-small/ratings.csv"}
K = 10
ON_VECTORS: list[dict] = [
    {"method": "bkg", "refine": False},
    {"method": "bkg"},
    {"method": "mdav", "refine": False},
    {"method": "mdav"},
    {"method": "bounded_t_means", "refine": False},
    {"method": "bounded_t_means"},
    {"method": "epsilon", "homogenize": "predicted"},
]
ON_ARTIFACTS = ["k_likeness", "k_member", "mondrian"]


def loss(folder: Path) -> float:
    """The root mean square distance of a user to the group's mean preference, in standard deviations of users."""
    with duckdb.connect(str(folder / "work" / "work.duckdb"), read_only=True) as con:
        rows = con.sql(
            "select group_id, level, preference from int_kgather__preferences join int_kgather__groups using (user_id)"
        ).fetchall()
    vectors = np.array([[level, *preference] for _, level, preference in rows])
    _, code = np.unique([group for group, *_ in rows], return_inverse=True)
    means = np.stack([np.bincount(code, column) / np.bincount(code) for column in vectors.T], axis=1)
    return float(np.sqrt(((vectors - means[code]) ** 2).sum() / ((vectors - vectors.mean(axis=0)) ** 2).sum()))


def generalization_loss(folder: Path, scale: float) -> tuple[int, float, float]:
    """Discernibility, average class size over k, and the mean share of the scale that a cell spans."""
    with duckdb.connect(str(folder / "release.duckdb"), read_only=True) as con:
        artifacts = [name for name in con.sql("from kgather__generalized").columns if name != "group_id"]
        quoted = ", ".join(f'"{name}"' for name in artifacts)
        classes = con.sql(f"select count(*) as size, {quoted} from kgather__generalized group by {quoted}").fetchall()
    sizes = np.array([size for size, *_ in classes])
    spans = [sum((max(cell) - min(cell)) / scale for cell in cells if cell) for _, *cells in classes]
    users = int(sizes.sum())
    return (
        int((sizes**2).sum()),
        users / (len(sizes) * K),
        float((sizes * np.array(spans)).sum() / (users * len(artifacts))),
    )


def main() -> None:
    here = Path(__file__).parent.parent
    data = Path(os.environ.get("KGATHER_DATA", here.parent / "shared" / "data"))
    lines = [f"# methods, k = {K}", "", *(f"- {name}: {value}" for name, value in machine().items()), ""]
    lines += [
        "| data | method | MAE | loss | right group, 4 known | 8 known | chance | groups | seconds |",
        "| --- " * 9 + "|",
    ]
    for name, file in DATA.items():
        if not (data / file).exists():
            sys.exit(f"No {file} under {data}. Set KGATHER_DATA.")
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            train, held_out = split(data / file, folder, seed=0)
            for choice in ON_VECTORS:
                start = time.perf_counter()
                found = measure(train, held_out, folder, {"k": K, **choice})
                seconds = time.perf_counter() - start
                said = choice["method"] + (", bare" if choice.get("refine") is False else "")
                rates = " | ".join(f"{rate:.3f}" for rate in found.right_group)
                lines.append(
                    f"| {name} | {said} | {found.mae:.4f} | {loss(folder):.3f} | {rates} | {found.chance:.3f} "
                    f"| {found.groups:,} | {seconds:.1f} |"
                )
                print(lines[-1], flush=True)
    lines += ["", "| data | method | discernibility | C_AVG | GenILoss | seconds |", "| --- " * 6 + "|"]
    with tempfile.TemporaryDirectory() as temporary:
        for method in ON_ARTIFACTS:
            folder = Path(temporary) / method
            start = time.perf_counter()
            publish([str(data / DATA["ml-100k"])], folder, PublishSettings(k=K, method=method), LoadOptions())
            seconds = time.perf_counter() - start
            discernibility, average, share = generalization_loss(folder, scale=5)
            lines.append(
                f"| ml-100k, top 10 | {method} | {discernibility:,} | {average:.3f} | {share:.3f} | {seconds:.1f} |"
            )
            print(lines[-1], flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "methods.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
