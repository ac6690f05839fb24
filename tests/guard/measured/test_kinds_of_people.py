"""A database about people of several kinds, such as customers and employees: one number may be one of each."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from sensitivity import moves, recorded
from worlds_of_people import GENEROUS, engine_of, guarded, silent

from kgather._errors import InputError
from kgather._guard.audit_log import read_log
from kgather._guard.guard import Guard
from kgather._guard.measured.accounting import rho_of
from kgather._guard.measured.ledger import Ledger, Measurement
from kgather._guard.measured.replay import Replay
from kgather._guard.measured.review import review
from kgather._guard.refused import Refused
from kgather._guard.warehouse import Warehouse

POLICY = f"""version: 1
database: db.duckdb
k: 2
{GENEROUS}
tables:
  customers: {{privacy_unit: id, unit: customer, grain: unit, artifacts: [city], values: {{city: [Graz, Wien]}}}}
  orders: {{privacy_unit: customer, unit: customer, grain: rows, key: id, measures: [total], bounds: {{total: [0,
    100]}},
    rows_per_person: 8}}
  lines: {{belongs_to: {{order_id: orders.id}}, artifacts: [product], bounds: {{product: [0, 4]}}, rows_per_person: 16}}
  employees: {{privacy_unit: badge, unit: employee, grain: unit, artifacts: [team], values: {{team: [shop, office]}}}}
joins: [orders.customer = customers.id]
principals: {{x: {{}}}}
"""


def build(path: Path) -> Path:
    with duckdb.connect(path) as con:
        con.execute("""
            create table customers as select i as id, ['Graz', 'Wien'][1 + i % 2] as city from range(400) as t (i);
            create table orders as select i as id, i % 400 as customer, i % 100 as total from range(1200) as t (i);
            create table lines as select i % 1200 as order_id, i % 5 as product from range(2400) as t (i);
            create table employees as select 'B' || i as badge, ['shop', 'office'][1 + i % 2] as team
                from range(60) as t (i);
        """)
    return path


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    build(tmp_path / "db.duckdb")
    return guarded(tmp_path, None, POLICY, silent)


def test_each_kind_is_counted_by_itself(guard: Guard) -> None:
    told = guard.query("SELECT team, COUNT(*) AS n FROM employees GROUP BY team ORDER BY team").to_pylist()
    assert told == [{"team": "office", "n": 30}, {"team": "shop", "n": 30}]
    sql = "SELECT COUNT(DISTINCT c.id) AS n FROM customers c JOIN orders o ON c.id = o.customer WHERE city = 'Graz'"
    assert guard.query(sql).to_pylist() == [{"n": 200}]
    sql = "SELECT product, COUNT(*) AS n FROM lines JOIN orders ON order_id = orders.id GROUP BY product"
    assert {row["n"] for row in guard.query(sql).to_pylist()} == {480}
    both = "SELECT (SELECT COUNT(*) FROM employees) AS e, (SELECT COUNT(*) FROM customers) AS c"
    assert guard.query(both).to_pylist() == [{"e": 60, "c": 400}]


def test_people_of_two_kinds_are_not_joined(guard: Guard) -> None:
    with pytest.raises(Refused, match="not declared to be joined"):
        guard.query("SELECT COUNT(*) FROM employees JOIN customers ON badge = id")
    with pytest.raises(InputError, match="about people of two kinds"):
        guarded(
            guard.engine.database.warehouse.path.parent,
            None,
            POLICY.replace(  # type: ignore[union-attr]
                "joins: [", "joins: [employees.badge = customers.id, "
            ),
            silent,
        )


def test_equal_numbers_of_two_kinds_are_two_people(tmp_path: Path) -> None:
    build(tmp_path / "db.duckdb")
    with duckdb.connect(tmp_path / "db.duckdb") as con:
        con.execute("alter table employees alter badge type integer using cast(badge[2:] as integer)")
    guard = guarded(tmp_path, None, POLICY, silent)
    with recorded() as wanted:
        assert guard.query("SELECT COUNT(*) AS n FROM employees WHERE team = 'shop'").to_pylist() == [{"n": 30}]
        assert guard.query("SELECT COUNT(*) AS n FROM customers WHERE city = 'Wien'").to_pylist() == [{"n": 200}]
    other = tmp_path / "without.duckdb"
    other.write_bytes((tmp_path / "db.duckdb").read_bytes())
    with duckdb.connect(other) as con:
        con.execute("delete from employees where badge = 7")
    assert wanted
    for each, moved, reach in moves(guard, wanted, other):
        assert moved <= reach * (1 + 1e-6), each.name


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("unit: employee", "unit: customer", "people of two kinds, name the kind of each under unit"),
        ("grain: unit, artifacts: [team]", "public: true", "unit goes with privacy_unit"),
        ("belongs_to: {order_id: orders.id}", "belongs_to: {order_id: orders.id}, unit: customer", "unit goes with"),
        ("lines: {", "lines: {privacy_unit: order_id, unit: employee, ", "not about people of the kind 'employee'"),
        ("version: 1", "version: 1\nmode: generalized", "Use mode measured"),
    ],
)
def test_policies(tmp_path: Path, old: str, new: str, told: str) -> None:
    build(tmp_path / "db.duckdb")
    text = POLICY.replace(old, new).replace(GENEROUS if "generalized" in new else "\0", "")
    with pytest.raises(InputError, match=told):
        guarded(tmp_path, None, text, silent)


def test_rows_that_name_their_person_and_belong_to_a_row_may_say_the_kind(tmp_path: Path) -> None:
    build(tmp_path / "db.duckdb")
    text = POLICY.replace("lines: {", "lines: {privacy_unit: order_id, unit: customer, ")
    assert guarded(tmp_path, None, text, silent).catalog.tables["lines"].people == "customer"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("unit: employee", "unit: clerk"),
        ("belongs_to: {order_id: orders.id}", "belongs_to: {product: orders.id}"),
        ("lines: {belongs_to: {order_id: orders.id}", "lines: {privacy_unit: order_id, unit: customer, grain: rows"),
    ],
)
def test_whom_a_ledger_protects_stays(guard: Guard, tmp_path: Path, old: str, new: str) -> None:
    assert guard.query("SELECT COUNT(*) AS n FROM lines").num_rows == 1
    text = POLICY.replace(old, new).replace("artifacts: [product], bounds: {product: [0, 4]}, ", "")
    with pytest.raises(InputError, match="Whom a budget protects does not change"):
        guarded(tmp_path, None, text, silent)


EMPLOYEES = "  employees: {privacy_unit: badge, unit: employee, "


def test_a_table_has_no_second_budget_by_another_name(guard: Guard, tmp_path: Path) -> None:
    """With the schema, a table is the same one."""
    assert guard.query("SELECT COUNT(*) AS n FROM employees").num_rows == 1
    clerks = EMPLOYEES.replace("employees", "main.employees").replace("employee,", "clerk,")
    with pytest.raises(InputError, match="Whom a budget protects does not change"):
        guarded(tmp_path, None, POLICY.replace(EMPLOYEES, clerks), silent)
    same = EMPLOYEES.replace("employees", "main.employees")
    again = guarded(tmp_path, None, POLICY.replace(EMPLOYEES, same), silent)
    assert again.query("SELECT COUNT(*) AS n FROM employees").num_rows == 1


def test_a_table_is_not_about_two_kinds(tmp_path: Path) -> None:
    build(tmp_path / "db.duckdb")
    both = EMPLOYEES.replace("employees", "main.employees").replace("employee,", "clerk,")
    text = POLICY.replace("joins: [", f"{both}grain: unit, artifacts: [team]}}\njoins: [")
    with pytest.raises(InputError, match="Whom a budget protects does not change"):
        guarded(tmp_path, None, text, silent)


# Budgets

TEAMS = "SELECT team, COUNT(*) AS n FROM employees GROUP BY team"
CITIES = "SELECT city, COUNT(*) AS n FROM customers GROUP BY city"
BUDGETS = "budget: {epsilon: 8, delta: 1.0e-6, units: {Employee: {epsilon: 2}}}"


def with_budgets(folder: Path, budget: str = BUDGETS, principals: str = "x: {}") -> Guard:
    if not (folder / "db.duckdb").exists():
        build(folder / "db.duckdb")
    text = POLICY.replace(GENEROUS, budget).replace("principals: {x: {}}", f"principals: {{{principals}}}")
    return guarded(folder, None, text, silent)


def charged(guard: Guard) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in engine_of(guard).ledger.measurements():
        if one.kind != "constant":  # it is computed, and costs nothing
            assert one.whom is not None
            found[one.whom] = found.get(one.whom, 0.0) + one.rho
    return found


def test_a_question_is_charged_to_the_kinds_it_touches(tmp_path: Path) -> None:
    guard = with_budgets(tmp_path)
    first = guard.answer(TEAMS)
    assert set(first.costs) == {"employee"}
    assert charged(guard) == pytest.approx({"employee": first.cost})
    both = guard.answer(f"WITH a AS ({CITIES}), b AS ({TEAMS}) SELECT city, a.n, b.team FROM a, b")
    assert set(both.costs) == {"customer"}, "the teams were paid for before"
    assert charged(guard) == pytest.approx(dict(both.costs) | dict(first.costs))
    other = guard.answer(
        "SELECT (SELECT COUNT(*) FROM customers WHERE city = 'Graz') AS c, "
        "(SELECT COUNT(*) FROM lines WHERE product > 2) AS o, (SELECT COUNT(*) FROM employees) AS e"
    )
    assert sum(charged(guard).values()) == pytest.approx(
        sum(both.costs.values()) + sum(first.costs.values()) + (other.cost or 0.0)
    )


def test_one_kind_spends_nothing_of_another(tmp_path: Path) -> None:
    guard = with_budgets(tmp_path)
    engine = engine_of(guard)
    assert engine.kinds["employee"].prices.total == pytest.approx(rho_of(2, 0.8e-6))
    assert engine.kinds["customer"].prices.total == pytest.approx(rho_of(8, 0.8e-6))
    people = engine.kinds["employee"]
    with engine.ledger.measuring() as writing:
        about = {"pool": "reserve", "whom": "employee"}
        rest = people.prices.total * (1 - 1e-12)
        writing.add(Measurement("lost", "", rest, 0.0, 0.0, (), np.zeros(0, dtype=np.int64), about))
    with pytest.raises(Refused) as refusal:
        guard.query(TEAMS)
    assert refusal.value.code == "KG002"
    assert guard.query(CITIES).num_rows == 2
    spending = guard.spending
    assert spending is not None
    assert spending.kinds["employee"].share == pytest.approx(1)
    assert spending.kinds["customer"].share < 0.2
    assert spending.share == spending.kinds["employee"].share
    assert spending.spent == pytest.approx(sum(one.spent for one in spending.kinds.values()))
    told = [note for note in guard.answer(CITIES).notes if "is spent" in note]
    assert told == [
        "100% of the budget of people of kind employee is spent: soon new questions get estimates, or nothing."
    ]


def test_shares_are_of_each_kind(tmp_path: Path) -> None:
    guard = with_budgets(tmp_path, BUDGETS.replace("2}", "7}"), "x: {share: 0.4}, y: {share: 0.6}")
    guard.query(TEAMS, principal="x")
    guard.query(CITIES, principal="y")
    found = guard.spending
    assert found is not None
    for kind, epsilon in (("employee", 7), ("customer", 8)):
        one = found.kinds[kind]
        assert sum(one.most.values()) == pytest.approx(rho_of(epsilon, 0.8e-6))
        assert one.most["x"] * 1.5 == pytest.approx(one.most["y"])
    assert set(found.kinds["employee"].by) == {"x"}
    assert set(found.kinds["customer"].by) == {"y"}
    assert sum(found.by.values()) == pytest.approx(found.spent)


def test_what_is_measured_of_one_kind_does_not_depend_on_another(tmp_path: Path) -> None:
    guard = with_budgets(tmp_path)
    with recorded() as wanted:
        for sql in (TEAMS, CITIES, "SELECT COUNT(*) AS n FROM customers", "SELECT AVG(total) AS t FROM orders"):
            guard.query(sql)
    other = tmp_path / "without.duckdb"
    other.write_bytes((tmp_path / "db.duckdb").read_bytes())
    with duckdb.connect(other) as con:
        con.execute("delete from employees")
    still = [(each, moved) for each, moved, _ in moves(guard, wanted, other) if each.whom == "customer"]
    assert len(still) >= 3
    assert all(moved == 0.0 for _, moved in still)


def test_constants_of_one_kind_stand_in_questions_about_another(tmp_path: Path) -> None:
    guard = with_budgets(tmp_path)
    sql = "SELECT COUNT(*) AS n FROM lines WHERE product < (SELECT COUNT(*) FROM employees)"
    assert guard.query(sql).to_pylist() == [{"n": 2_400}]
    before = charged(guard)
    assert guard.query(sql).num_rows == 1
    assert charged(guard) == before


def test_each_answer_is_given_again(tmp_path: Path) -> None:
    build(tmp_path / "db.duckdb")
    text = POLICY.replace(GENEROUS, f"{BUDGETS}\naudit_log: audit.jsonl")
    guard = guarded(tmp_path, None, text, silent)
    for sql in (
        TEAMS,
        f"WITH a AS ({CITIES}), b AS ({TEAMS}) SELECT city, a.n, b.team FROM a, b",
        "SELECT COUNT(*) AS n FROM lines WHERE product < (SELECT COUNT(*) FROM employees)",
    ):
        guard.query(sql)
    replay = Replay(Ledger(tmp_path / "ledger.sqlite"), Warehouse(tmp_path / "db.duckdb"))
    found = [replay.repeated(entry) for entry in replay.entries(read_log(tmp_path / "audit.jsonl"))]
    assert [one.result for one in found] == ["agrees"] * 3, [one.why for one in found]


def test_a_budget_of_a_kind_may_be_lowered_only(tmp_path: Path) -> None:
    with_budgets(tmp_path).query(CITIES)
    with_budgets(tmp_path, BUDGETS.replace("epsilon: 2", "epsilon: 1"))
    for wrong in (BUDGETS.replace("epsilon: 2", "epsilon: 3"), BUDGETS.replace("epsilon: 8", "epsilon: 9")):
        with pytest.raises(InputError, match=r"budget of people of kind (employee|customer): .* may be lowered only"):
            with_budgets(tmp_path, wrong)
    with pytest.raises(InputError, match=r"budget.units.clerk: no table is about people of the kind 'clerk'"):
        with_budgets(tmp_path, BUDGETS.replace("Employee", "clerk"))


def test_a_ledger_from_before_charges_everybody(tmp_path: Path) -> None:
    guard = with_budgets(tmp_path, "budget: {epsilon: 2, delta: 1.0e-6}")
    ledger = engine_of(guard).ledger
    with ledger.measuring() as writing:
        about = {"pool": "reserve"}
        writing.add(Measurement("people", "people of people: ", 0.001, 0.0, 1.0, (), np.array(999), about))
        writing.con.execute("delete from state where name = 'budgets'")
    guard = with_budgets(tmp_path, "budget: {epsilon: 2, delta: 1.0e-6}")
    spending = guard.spending
    assert spending is not None
    assert {kind: one.spent for kind, one in spending.kinds.items()} == {"customer": 0.001, "employee": 0.001}
    assert guard.query("SELECT COUNT(*) AS n FROM employees").to_pylist() == [{"n": 60}]
    with ledger.measuring() as writing:
        writing.con.execute("delete from state where name = 'budgets'")
    for wrong in ("{epsilon: 3, delta: 1.0e-6}", "{epsilon: 2, delta: 1.0e-6, units: {employee: {epsilon: 3}}}"):
        with pytest.raises(InputError, match="was begun with epsilon 2"):
            with_budgets(tmp_path, f"budget: {wrong}")


def test_what_is_left_is_told_by_kind(tmp_path: Path) -> None:
    guard = with_budgets(tmp_path)
    told = guard.explain(
        f"SELECT (SELECT COUNT(*) FROM ({CITIES})) AS c, (SELECT COUNT(*) FROM ({TEAMS})) AS t", cost=True
    )
    assert "that is left of" in told
    for kind in ("customer", "employee"):
        assert f"for people of kind {kind}" in told
    planned = guard.workload(f"{TEAMS}; {CITIES}")
    assert "for people of kind customer" in planned[-1] or "for people of kind customer" in planned[-2]
    guard.query(TEAMS)
    found = review(tmp_path / "ledger.sqlite")
    of = {one.kind: one for one in found.accounts}
    assert of["employee"].spent == pytest.approx(charged(guard)["employee"])
    assert of["customer"].spent == 0.0
    assert of["customer"].told_epsilon == 0.0
    assert {one.people for one in found.charges} == {"employee"}
    assert any(sentence.startswith("People of kind employee: ") for sentence in guard.buys)
