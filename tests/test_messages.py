"""Messages have one style: a sentence that says what is wrong, and what to do."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from kgather._cli.app import app
from kgather._cli.own_options import OPTION, with_own_options

PACKAGE = Path(__file__).parent.parent / "src" / "kgather"
# The guard and its server speak to analysts, through other programs; the dbt package has no Python messages.
APART = {"_guard", "_server", "guard", "dbt"}
ERRORS = {"InputError", "PromiseError", "KgatherError"}
HOLE = "\0"  # what stands where a value will

# Names that are written so, at the start of a sentence as anywhere.
NAMES = ("Funk", "Gaussian", "Spark")


def text_of(node: ast.expr) -> str | None:
    """The text of a literal, with a hole for each value; None where it is none."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
    return None


def raised(function: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every message of an error that people see, written there or put into a variable before."""
    texts: dict[str, list[tuple[int, str]]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = text_of(node.value)
            if text is not None:
                texts.setdefault(node.targets[0].id, []).append((node.lineno, text))
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and node.args:
            given = node.args[0]
            if isinstance(given, ast.Name):
                yield from texts.get(given.id, ())
            elif (text := text_of(given)) is not None:
                yield node.lineno, text


def warned(function: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every warning: those given to `warn` and `say`, and those collected in `warnings`."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = ast.unparse(node.func)
        given = node.args[0].elt if isinstance(node.args[0], ast.GeneratorExp) else node.args[0]
        text = text_of(given)
        if text is not None and called in ("warn", "say", "warnings.append", "warnings.extend"):
            yield node.lineno, text


def messages() -> list[tuple[str, str]]:
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        within = file.relative_to(PACKAGE)
        if within.parts[0] in APART:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for line, text in (*raised(node), *warned(node)):
                    found[f"{within}:{line}"] = text
    return sorted(found.items())


MESSAGES = messages()


def test_messages_are_found() -> None:
    assert len(MESSAGES) > 250


@pytest.mark.parametrize(("where", "text"), MESSAGES, ids=[where for where, _ in MESSAGES])
def test_style(where: str, text: str) -> None:
    del where
    # One sentence or more, ended as such, or followed by sentences from elsewhere.
    assert re.search(rf"([.?]|[.?:] {HOLE}|:\n{HOLE})$", text) or text == HOLE, "does not end as a sentence"
    # It stands behind `kgather: `, so it goes on in lower case; a name is written as it is.
    assert not re.match(r"[A-Z]", text) or text.startswith(NAMES), "begins with a capital"
    assert "  " not in text, "has two spaces"
    assert text == text.strip(), "has a space at its end"
    # A place before a colon is followed by a whole clause.
    assert not re.match(rf"{HOLE}: (is|are|has|have|holds|cannot|may|goes|go)\b", text), "has a verb without a subject"
    assert f'"{HOLE}"' not in text, "quotes with double quotes: names stand in single ones"
    assert not re.search(r"\b(please|sorry|oops|invalid|illegal)\b", text, re.IGNORECASE), "does not say what is wrong"
    assert "!" not in text


def options_of_commands() -> dict[str, set[str]]:
    """The options of each command, by its name."""
    group = get_command(app)
    found: dict[str, set[str]] = {}
    below = list(group.commands.items())  # type: ignore[attr-defined]
    while below:
        name, command = below.pop()
        found[name] = {
            option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        below += [(f"{name} {inner}", each) for inner, each in getattr(command, "commands", {}).items()]
    return found


READING = ("publish", "inspect", "sweep", "attack", "metrics")
# Which commands say the messages of a folder or module; of the others every command may.
SAID_BY: dict[str, tuple[str, ...]] = {
    "_loaders/as_written.py": ("verify",),
    "_loaders/user_attributes.py": ("publish",),
    "_loaders/user_rows.py": ("publish",),
    "_loaders/wide.py": ("publish",),
    "_loaders": READING,
    "_publishing/early.py": READING,
    "_publishing": ("publish",),
    "_verify": ("verify",),
    "_report": ("publish",),
}


def texts_with_options() -> list[tuple[str, str]]:
    """Every text of the package, but for the command line's own, that names an option; and where it stands."""
    found = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        within = file.relative_to(PACKAGE)
        if within.parts[0] not in APART | {"_cli"}:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                text = text_of(node) if isinstance(node, ast.Constant | ast.JoinedStr) else None
                found |= {(str(within), option) for option in re.findall(rf"{OPTION.pattern}(?![\w-])", text or "")}
    return sorted(found)


@pytest.mark.parametrize(("where", "option"), texts_with_options())
def test_every_option_that_a_message_names_is_one_of_the_command(where: str, option: str) -> None:
    options = options_of_commands()
    # What dbt is started with is no option of ours.
    if where == "_publishing/pipeline.py":
        return
    place = next((key for key in SAID_BY if where.startswith(key)), None)
    if place is None:
        assert any(option in own for own in options.values())
    for name in SAID_BY.get(place or "", ()):
        told = with_own_options(f"Use {option}.", get_command(app).commands[name])  # type: ignore[attr-defined]
        assert set(OPTION.findall(told)) <= options[name], name
