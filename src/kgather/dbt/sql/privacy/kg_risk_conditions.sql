-- {% macro ddl__kg_risk_conditions() %}
/*
Conditions that match few rows: "column = value and ..." (or "is null") over sets of up to p_m of p_columns, a list of
column names, that match 1 to p_k - 1 rows. p_relation: name of a relation. Gives (column_names, matched_rows,
conditions): how many conditions on those columns match so many rows, never their values.

With p_null true, null can be asked for, and sets of exactly p_m columns (all, where there are fewer) are looked at: a
condition on fewer columns matches all rows of some conditions on more, which are as few at most. With p_null false,
sets of 1 to p_m columns are. Where every combination of all columns has p_k rows, nothing else is looked at.
*/
create or replace macro kg_risk_conditions(p_relation, p_columns, p_k, p_m, p_null := true) as table
  select column_names, matched_rows, conditions
  from query(format(
    'with kg_risk_combinations as materialized (
      select {1}, count(*) as kg_n
      from query_table({0})
      group by {2}
    ),
    kg_risk_rows as materialized (
      select *
      from kg_risk_combinations
      where exists (from kg_risk_combinations where kg_n < {3})
    )
    {4}',
    '''' || replace(p_relation, '''', '''''') || '''',
    -- Names of its own, so that no column is taken for another.
    array_to_string(
      list_transform(kg_as_seen(p_columns), lambda kg_column, kg_place: kg_column || ' as kg_column_' || kg_place), ', '
    ),
    array_to_string(kg_as_seen(p_columns), ', '),
    case
      when coalesce(p_k, 0) < 1 or p_k <> floor(p_k) then error('p_k is a whole number of at least 1')
      else cast(p_k as bigint)
    end,
    array_to_string(
      list_transform(
        case
          when coalesce(p_m, 0) < 1 or p_m <> floor(p_m) then error('p_m is a whole number of at least 1')
          when p_null is null then error('p_null is true or false')
          -- How many sets of columns there are.
          when list_sum(list_transform(
            range(
              case when p_null then least(cast(p_m as bigint), len(p_columns)) else 1 end,
              least(cast(p_m as bigint), len(p_columns)) + 1
            ),
            lambda kg_size:
              exp(lgamma(len(p_columns) + 1) - lgamma(kg_size + 1) - lgamma(len(p_columns) - kg_size + 1))
          )) > 5000.5
            then error('there are more than 5,000 sets of p_m columns: choose a smaller p_m or fewer columns')
          else list_filter(
            list_reduce(
              list_transform(range(1, len(p_columns) + 1), lambda kg_place: [[kg_place]]),
              -- Sets of places, by the place of each column in turn: as they are, and with it.
              lambda kg_sets, kg_next, kg_step: list_filter(
                kg_sets || list_transform(kg_sets, lambda kg_set: kg_set || kg_next[1]),
                -- With p_null only those that can still get p_m columns.
                lambda kg_set: len(kg_set) <= p_m
                  and (not p_null or len(kg_set) >= least(p_m, len(p_columns)) - len(p_columns) + kg_next[1][1])
              ),
              cast([[]] as bigint[][])
            ),
            lambda kg_set: len(kg_set) > 0
          )
        end,
        lambda kg_set: format(
          'select [{0}] as column_names, matched_rows, count(*) as conditions
          from (
            select cast(sum(kg_n) as bigint) as matched_rows
            from kg_risk_rows
            {1}
            group by {2}
            having sum(kg_n) < {3}
          )
          group by matched_rows',
          array_to_string(
            list_transform(kg_set, lambda kg_place: '''' || replace(p_columns[kg_place], '''', '''''') || ''''), ', '
          ),
          case
            when p_null then ''
            else 'where ' || array_to_string(
              list_transform(kg_set, lambda kg_place: 'kg_column_' || kg_place || ' is not null'), ' and '
            )
          end,
          array_to_string(list_transform(kg_set, lambda kg_place: 'kg_column_' || kg_place), ', '),
          cast(p_k as bigint)
        )
      ),
      ' union all '
    )
  ))
  order by all;
-- {% endmacro %}
