"""`kgather query`."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import duckdb
import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kgather._cli.console import say
from kgather._errors import InputError
from kgather._guard.plan import Value
from kgather._sql_text import literal

if TYPE_CHECKING:
    from kgather._guard.guard import Answer, Guard

FORMATS = {
    "csv": "format csv, header",
    "json": "format json, array true",
    "parquet": "format parquet",
}

_WIDE = 1000  # columns where no terminal says

PolicyOption = Annotated[Path, typer.Option("--policy", metavar="FILE", help="The policy of the guard.")]
SqlArgument = Annotated[
    str | None, typer.Argument(metavar="SQL", help="The statement; '-' or nothing: from standard input.")
]
PrincipalOption = Annotated[
    str | None, typer.Option("--principal", metavar="NAME", help="Who asks; may be left out if there is only one.")
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option("--parameter", metavar="VALUE", help="A value for the next ?; NAME=VALUE for $NAME. Repeatable."),
]


def command(
    sql: SqlArgument = None,
    *,
    policy: PolicyOption,
    principal: PrincipalOption = None,
    parameter: ParameterOption = None,
    format: Annotated[str, typer.Option("--format", help="table, csv, json or parquet.")] = "table",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where the result goes, if not to the terminal.")
    ] = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Say on standard error how the answer came about and how sure it is.")
    ] = False,
    error_columns: Annotated[
        bool, typer.Option("--error-columns", help="Put standard errors, and how numbers came about, beside them.")
    ] = False,
) -> None:
    """Answer a query under a policy: about groups, never about people."""
    if format not in ("table", *FORMATS):
        msg = f"--format is table, csv, json or parquet, not '{format}'."
        raise InputError(msg)
    if format == "parquet" and out is None:
        msg = "--format parquet needs a file to write. Name it with --out FILE."
        raise InputError(msg)
    text = statement(sql)
    from kgather.guard import Guard  # the kernels take seconds to load

    guard = Guard.from_policy(policy)
    say_begun(guard)
    answer = guard.answer(
        text,
        principal=principal,
        parameters=parameters(parameter, text),
        errors="columns" if error_columns else errors,
    )
    if errors:
        _say_errors(answer, principal or next(iter(guard.policy.principals)))
    elif answer.warning is not None:
        say(answer.warning)
    try:
        _write(answer.table, format, out)
    except (OSError, duckdb.IOException) as error:
        reason = error.strerror if isinstance(error, OSError) else "the file cannot be made"
        msg = f"{out or 'the result'} cannot be written: {reason}."
        raise InputError(msg) from None


def say_begun(guard: "Guard") -> None:
    """Say what the budget buys, where the guard has begun its ledger, on standard error."""
    if guard.begun:
        say(f"{guard.policy.ledger} is a new ledger.")
        for sentence in guard.buys:
            say(sentence)


def statement(sql: str | None) -> str:
    """The text of the statement, from the argument or from standard input."""
    if sql is not None and sql != "-":
        return sql
    if sys.stdin.isatty():
        msg = 'there is no statement. Give it as an argument, as "SELECT COUNT(*) FROM ratings", or on standard input.'
        raise InputError(msg)
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        msg = "the statement on standard input is not UTF-8 text. Save it as UTF-8."
        raise InputError(msg) from None


def parameters(given: list[str] | None, text: str) -> list[Value] | dict[str, Value]:
    """Values for ? and $1, or, where the statement has no ? and all are NAME=VALUE, for $NAME."""
    pairs = [value.partition("=") for value in given or []]
    named = [name for name, equals, _ in pairs if equals and name.isidentifier() and f"${name.lower()}" in text.lower()]
    if pairs and len(named) == len(pairs):
        if len(set(named)) < len(named):
            msg = "--parameter gives one name twice. Give each name once."
            raise InputError(msg)
        return {name: _value(value) for name, _, value in pairs}
    return [_value(value) for value in given or []]


def _value(text: str) -> Value:
    """A number where the text is one, null and true as in SQL, otherwise the text; quotes around it are taken off."""
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    word = text.strip().lower()
    if word in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[word]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _say_errors(answer: "Answer", principal: str) -> None:
    """How an answer came about, and how far off the numbers of each block may be, on standard error."""
    for note in answer.notes:
        say(note)
    if answer.spending is not None:
        from kgather._guard.measured.kinds import named

        for kind, spending in (answer.spending.kinds or {"": answer.spending}).items():
            whole = answer.cost or 0.0 if not answer.spending.kinds else answer.costs.get(kind, 0.0)
            of = f" of {named(kind)}" if answer.spending.kinds else ""
            cost = whole / spending.total
            told = f"It cost {cost:.2%} of the budget{of}" if cost else "It cost nothing, as all was measured before"
            if not cost and answer.cost:
                told = f"It cost nothing of the budget{of}"
            own = spending.share_of(principal)
            of_share = "" if own is None else f", and {own:.1%} of your share"
            say(f"{told}; {spending.share:.1%} of the budget{of} is spent{of_share}.")
    for block, errors in answer.errors.items():
        if "uncertain" in errors.column_names:
            for row in errors.to_pylist():
                share = row.pop("uncertain")
                group = ", ".join(_printable(str(value)) for value in row.values())
                say(f"{block}{f' ({group})' if group else ''}: up to {share:.0%} of what it covers may be off.")
        elif errors.num_columns:
            say(f"{block}, as kgather explain names it, has these standard errors.")
            width = None if sys.stderr.isatty() else _WIDE
            Console(stderr=True, highlight=False, width=width).print(_table(errors))


def _write(answer: pa.Table, format: str, out: Path | None) -> None:
    if format == "table":
        _write_table(answer, out)
    elif out is not None:
        _write_file(answer, format, out)
    else:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "answer"
            _write_file(answer, format, file)
            sys.stdout.buffer.write(file.read_bytes())
            sys.stdout.buffer.flush()


def _write_file(answer: pa.Table, format: str, file: Path) -> None:
    with duckdb.connect(config={"python_enable_replacements": False}) as con:
        con.register("kg_answer", answer)
        con.execute(f"copy kg_answer to {literal(file)} ({FORMATS[format]})")


def _table(answer: pa.Table) -> Table:
    table = Table(box=None, pad_edge=False)
    for field in answer.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
        table.add_column(Text(_printable(field.name)), justify="right" if number else "left")
    for row in zip(*(column.to_pylist() for column in answer.columns), strict=True):
        table.add_row(*(Text("NULL" if value is None else _printable(str(value))) for value in row))
    return table


def _write_table(answer: pa.Table, out: Path | None) -> None:
    table = _table(answer)
    if out is None:
        Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE).print(table)
        return
    with out.open("w", encoding="utf-8") as stream:
        Console(file=stream, highlight=False, width=_WIDE).print(table)


def _printable(text: str) -> str:
    """A text that tells a terminal nothing but letters."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
