"""PIVOT and UNPIVOT as the SELECTs that they are: one column for each listed value, of the rows that have it; one row
for each listed column."""

from collections.abc import Callable, Sequence

from sqlglot import exp

from kgather._guard.conditions import constant
from kgather._guard.policy import fold
from kgather._guard.refused import Rule, refused

ListedValues = Callable[[exp.Expr], Sequence[exp.Expr] | None]
_MANY = 200  # columns
_COLUMNS = "List the columns, of which rows are made: UNPIVOT ... ON a, b INTO NAME name VALUE value"
_LIST = "List the values, which become columns: PIVOT ... ON column IN ('a', 'b')"


def as_select(tree: exp.Expr) -> exp.Expr:
    """A statement that begins with PIVOT or UNPIVOT as a SELECT of everything from it."""
    if not isinstance(tree, exp.Pivot):
        return tree
    with_ = tree.args.pop("with_", None)
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=_source(tree)), with_=with_)


def _source(pivot: exp.Pivot) -> exp.Expr:
    """A pivot that is written before its source, behind it."""
    source = pivot.this.copy()
    if pivot.args.get("unpivot"):
        source.set("pivots", [_standard_unpivot(pivot)])
        return source
    made = exp.Pivot(
        expressions=[one.copy() for one in pivot.args.get("using") or [exp.Count(this=exp.Star(), big_int=True)]],
        fields=[one.copy() for one in pivot.expressions],
        group=pivot.args["group"].copy() if pivot.args.get("group") is not None else None,
    )
    source.set("pivots", [made])
    return source


def _standard_unpivot(pivot: exp.Pivot) -> exp.Pivot:
    """UNPIVOT ... ON columns INTO NAME name VALUE value, as UNPIVOT (value FOR name IN (columns))."""
    into = pivot.args.get("into")
    name = into.this.name if into is not None else "name"
    values = [one.name for one in into.expressions] if into is not None else ["value"]
    field = exp.In(this=exp.to_identifier(name), expressions=[one.copy() for one in pivot.expressions])
    made = exp.Pivot(expressions=[exp.to_identifier(one) for one in values], fields=[field], unpivot=True)
    made.set("include_nulls", pivot.args.get("include_nulls"))
    return made


def pivot_of(node: exp.Expr) -> exp.Pivot | None:
    """The pivot of a member of a FROM, None where it has none. Raises Refused for several."""
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Pivot):
        inner = _source(node.this)
        alias = node.args.get("alias")
        node.set("this", exp.Select(expressions=[exp.Star()], from_=exp.From(this=inner)))
        node.set("alias", alias)
        return None
    pivots = node.args.get("pivots") or []
    if not pivots:
        return None
    if len(pivots) > 1:
        raise refused(Rule.NODES, "Several PIVOTs of one table", node, allow="Write it as a SELECT")
    return pivots[0]


def selected(node: exp.Expr, pivot: exp.Pivot, columns: Sequence[str], values: ListedValues) -> exp.Select:
    """The SELECT that a pivot is. node: what it is of, with it. columns: of that. values: those that the policy lists
    of a column. Raises Refused."""
    if pivot.args.get("unpivot"):
        return _unpivoted(node, pivot, columns)
    _list_values(pivot, values)
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or not fields[0].expressions:
        raise refused(Rule.NODES, "PIVOT without a list of values, or by several columns", node, allow=_LIST)
    (field,) = fields
    calls = pivot.expressions
    if len(calls) * len(field.expressions) > _MANY:
        raise refused(Rule.LIMITS, f"PIVOT makes more than {_MANY} columns", node, allow="List fewer values")
    source = node.copy()
    source.set("pivots", None)
    group = pivot.args.get("group")
    if group is not None:
        keys = [one.copy() for one in group.expressions]
    else:
        used = {fold(one.name) for part in (field.this, *calls) for one in part.find_all(exp.Column)}
        keys = [exp.column(name, quoted=True) for name in columns if fold(name) not in used]
    outputs: list[exp.Expr] = [*(key.copy() for key in keys)]
    for value in field.expressions:
        of, named = (value.this, value.args["alias"].name) if isinstance(value, exp.PivotAlias) else (value, None)
        literal = constant(of)
        if literal is None:
            raise refused(Rule.NODES, "PIVOT by what is no constant", node, allow=_LIST)
        named = named if named is not None else "NULL" if literal.value is None else str(literal.value)
        for call in calls:
            several = len(calls) > 1 or isinstance(call, exp.Alias)
            beside = call.alias if isinstance(call, exp.Alias) else call.sql("duckdb").lower()
            chosen = exp.NullSafeEQ(this=field.this.copy(), expression=of.copy())
            filtered = exp.Filter(this=call.unalias().copy(), expression=exp.Where(this=chosen))
            label = f"{named}_{beside}" if several else named
            outputs.append(exp.Alias(this=filtered, alias=exp.to_identifier(label, quoted=True)))
    made = exp.Select(expressions=outputs, from_=exp.From(this=source))
    if keys:
        made.set("group", exp.Group(expressions=keys))
    return made


def _list_values(pivot: exp.Pivot, values: ListedValues) -> None:
    """Put the values that the policy lists of a column where the pivot lists none, in the order in which DuckDB makes
    columns of them."""
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or isinstance(fields[0], exp.In):
        return
    listed = values(fields[0])
    if listed:
        pivot.set("fields", [exp.In(this=fields[0].copy(), expressions=[one.copy() for one in listed])])


def _unpivoted(node: exp.Expr, pivot: exp.Pivot, columns: Sequence[str]) -> exp.Select:
    """UNPIVOT as a SELECT over one whose lists of names and of values are read side by side."""
    fields = pivot.args.get("fields") or []
    names = [one.name for one in pivot.expressions]
    field = fields[0] if len(fields) == 1 else None
    listed = field.expressions if isinstance(field, exp.In) and len(names) == 1 else []
    labelled = [(one.this, one.args["alias"].name) if isinstance(one, exp.PivotAlias) else (one, "") for one in listed]
    if field is None or not listed or not all(_is_column(of) for of, _ in labelled):
        raise refused(Rule.NODES, "UNPIVOT of what is no column, or of several at once", node, allow=_COLUMNS)
    written = [next((name for name in columns if fold(name) == fold(of.name)), of.name) for of, _ in labelled]
    taken = [exp.column(name, quoted=True) for name in written]
    labels: list[exp.Expr] = [
        exp.Literal.string(label or name) for name, (_, label) in zip(written, labelled, strict=True)
    ]
    source = node.copy()
    source.set("pivots", None)
    used = {fold(one.name) for one in taken}
    kept = [name for name in columns if fold(name) not in used]
    outputs: list[exp.Expr] = [exp.column(name, quoted=True) for name in kept]
    for of_all, name in ((labels, field.this.name), ([one.copy() for one in taken], names[0])):
        both = exp.Explode(this=exp.Array(expressions=of_all))
        outputs.append(exp.Alias(this=both, alias=exp.to_identifier(name, quoted=True)))
    rows = exp.Select(expressions=outputs, from_=exp.From(this=source))
    if pivot.args.get("include_nulls"):
        return rows
    shown = [exp.column(name, quoted=True) for name in [*kept, field.this.name, names[0]]]
    there = exp.Not(this=exp.Is(this=exp.column(names[0], quoted=True), expression=exp.Null()))
    inner = exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier("kg_unpivoted")))
    return exp.Select(expressions=shown, from_=exp.From(this=inner), where=exp.Where(this=there))


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)
