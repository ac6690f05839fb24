"""The pipeline of a table of people as SQL: combinations of values, one call of the kernels, rows.

DuckDB asks for this text while it binds a query (`kg_anonymize` is a macro over `query`), so what runs is one statement
that the engine plans as a whole. All columns get names of their own within: those of the table may be anything.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kgather._errors import InputError
from kgather._recoding import people
from kgather._settings.table import TableSettings
from kgather._sql_text import identifier, literal


@dataclass(frozen=True)
class Step:
    """One step of the pipeline: a relation by its name, and the query that gives it. kept: it is computed once."""

    name: str
    query: str
    kept: bool = True


def anonymized(relation: str, settings: TableSettings, settings_text: str) -> str:
    """The query whose rows are the anonymized table. relation: as it may stand after FROM."""
    return _as_one(_all_steps(relation, settings, settings_text), rows(settings))


def reported(relation: str, settings: TableSettings, settings_text: str) -> str:
    """The query whose one row is the report of the same run: a JSON text."""
    parts = _all_steps if settings.counts_people else steps
    return _as_one(parts(relation, settings, settings_text), report(settings))


def grouped(relation: str, settings: TableSettings, settings_text: str) -> str:
    """The query for (unit, group_id) of the same run: who looks the same. Raises InputError without a unit."""
    if settings.unit is None:
        msg = "groups are of people: give unit, the column that names them."
        raise InputError(msg)
    return _as_one(_all_steps(relation, settings, settings_text, units=True), people.grouped(settings))


def script(relation: str, settings: TableSettings, settings_text: str, *, units: bool = False) -> Iterator[str]:
    """The same steps as statements, each a temporary relation; `rows` and `report` may be asked for afterwards.

    units: with whom rows are of, which `kgather._recoding.people.grouped` asks for."""
    for step in _all_steps(relation, settings, settings_text, units=units):
        yield f"create or replace temp {'table' if step.kept else 'view'} {step.name} as {step.query}"


def report(settings: TableSettings) -> str:
    """The query for the report, after the steps: a JSON text."""
    if not settings.counts_people:
        return "select kg_found.report from kg_answer"
    return (
        "select cast(json_merge_patch(kg_found.report, json_object('people', kg_people)) as varchar) as report "
        "from kg_answer, kg_people"
    )


def _all_steps(relation: str, settings: TableSettings, settings_text: str, *, units: bool = False) -> list[Step]:
    found = [
        *steps(relation, settings, settings_text), *_dealing(settings, units=units or settings.counts_people)
    ]  # fmt: skip
    if settings.counts_people:
        found += [Step(name, query) for name, query in people.measured(settings)]
    return found


def _as_one(parts: Sequence[Step], last: str) -> str:
    named = ", ".join(
        f"{step.name} as {'materialized' if step.kept else 'not materialized'} ({step.query})" for step in parts
    )
    return f"with {named} {last}"


def rows(settings: TableSettings) -> str:
    """The query for the rows of the table, after all steps. Their order tells what they show and nothing else."""
    # With the relations that they are of: a column of the table may have the same name, and orders go by what is shown.
    own = [*_own("kg_dealt.kg_s", settings.sensitive), *_own("kg_dealt.kg_o", settings.others)]
    cells = [f"kg_ranked.kg_shown[{place}]" for place in range(1, len(settings.quasi_identifiers) + 1)]
    shown = ", ".join(
        f"{cell} as {identifier(name)}" for cell, name in zip([*cells, *own], settings.shown, strict=True)
    )
    # The same order as by all columns, but texts are compared once a class and not once a row.
    order = ", ".join(f"{name} asc nulls last" for name in ["kg_ranked.kg_rank", *own])
    if own:  # what sorts alike and reads otherwise: 0.0 and -0.0, a month and thirty days
        texts = ", ".join(f"cast({name} as varchar)" for name in own)
        order += f", hash({texts}) asc"
    counted = f" cross join kg_people where {people.sound(settings)}" if settings.counts_people else ""
    told = f"from kg_dealt join kg_ranked using (kg_class){counted}"
    if settings.pseudonym is None:
        return f"select {shown} {told} order by {order}"
    # A function of the seed and of where a row stands among what is shown: it cannot tell who somebody is.
    drawn = f"md5('{settings.seed}/' || row_number() over (order by {order}))"
    return f"select {shown}, {drawn} as {identifier(settings.pseudonym)} {told} order by {order}, {drawn} asc"


def steps(relation: str, settings: TableSettings, settings_text: str) -> list[Step]:
    """From the table to its classes."""
    coded = [*_own("kg_q", settings.quasi_identifiers), *_own("kg_s", settings.sensitive)]
    checked = "(select kg_plain from kg_collations)"
    carried = [*coded, *_own("kg_o", settings.others)]
    parts = [Step(name, query) for name, query in people.within(settings)]
    computed = settings.aggregate is not None or settings.rows_per_person is not None or settings.within is not None
    source = people.source(relation, settings, _roles(settings), carried)
    parts.append(Step("kg_source", source, kept=computed))
    if settings.unit is not None:
        parts += [Step(name, query) for name, query in people.checked(settings)]
        checked = f"coalesce((select kg_checked from kg_units), {checked})"
    parts.append(Step("kg_collations", _collations(settings)))
    told_apart = [*coded, *_people(settings)]
    listed = ", ".join(told_apart)
    counted = f"select {listed}, count(*) as kg_rows, 0 as kg_people from kg_source group by {listed}"
    if settings.population is not None:
        # Combinations of the population are among those of the table: one dictionary for both.
        everybody = ", ".join(_named("kg_q", settings.quasi_identifiers))
        seen = ", ".join(_own("kg_q", settings.quasi_identifiers))
        parts.append(Step("kg_everybody", f"select {everybody} from {settings.population}", kept=False))
        counted += (
            f" union all by name select {seen}, 0 as kg_rows, count(*) as kg_people from kg_everybody group by {seen}"
        )
    parts.append(Step("kg_combinations", f"select *, row_number() over () as kg_combination from ({counted})"))
    # Numbers by rank, and no join with a dictionary for each column: planning 200 joins takes minutes. Each column is
    # ranked by itself: windows over one relation would carry all columns through each of them.
    ranked = "cast(dense_rank() over (order by {name} asc nulls first) - 1 as integer) as kg_id"
    numbered = " union all ".join(
        f"select {place} as kg_column, list(kg_id order by kg_combination asc) as kg_list "
        f"from (select kg_combination, {ranked.format(name=name)} from kg_combinations)"
        for place, name in enumerate(told_apart)
    )
    parts.append(Step("kg_numbered", f"select list(kg_list order by kg_column asc) as kg_ids from ({numbered})"))
    types = ", ".join(f"any_value(typeof({name}))" for name in coded)
    lists = ", ".join(
        f"list({name} order by kg_combination asc) as {name}" for name in ("kg_combination", "kg_rows", "kg_people")
    )
    counts = f"select {lists}, [{types}] as kg_types from kg_combinations"
    parts.append(Step("kg_coded", f"select * from ({counts}), kg_numbered"))
    # Values alone have the same ranks as values with their repetitions.
    values = " union all ".join(
        f"select {place} as kg_column, kg_id, cast(any_value({name}) as varchar) as kg_text from "
        f"(select {name}, {ranked.format(name=name)} from (select {name} from kg_combinations group by {name})) "
        "group by kg_id"
        for place, name in enumerate(coded)
    )
    parts.append(
        Step(
            "kg_texts",
            "select list(kg_texts order by kg_column asc) as kg_texts from (select kg_column, "
            "list(kg_text order by kg_id asc) "
            f"as kg_texts from ({values}) group by kg_column)",
        )
    )
    answer = f"kg_types, kg_texts, kg_ids, kg_combination, kg_rows, kg_people, {literal(settings_text)}, {checked}"
    parts.append(Step("kg_answer", f"select kg_recode({answer}) as kg_found from kg_coded, kg_texts"))
    parts.append(Step("kg_pieces", "select unnest(kg_found.pieces, recursive := true) from kg_answer"))
    parts.append(Step("kg_classes", "select unnest(kg_found.classes, recursive := true) from kg_answer"))
    texts = ", ".join(f"kg_shown[{place}] asc nulls last" for place in range(1, len(settings.quasi_identifiers) + 1))
    parts.append(Step("kg_ranked", f"select *, dense_rank() over (order by {texts}) as kg_rank from kg_classes"))
    return parts


def _people(settings: TableSettings) -> list[str]:
    """The columns beside values that tell combinations apart, in the order in which `kg_recode` gets them."""
    return [*["kg_unit"] * settings.has_several_rows, *["kg_group"] * (settings.within is not None)]


def _dealing(settings: TableSettings, *, units: bool) -> list[Step]:
    """From classes to rows. Those of a combination that is in several classes are dealt in the order of their hash:
    rows with the same hash are the same. units: with whom each row is of."""
    coded = [*_own("kg_q", settings.quasi_identifiers), *_own("kg_s", settings.sensitive), *_people(settings)]
    shown = [*_own("kg_s", settings.sensitive), *_own("kg_o", settings.others)]
    of_people = [*["kg_unit"] * units, *["kg_group"] * (settings.within is not None)]
    carried = [*shown, *of_people]
    agree = " and ".join(f"kg_source.{name} is not distinct from kg_combinations.{name}" for name in coded)
    kept = "".join(f"kg_source.{name}, " for name in carried)
    again = "".join(f"{name}, " for name in carried)
    hashed = ", ".join([str(settings.seed), *(f"cast({name} as varchar)" for name in shown)])
    # Rows that show the same may be anybody's, but the same people have the same place each time.
    tied = ", ".join(f"{name} asc" for name in (f"hash({hashed})", *of_people[:1]))
    lost = f"case when kg_class is null then cast(error({literal(_CHANGED)}) as bigint) else kg_class end as kg_class"
    return [
        Step("kg_table", "from kg_combinations where kg_rows > 0", kept=False),
        Step(
            "kg_single",
            "select kg_combination, any_value(kg_class) as kg_class, count(*) as kg_pieces from kg_pieces "
            "group by kg_combination",
        ),
        Step(
            "kg_placed",
            f"select {kept}kg_combinations.kg_combination, kg_single.kg_class, kg_single.kg_pieces from kg_source "
            f"left join kg_table as kg_combinations on {agree} left join kg_single using (kg_combination)",
            kept=False,
        ),
        Step(
            "kg_dealt",
            f"select {again}{lost} from kg_placed where kg_pieces = 1 or kg_pieces is null "
            f"union all by name select {again}kg_pieces.kg_class from (select {again}kg_combination, "
            f"row_number() over (partition by kg_combination order by {tied}) as kg_place "
            "from kg_placed where kg_pieces > 1) as kg_split join kg_pieces "
            "on kg_split.kg_combination = kg_pieces.kg_combination "
            "and kg_split.kg_place between kg_pieces.kg_first and kg_pieces.kg_last",
            kept=units,
        ),
    ]


def _own(prefix: str, names: Collection[str]) -> list[str]:
    return [f"{prefix}{place}" for place in range(1, len(names) + 1)]


def _roles(settings: TableSettings) -> str:
    named = [
        *_named("kg_q", settings.quasi_identifiers),
        *_named("kg_s", settings.sensitive),
        *_named("kg_o", settings.others),
    ]
    if settings.unit is not None:
        named.append(f"{identifier(settings.unit)} as kg_unit")
    return ", ".join(named)


def _named(prefix: str, names: Collection[str]) -> list[str]:
    return [f"{identifier(name)} as {prefix}{place}" for place, name in enumerate(names, 1)]


def _collations(settings: TableSettings) -> str:
    """A query that fails where a column takes texts for one that a reader tells apart; else it gives null."""
    cases = []
    for prefix, names in (("kg_q", settings.quasi_identifiers), ("kg_s", settings.sensitive)):
        for own, name in zip(_own(prefix, names), names, strict=True):
            # The comparison is that of the column; its values are not looked at.
            text = f"case when false then cast({own} as varchar) else {{}} end"
            alike = " or ".join(f"{text.format(a)} = {text.format(b)}" for a, b in _TOLD_APART)
            told = literal(_COLLATED.format(name=name))
            cases.append(f"when {alike} then cast(error({told}) as integer)")
    return f"select (select case {' '.join(cases)} end from kg_source limit 1) as kg_plain"


_TOLD_APART = (("'A'", "'a'"), ("chr(233)", "'e'"), ("chr(233)", "'e' || chr(769)"))
_COLLATED = (
    "column '{name}' is compared by a collation that takes texts for one which a reader tells apart. Give a relation "
    "in which it is written with collate c, and leave default_collation as it is."
)
_CHANGED = "the table changed while it was read, or gives other rows each time. Give a table that stays."
REFUSALS = ("the table changed while it was read", "is compared by a collation", *people.REFUSALS)
