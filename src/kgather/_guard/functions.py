"""The functions that may run over answers and public tables: each gives the same for the same arguments, and does
nothing else. What DuckDB itself reads in a statement is compared with these lists (`witness_functions`)."""

import json
import re
from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from kgather._guard.parsing import parser
from kgather._guard.refused import Rule, refused

_NUMBERS = """
abs acos acosh add asin asinh atan atan2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees divide even exp
factorial fdiv floor fmod gamma gcd greatest greatest_common_divisor isfinite isinf isnan lcm least
least_common_multiple lgamma ln log log10 log2 mod multiply nextafter pi pow power radians round round_even sign
signbit sin sinh sqrt subtract tan tanh trunc xor
"""
_TEXTS = """
ascii bar base64 bin bit_length char_length character_length chr concat concat_ws contains damerau_levenshtein
editdist3 encode ends_with format format_bytes from_base64 from_hex
hamming hex ilike_escape instr jaccard jaro_similarity jaro_winkler_similarity lcase left left_grapheme length
length_grapheme levenshtein like_escape lower lpad ltrim md5 mismatches nfc_normalize not_ilike_escape not_like_escape
ord overlay parse_dirname parse_dirpath parse_filename parse_path position prefix printf regexp_escape
regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array
regexp_split_to_table repeat replace reverse right right_grapheme rpad rtrim sha1 sha256 split_part starts_with
str_split_regex string_split_regex strip_accents strlen strpos substr substring substring_grapheme suffix to_base
to_base64 to_binary to_hex translate trim ucase unbin unhex unicode upper url_decode url_encode
"""
_DATES = """
age century date date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname
dayofmonth dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era extract generate_series hour
isfinite isodow isoyear julian last_day make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns
microsecond millennium millisecond minute month monthname nanosecond quarter range second strftime strptime
time_bucket to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds to_minutes to_months
to_quarters to_seconds to_weeks to_years try_strptime week weekday weekofyear year yearweek
"""
_OTHERS = "json_array json_extract_string json_object to_json coalesce constant_or_null if ifnull nullif typeof"
_LISTS = """
array_append array_cat array_concat array_contains array_distinct array_extract array_has
array_has_all array_has_any array_intersect array_length array_position array_prepend array_reverse array_reverse_sort
array_select array_slice array_sort array_to_string array_unique array_where array_zip cardinality element_at flatten
len list_aggregate list_any_value list_append list_approx_count_distinct list_avg list_cat list_concat list_contains
list_cosine_similarity list_count list_distance list_distinct list_dot_product list_element list_entropy list_extract
list_first list_grade_up list_has list_has_all list_has_any list_histogram list_indexof list_intersect list_kurtosis
list_last list_mad list_max list_median list_min list_mode list_position list_prepend list_product list_reverse
list_reverse_sort list_select list_skewness list_slice list_sort list_stddev_pop list_stddev_samp list_string_agg
list_sum list_unique list_value list_var_pop list_var_samp list_where list_zip map map_contains
map_contains_entry map_contains_value map_entries map_extract map_extract_value map_from_entries map_keys map_values
split str_split string_split string_to_array struct_concat struct_extract struct_insert struct_keys
struct_pack struct_values unnest
"""
_READ_OPERATORS = "+ - * / // % ^ ** || & | << >> ~ ! ~~ !~~ ~~* !~~* ~~~ @ not ->> @> && array_extract array_slice"
_AGGREGATES = """
any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_min argmax argmin array_agg avg
bit_and bit_or bit_xor bool_and bool_or corr count count_if count_star countif covar_pop covar_samp entropy favg first
fsum geomean geometric_mean group_concat grouping grouping_id
histogram kurtosis kurtosis_pop last list listagg mad max max_by mean median
min min_by mode percentile_cont percentile_disc product quantile quantile_cont quantile_disc regr_avgx regr_avgy
regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem skewness stddev stddev_pop stddev_samp
string_agg sum var_pop var_samp variance weighted_avg kahan_sum arg_max_null arg_min_null
"""
_WINDOWS = """
cume_dist dense_rank first first_value lag last last_value lead nth_value ntile percent_rank rank rank_dense
row_number
"""


def _words(*texts: str) -> frozenset[str]:
    return frozenset(word for text in texts for word in text.split())


SCALARS = _words(_NUMBERS, _TEXTS, _DATES, _LISTS, _OTHERS)
"""Functions of one row."""
AGGREGATES = _words(_AGGREGATES)
"""Aggregates over rows of answers."""
WINDOWS = _words(_WINDOWS)
"""Functions that stand before OVER only."""
FUNCTIONS = SCALARS | AGGREGATES | WINDOWS
_READ = FUNCTIONS | _words(_READ_OPERATORS)

OPERATORS: tuple[type[exp.Expr], ...] = (
    exp.Array,
    exp.BitwiseAnd,
    exp.BitwiseLeftShift,
    exp.BitwiseNot,
    exp.BitwiseOr,
    exp.BitwiseRightShift,
    exp.BitwiseXor,
    exp.Bracket,
    exp.DPipe,
    exp.Escape,
    exp.IgnoreNulls,
    exp.Interval,
    exp.JSONExtractScalar,
    exp.JSONPath,
    exp.JSONPathKey,
    exp.JSONPathRoot,
    exp.Pow,
    exp.PropertyEQ,
    exp.RespectNulls,
    exp.SimilarTo,
    exp.Slice,
    exp.Struct,
    exp.ToMap,
    exp.TryCast,
    exp.WithinGroup,
)
"""Operators and words of the same kind."""


_LENGTHS = {"repeat": 1, "lpad": 1, "rpad": 1, "to_base": 2, "bar": 3}
"""Which argument says how long a text becomes."""
_LONGEST = 1_000
_WIDTH = re.compile(r"[0-9]{4}|\*|\{[^}]*\{")
"""What a format holds that makes a text long, or as long as an argument says."""


def may_be_long(node: exp.Func, name: str) -> bool:
    """Whether a call may make a text of any length of its arguments. DuckDB's limit of memory does not hold within a
    call."""
    given = list(node.iter_expressions())
    if name in ("format", "printf"):
        return not given or not given[0].is_string or _WIDTH.search(str(given[0].this)) is not None
    at = _LENGTHS.get(name)
    if at is None or len(given) <= at:
        return False
    number = given[at].unnest()
    return not isinstance(number, exp.Literal) or not number.is_int or int(str(number.this)[:9]) > _LONGEST


def witness_functions(sql: str) -> None:
    """Have DuckDB's parser say what functions a statement calls. Raises Refused where one is not in the lists: then
    what was written from the tree means another thing than it seemed."""
    (text,) = parser().execute("select json_serialize_sql(?)", [sql]).fetchall()[0]
    for name in _called(json.loads(text)):
        if name.lower() not in _READ:
            raise refused(Rule.NODES, f"The function {name[:60].upper()} is not in the guard's lists")


def _called(part: Any) -> Iterator[str]:
    if isinstance(part, list):
        for one in part:
            yield from _called(one)
    elif isinstance(part, dict):
        if "function_name" in part:
            yield str(part["function_name"])
        for one in part.values():
            yield from _called(one)
