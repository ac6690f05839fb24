"""Splitting a line into its fields, in SQL for all lines and in Python for the first few.

Quotes are read as in RFC 4180: a field that begins with a double quote ends at the next single one, a doubled
one stands for itself, and separators in between are text. A quote elsewhere in a field is a plain character.
"""

import re

from kgather._sql_text import literal

# Takes the place of a separator of several characters while a line with quotes is split. It is a
# "noncharacter" of Unicode, which texts do not hold.
_STAND_IN = "\U0010ffff"


def field_pattern(delimiter: str) -> str:
    """A regular expression (for RE2 and Python alike) of one separator and the field after it.

    Args:
        delimiter: One character.
    """
    separator = re.escape(delimiter)
    inside = "\\" + delimiter if delimiter in "\\]^-[" else delimiter
    spaces = "" if delimiter == " " else " *"
    quoted = f'"(?:[^"]|"")*"{spaces}'
    plain = f'[^" {inside}\\n][^{inside}\\n]*' if spaces else f'[^"{inside}\\n][^{inside}\\n]*'
    return f"{separator}{spaces}(?:{quoted}|{plain})?"


def open_pattern(delimiter: str) -> str:
    """A regular expression of a line, with a separator before it, whose last field has no closing quote."""
    single = _single(delimiter)
    spaces = "" if single == " " else " *"
    return f'^(?:{field_pattern(single)})*{re.escape(single)}{spaces}"(?:[^"]|"")*$'


def fields_sql(text: str, delimiter: str) -> str:
    """SQL: the list of a line's fields; null when its quotes are not well placed.

    Args:
        text: The SQL expression of the line.
        delimiter: The separator.
    """
    # Most lines with quotes have them around every field and nowhere else, which needs no pattern.
    between = literal(f'"{delimiter}"')
    inner = f"{text}[2:-2]"
    all_quoted = (
        f"length({text}) > 1 and starts_with({text}, '\"') and ends_with({text}, '\"') "
        f"and not contains(replace({inner}, {between}, ''), '\"')"
    )
    return (
        f"case when not contains({text}, '\"') then string_split({text}, {literal(delimiter)}) "
        f"when {all_quoted} then string_split({inner}, {between}) "
        f"else {_quoted_sql(text, delimiter)} end"
    )


def written_sql(text: str, delimiter: str) -> str:
    """SQL: the list of a line's fields as they are written, with their quotes; null when these are not well placed.

    Args:
        text: The SQL expression of the line.
        delimiter: The separator.
    """
    each = "substr(each, 2)"
    return (
        f"case when not contains({text}, '\"') then string_split({text}, {literal(delimiter)}) "
        f"else {_matched_sql(text, delimiter, each)} end"
    )


def is_open_sql(text: str, delimiter: str) -> str:
    """SQL: whether a line ends inside a quoted field."""
    return f"regexp_matches({_prepared_sql(text, delimiter)}, {literal(open_pattern(delimiter))})"


def split(text: str, delimiter: str) -> list[str] | None:
    """The fields of a line as `fields_sql` gives them, for a few lines in Python."""
    if '"' not in text:
        return text.split(delimiter)
    single = _single(delimiter)
    prepared = single + text.replace(delimiter, single)
    matches = re.findall(field_pattern(single), prepared)
    if "".join(matches) != prepared:
        return None
    return [_unquoted(match[1:]).replace(single, delimiter) for match in matches]


def is_open(text: str, delimiter: str) -> bool:
    """Whether a line ends inside a quoted field, as `is_open_sql` tells it."""
    single = _single(delimiter)
    return re.search(open_pattern(delimiter), single + text.replace(delimiter, single)) is not None


def _single(delimiter: str) -> str:
    return delimiter if len(delimiter) == 1 else _STAND_IN


def _prepared_sql(text: str, delimiter: str) -> str:
    single = _single(delimiter)
    if single == delimiter:
        return f"{literal(delimiter)} || {text}"
    return f"{literal(single)} || replace({text}, {literal(delimiter)}, {literal(single)})"


def _quoted_sql(text: str, delimiter: str) -> str:
    body = "trim(substr(each, 2), ' ')"
    field = f"case when starts_with({body}, '\"') then replace({body}[2:-2], '\"\"', '\"') else substr(each, 2) end"
    return _matched_sql(text, delimiter, field)


def _matched_sql(text: str, delimiter: str, field: str) -> str:
    """SQL: `field` of each part of a line, `each`, that is a separator and the field after it."""
    single = _single(delimiter)
    if single != delimiter:
        field = f"replace({field}, {literal(single)}, {literal(delimiter)})"
    fields = f"list_transform(matches, lambda each: {field})"
    # A list of one element and a lambda give the matches a name, so that they are found once only.
    prepared = f"({_prepared_sql(text, delimiter)})"
    found = f"[regexp_extract_all({prepared}, {literal(field_pattern(single))})]"
    whole = f"case when array_to_string(matches, '') = {prepared} then {fields} end"
    return f"list_transform({found}, lambda matches: {whole})[1]"


def _unquoted(field: str) -> str:
    body = field.strip(" ")
    return body[1:-1].replace('""', '"') if body.startswith('"') else field
