"""`kgather query`."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

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
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Say on standard error how far off the answer may be.")
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

    answer = Guard.from_policy(policy).answer(
        text, principal=principal, parameters=parameters(parameter, text), bounds=bounds
    )
    for block, shares in answer.uncertain.items():
        for row in shares.to_pylist():
            share = row.pop("uncertain")
            group = ", ".join(_printable(str(value)) for value in row.values())
            say(f"{block}{f' ({group})' if group else ''}: up to {share:.0%} of what it covers may be off.")
    try:
        _write(answer.table, format, out)
    except (OSError, duckdb.IOException) as error:
        reason = error.strerror if isinstance(error, OSError) else "the file cannot be made"
        msg = f"{out or 'the result'} cannot be written: {reason}."
        raise InputError(msg) from None


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


def _write_table(answer: pa.Table, out: Path | None) -> None:
    table = Table(box=None, pad_edge=False)
    for field in answer.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
        table.add_column(Text(_printable(field.name)), justify="right" if number else "left")
    for row in zip(*(column.to_pylist() for column in answer.columns), strict=True):
        table.add_row(*(Text("NULL" if value is None else _printable(str(value))) for value in row))
    if out is None:
        Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE).print(table)
        return
    with out.open("w", encoding="utf-8") as stream:
        Console(file=stream, highlight=False, width=_WIDE).print(table)


def _printable(text: str) -> str:
    """A text that tells a terminal nothing but letters."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
