"""Messages name options, and commands have not all the same: a message is told with those of the command that runs."""

import re
from collections.abc import Iterator
from typing import Any

from kgather._settings.publication import PublishSettings

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


def with_own_options(told: str, command: Any) -> str:
    """A message with the options of a command: `--scale` is `--set scale=VALUE` where there is only `--set`.

    told: what the error says. command: the command of click that runs. An option of a setting that a command can say
    in no way is told by the setting's name.
    """
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    settings = dict(_options_of_settings())

    def replaced(found: re.Match[str]) -> str:
        option = found[0]
        if option in own or option not in settings:
            return option
        return f"--set {settings[option]}=VALUE" if "--set" in own else settings[option]

    return OPTION.sub(replaced, told)


def _options_of_settings() -> Iterator[tuple[str, str]]:
    for name, field in PublishSettings.model_fields.items():
        option = dict(field.json_schema_extra or {}).get("option")  # type: ignore[arg-type]
        if option:
            yield str(option).partition("/")[0], name
