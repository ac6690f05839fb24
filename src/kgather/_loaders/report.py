"""What was read, for people and for the run's record."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

IdType = Literal["BIGINT", "VARCHAR"]


class InputReport(BaseModel):
    """One input: what it was taken for and how many rows it gave."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="the input as it was given")
    source: str = Field(description="its name in the column `source`")
    format: str
    compression: str | None = None
    encoding: str | None = Field(default=None, description="of text formats")
    delimiter: str | None = Field(default=None, description="of text formats")
    header: bool | None = Field(default=None, description="of text formats")
    columns: dict[str, str | None] = Field(description="role (user, item, rating, time) to column")
    rows: int
    problem_rows: int


class UserAttributesReport(BaseModel):
    """A table of users: what it was taken for, and which users only it or only the ratings have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="the input as it was given")
    format: str
    compression: str | None = None
    encoding: str | None = Field(default=None, description="of text formats")
    delimiter: str | None = Field(default=None, description="of text formats")
    header: bool | None = Field(default=None, description="of text formats")
    user_column: str | None = Field(description="null: users are the numbers of the rows")
    columns: dict[str, str] = Field(description="the other columns, with their types")
    users: int
    users_without_ratings: int = 0
    raters_without_attributes: int = 0
    warnings: list[str]


class CatalogueReport(BaseModel):
    """The list of all items: how many, the type of the ids, and how many items of the ratings it does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="the input as it was given")
    items: int
    item_id_type: IdType
    unlisted: int


class LoadReport(BaseModel):
    """All inputs of one load, in the order given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    inputs: list[InputReport]
    user_id_type: IdType
    item_id_type: IdType
    warnings: list[str]
    merged_users: int = Field(default=0, description="user ids that were written in several ways, and are one each")
    merged_items: int = Field(default=0, description="item ids likewise")
    artifact_columns: tuple[str, ...] = Field(default=(), description="of an artifact table: its items")
    users_without_artifacts: int = Field(default=0, description="of an artifact table: users with blanks only")
    user_attributes: UserAttributesReport | None = Field(default=None, description="of an artifact table")
    catalogue: CatalogueReport | None = Field(default=None, description="the list of all items")

    @property
    def rows(self) -> int:
        """Rows read from all inputs, those with a problem included."""
        return sum(each.rows for each in self.inputs)

    @property
    def problem_rows(self) -> int:
        """Rows with a problem in all inputs."""
        return sum(each.problem_rows for each in self.inputs)
