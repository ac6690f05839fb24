"""Tables in which people have several rows, or look alike with those of other tables: the SQL that counts people.

Names of columns are those of `kgather._recoding.sql`. Whom a row is of is in the pipeline's relations only: no row that
comes out has it.
"""

from collections.abc import Sequence

from kgather._settings.table import TableSettings
from kgather._sql_text import identifier, literal

Step = tuple[str, str]


def source(relation: str, settings: TableSettings, roles: str, columns: Sequence[str]) -> str:
    """The query for the rows that count. roles: the select list; columns: the names that it gives but for the unit."""
    rows = _rows(relation, settings, roles, columns)
    if settings.within is None:
        return rows
    return (
        f"select kg_own.*, kg_group from ({rows}) as kg_own left join kg_within on kg_person = cast(kg_unit as varchar)"
    )


def within(settings: TableSettings) -> list[Step]:
    """The groups that are given: (kg_person, kg_group)."""
    if settings.within is None:
        return []
    return [("kg_within", _groups(settings.within, settings.unit or ""))]


def _rows(relation: str, settings: TableSettings, roles: str, columns: Sequence[str]) -> str:
    if settings.aggregate is not None:
        said = {name.lower(): how for name, how in settings.aggregate.items()}
        made = ", ".join(
            f"{_made(said.get(name.lower(), 'same'), own, name)} as {own}"
            for own, name in zip(columns, settings.shown, strict=True)
        )
        return f"select {made}, kg_unit from (select {roles} from {relation}) group by kg_unit"
    if settings.rows_per_person is not None:
        # Drawn by what rows say, so that neither their order nor who they are of decides.
        texts = ", ".join(f"cast({name} as varchar)" for name in columns)
        in_order = ", ".join(f"cast({name} as varchar) asc nulls last" for name in columns)
        drawn = f"row_number() over (partition by kg_unit order by hash({settings.seed}, {texts}) asc, {in_order})"
        return f"select * from (select {roles} from {relation}) qualify {drawn} <= {settings.rows_per_person}"
    return f"select {roles} from {relation}"


def _made(how: str, own: str, name: str) -> str:
    """One value of all those of a person. In order, so that sums and ties are the same each time."""
    if how == "same":
        told = literal(_DIFFERENT.format(name=name))
        several = f"count(distinct {own}) + cast(count(*) > count({own}) as integer) > 1"
        return f"case when {several} then error({told}) else any_value({own}) end"
    if how in ("min", "max", "count", "median"):
        return f"{how}({own})"
    return f"{function(how)}({own} order by {own} asc)"


def function(how: str) -> str:
    """The function of the engine that aggregates so."""
    return "avg" if how == "mean" else how


def checked(settings: TableSettings) -> list[Step]:
    """Steps that refuse what cannot be counted by people; the last is `kg_units`, whose column `kg_checked` is null."""
    assert settings.unit is not None
    cases = [
        (f"(select count(*) <> count(distinct kg_person) from ({_groups(other, settings.unit)}))", _UNCLEAR, other)
        for other in settings.beside
    ]
    steps = []
    if settings.within is not None:
        steps.append(
            (
                "kg_within_sizes",
                "select kg_group, count(*) as kg_all, count(kg_of.kg_person) as kg_present from kg_within left join "
                "(select distinct cast(kg_unit as varchar) as kg_person from kg_source) as kg_of using (kg_person) "
                "group by kg_group",
            )
        )
        unclear = "(select count(*) <> count(distinct kg_person) or count(*) <> count(kg_group) from kg_within)"
        cases.append((unclear, _UNCLEAR, settings.within))
    if settings.has_several_rows:
        cases.append(("(select count(*) <> count(kg_unit) from kg_source)", _NOBODY, settings.unit))
    else:
        cases.append(("(select count(*) <> count(distinct kg_unit) from kg_source)", _SEVERAL, settings.unit))
    if settings.within is not None:
        sizes = "exists (select 1 from kg_within_sizes where {})"
        cases += [
            ("exists (select 1 from kg_source where kg_group is null)", _MISSING, settings.within),
            (sizes.format("kg_present > 0 and kg_present < kg_all"), _TORN, settings.within),
            (sizes.format(f"kg_present > 0 and kg_all < {settings.k}"), _SMALL, settings.within),
        ]
    said = " ".join(
        f"when {case} then cast(error({literal(text.format(name=_said(name), k=settings.k))}) as integer)"
        for case, text, name in cases
    )
    return [*steps, ("kg_units", f"select case {said} end as kg_checked")]


def _said(relation: str) -> str:
    """How messages call a relation: those that kgather itself read by what they were given as."""
    return relation.removeprefix("loaded.").removeprefix("kgather_")


def _groups(relation: str, unit: str) -> str:
    named = f"cast({identifier(unit)} as varchar) as kg_person, group_id as kg_group"
    return f"select {named} from query_table({literal(relation)})"


def measured(settings: TableSettings) -> list[Step]:
    """Steps that count people by what is shown of them; the last is `kg_people`, one row.

    in_class: distinct people in the smallest class. in_set: people in the smallest set of those who are in the same
    classes. in_group: people in the smallest group that is given, as it is shown; torn: groups that are not shown as
    one; each null where no groups are given. linked: the largest share of people of whom a value of one column tells
    that rows in several classes are theirs; null where people have one row. beside: people in the smallest intersection
    with the groups of other tables; null without any.
    """
    group = ", any_value(kg_group) as kg_group" if settings.within is not None else ""
    carried = ", kg_group" if settings.within is not None else ""
    steps = [
        ("kg_told", f"select distinct kg_unit, kg_rank{carried} from kg_dealt join kg_ranked using (kg_class)"),
        (
            "kg_sets",
            f"select cast(kg_unit as varchar) as kg_person, list_sort(list(kg_rank)) as kg_set{group} from kg_told "
            "group by kg_unit",
        ),
    ]
    smallest = "(select min(n) from (select count(*) as n from {of} group by {by}))"
    found = [
        f"{smallest.format(of='kg_told', by='kg_rank')} as in_class",
        f"{smallest.format(of='kg_sets', by='kg_set')} as in_set",
    ]
    if settings.within is not None:
        torn = (
            "(select count(*) from (select kg_group from kg_sets group by kg_group having count(distinct kg_set) > 1))"
        )
        found += [f"{smallest.format(of='kg_sets', by='kg_group, kg_set')} as in_group", f"{torn} as torn"]
    else:
        found += ["cast(null as bigint) as in_group", "cast(null as bigint) as torn"]
    found.append(f"{_linked(settings)} as linked")
    if settings.beside:
        joined, by = "kg_sets", "kg_set"
        for place, other in enumerate(settings.beside, 1):
            # Who is in no other table is told by that.
            joined += (
                f" left join (select kg_person, kg_group as kg_beside{place} from "
                f"({_groups(other, settings.unit or '')})) as kg_other{place} using (kg_person)"
            )
            by += f", kg_beside{place}"
        found.append(f"{smallest.format(of=joined, by=by)} as beside")
    else:
        found.append("cast(null as bigint) as beside")
    return [*steps, ("kg_people", f"select {', '.join(found)}")]


def _linked(settings: TableSettings) -> str:
    """The share of people who alone have a value, and have it in several classes: it links what they are shown by."""
    if not settings.has_several_rows:
        return "cast(null as double)"
    columns = [f"kg_s{place}" for place in range(1, len(settings.sensitive) + 1)]
    columns += [f"kg_o{place}" for place in range(1, len(settings.others) + 1)]
    shares = [
        "(select count(distinct kg_person) / (select count(distinct kg_unit) from kg_dealt) from (select "
        f"min(kg_unit) as kg_person from kg_dealt join kg_ranked using (kg_class) where {name} is not null "
        f"group by cast({name} as varchar) having min(kg_unit) = max(kg_unit) and min(kg_rank) < max(kg_rank)))"
        for name in columns
    ]
    return f"greatest(0.0, {', '.join(shares)})" if shares else "0.0"


def sound(settings: TableSettings) -> str:
    """A condition on `kg_people` that holds, or the query fails: no row comes out of a table that keeps less."""
    least = f"least(in_class, in_set, coalesce(in_group, in_set)) < {settings.k} or coalesce(torn, 0) > 0"
    linked = f"coalesce(linked, 0) > {_LINKED}"
    return (
        f"case when {least} then cast(error({literal(_UNSOUND)}) as boolean) "
        f"when {linked} then cast(error({literal(_LINKING)}) as boolean) else true end"
    )


def grouped(settings: TableSettings) -> str:
    """The query for (unit, group_id): who looks the same. It is as secret as the table itself."""
    unit = f"kg_unit as {identifier(settings.unit or '')}"
    if settings.has_several_rows:
        return (
            f"select distinct {unit}, kg_of_people as group_id from kg_combinations "
            "join kg_pieces using (kg_combination) order by all asc"
        )
    if settings.within is not None:
        return f"select {unit}, kg_group as group_id from kg_dealt order by all asc"
    return f"select {unit}, kg_class as group_id from kg_dealt order by all asc"


_SEVERAL = (
    "column '{name}' names some people twice, or not at all. k counts rows: give a table with one row for each person, "
    "or say what becomes of the rows of a person with rows_per_person or aggregate."
)
_NOBODY = (
    "column '{name}' is null in some rows, so nobody knows whose they are. Leave them out, or name whose they are."
)
_DIFFERENT = (
    "column '{name}' differs between the rows of one person, and nobody said what to make of it. Add it to aggregate, "
    "with min, max, sum, mean, median, mode or count."
)
_UNCLEAR = "the groups of '{name}' name some people twice, or put them into none. Each person is in one group there."
_MISSING = "the groups of '{name}' do not have all people of the table. Make them of everybody who is in some table."
_TORN = (
    "some groups of '{name}' have people who are in the table and others who are not, and who is in it would tell them "
    "apart. Make groups of people who are in the same tables."
)
_SMALL = "some groups of '{name}' have fewer than k = {k} people. Make them with this k or a larger one."
_LINKED = 0.5
"""The share of people from which on a column is as good as a name of theirs."""
_LINKING = (
    "a column that is shown as it is names most people: its values are one person's each and stand in several classes, "
    "so they link their rows. Leave it out, or make it a quasi-identifier."
)
_UNSOUND = "fewer than k people would look the same, so nothing is shown. Please report this: it is a fault of kgather."
REFUSALS = (
    "names some people twice",
    "nobody knows whose they are",
    "differs between the rows of one person",
    "name some people twice, or put them into none",
    "do not have all people of the table",
    "have people who are in the table and others who are not",
    "Make them with this k or a larger one",
    "a column that is shown as it is names most people",
)
"""Parts of the refusals above, by which they are known in what the engine says."""
