-- {% macro ddl__kg_risk() %}
/*
What kg_risk_conditions gives, and beside it in every row rows_at_risk: how many rows all these conditions match, at
most all there are. Rows that several of them match count for each. The arguments are those of kg_risk_conditions.
*/
create or replace macro kg_risk(p_relation, p_columns, p_k, p_m, p_null := true, p_for := 'kg_risk') as table
  from query(format(
    'with kg_combinations as materialized (
      select {1}, count(*) as kg_n
      from query_table({0})
      group by {2}
    ),
    -- Numbers instead of values: sets of numbers are told apart in a fraction of the time.
    {5},
    kg_risk_rows as materialized (
      select {6}, cast(kg_n as bigint) as kg_n
      from kg_combinations
      {7}
      where exists (from kg_combinations where kg_n < {3})
    ),
    -- Each set waits for this, so that one is counted after the other. If rows were handed to all of them as they come,
    -- the groups of all sets would be in memory at once, and take twice the time.
    kg_all_rows as materialized (
      select max(kg_n) as kg_most
      from kg_risk_rows
    ),
    kg_conditions as (
      {4}
    )
    select
      column_names,
      matched_rows,
      conditions,
      cast(
        least((select sum(kg_n) from kg_combinations), sum(matched_rows * conditions) over ()) as bigint
      ) as rows_at_risk
    from kg_conditions',
    '''' || replace(p_relation, '''', '''''') || '''',
    -- Names of its own, so that no column is taken for another.
    array_to_string(
      list_transform(kg_as_seen(p_columns, p_for := p_for), lambda kg_column, kg_place: kg_column || ' as kg_column_' || kg_place), ', '
    ),
    array_to_string(kg_as_seen(p_columns, p_for := p_for), ', '),
    case
      when coalesce(p_k, 0) < 1 or p_k <> floor(p_k) then error(p_for || ': p_k is a whole number of at least 1')
      else cast(p_k as bigint)
    end,
    array_to_string(
      list_transform(
        kg_column_sets(p_columns, p_m, p_null, p_for := p_for),
        lambda kg_set: format(
          'select [{0}] as column_names, matched_rows, count(*) as conditions
          from (
            select cast(sum(kg_n) as bigint) as matched_rows
            from kg_risk_rows
            where kg_n <= (select kg_most from kg_all_rows) {1}
            group by {2}
            having sum(kg_n) < {3}
          )
          group by matched_rows',
          array_to_string(
            list_transform(kg_set, lambda kg_place: '''' || replace(p_columns[kg_place], '''', '''''') || ''''), ', '
          ),
          case
            when p_null then ''
            else 'and ' || array_to_string(
              list_transform(kg_set, lambda kg_place: 'kg_code_' || kg_place || ' is not null'), ' and '
            )
          end,
          array_to_string(list_transform(kg_set, lambda kg_place: 'kg_code_' || kg_place), ', '),
          cast(p_k as bigint)
        )
      ),
      ' union all '
    ),
    array_to_string(
      list_transform(
        p_columns,
        lambda kg_column, kg_place: format(
          'kg_codes_{0} as materialized (
            select kg_value, cast(row_number() over () as integer) as kg_code
            from (select distinct kg_column_{0} as kg_value from kg_combinations {1})
          )',
          kg_place,
          case when p_null then '' else 'where kg_column_' || kg_place || ' is not null' end
        )
      ),
      ', '
    ),
    array_to_string(
      list_transform(
        p_columns, lambda kg_column, kg_place: format('kg_codes_{0}.kg_code as kg_code_{0}', kg_place)
      ),
      ', '
    ),
    array_to_string(
      list_transform(
        p_columns,
        lambda kg_column, kg_place: format(
          'left join kg_codes_{0} on kg_codes_{0}.kg_value is not distinct from kg_combinations.kg_column_{0}', kg_place
        )
      ),
      ' '
    )
  ));
-- {% endmacro %}
