"""Texts and lists over answers that double from one subquery to the next: what they may become is bounded."""

from sqlglot import exp

from kgather._guard import series
from kgather._guard.names import Output, Resolved, Scope, Source, Union
from kgather._guard.policy import fold
from kgather._guard.refused import TOO_COMPLEX, Rule, refused
from kgather._guard.sql_names import sql_name

MOST = 4_096
"""How many texts one may be made of; a constant counts for as many as it has 64 characters."""
SHORT = 64
ADDED = {"concat", "concat_ws", "format", "printf", "list_concat", "list_cat", "array_concat", "list_value", "map"}
ADDED |= {"array_cat", "array_append", "array_prepend", "list_append", "list_prepend", "list_zip", "array_zip"}
ADDED |= {"map_concat", "struct_concat", "struct_insert", "overlay", "list_select", "array_select"}
REPLACED = {"replace", "regexp_replace"}
LENGTHS = {"repeat": 1, "lpad": 1, "rpad": 1}


def growth(query: Resolved) -> None:
    """Refuse texts that may become many times as long as those that they are made of."""
    found = _Sizes()
    for scope in query.scopes:
        for node in scope.node.find_all(exp.DPipe, exp.Func, exp.Array):
            if node.find_ancestor(exp.Select) is scope.node and found.of(scope, node) > MOST:
                allow = "Put fewer of them together"
                reason = f"A text or list that could be made of more than {MOST} others"
                raise refused(Rule.LIMITS, reason, node, allow=allow, code=TOO_COMPLEX)


class _Sizes:
    """How many texts each expression may be made of, at most one more than allowed."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def of(self, scope: Scope, node: exp.Expr) -> int:
        if id(node) not in self._known:
            self._known[id(node)] = 1  # names do not lead in circles
            self._known[id(node)] = min(self._of(scope, node), MOST + 1)
        return self._known[id(node)]

    def _of(self, scope: Scope, node: exp.Expr) -> int:
        inner = scope.subqueries.get(id(node))
        if inner is not None:
            return 1 if isinstance(node, exp.In | exp.Exists) else self._outputs(inner, 0)
        if isinstance(node, exp.Literal):
            return 1 + len(str(node.this)) // SHORT
        if isinstance(node, exp.Column):
            return self._column(scope, node)
        if isinstance(node, exp.GenerateSeries):
            return 1 + (series.length(node) or series.LONGEST) // SHORT
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Query):
            return 1
        parts = [self.of(scope, one) for one in node.iter_expressions()]
        if not parts:
            return 1
        name = sql_name(node).lower() if isinstance(node, exp.Func) else ""
        if isinstance(node, exp.DPipe | exp.Array | exp.Struct | exp.ToMap) or name in ADDED:
            return sum(parts)
        if name in REPLACED and len(parts) > 2:  # each character may become what is put in its place
            by = [*node.iter_expressions()][2].unnest()
            many = len(str(by.this)) if isinstance(by, exp.Literal) else SHORT * parts[2]
            return parts[0] * max(many, 1)
        at = LENGTHS.get(name)
        if at is not None:
            given = [*node.iter_expressions()]
            number = given[at].unnest() if len(given) > at else None
            many = int(str(number.this)) if isinstance(number, exp.Literal) and number.is_int else 1
            return max(parts) * many if name == "repeat" else max(parts) + many // SHORT
        return max(parts)

    def _column(self, scope: Scope, node: exp.Column) -> int:
        name = scope.names.get(id(node))
        if name is None:
            return 1
        if name.output is not None:
            return self._output(name.scope, name.output)
        return 1 if name.source is None else self._source(name.source, name.column)

    def _output(self, scope: Scope, output: Output) -> int:
        if output.node is not None:
            return self.of(scope, output.node)
        return 1 if output.source is None else self._source(output.source, output.column)

    def _source(self, source: Source, column: str) -> int:
        if source.query is None:
            return 1
        at = next((at for at, one in enumerate(source.query.outputs) if one.key == fold(column)), 0)
        return self._outputs(source.query, at)

    def _outputs(self, query: Scope | Union, at: int) -> int:
        if isinstance(query, Union):
            return max(self._outputs(branch, at) for branch in query.branches)
        return self._output(query, query.outputs[at])
