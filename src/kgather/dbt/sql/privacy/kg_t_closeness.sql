-- {% macro ddl__kg_t_closeness() %}
/*
How far the distribution of sensitive columns in each equivalence class is from that in the whole relation: the least
t for which a class is t-close. The distance is the earth mover's. p_ordered true: values lie on a line, in the order of
their ranks, those next to each other being 1 / (m - 1) apart (m: how many distinct values there are); false: all values
are 1 apart, and the distance is the total variation; null: true for columns of numbers, dates and times, false for
others. p_relation: name of a relation, p_quasi_identifiers and p_sensitive: lists of column names. Null is a value like
any other, the last in the order. Gives (sensitive_column, class_size, t, classes): how many classes of a size are at
that distance, 0 to 1, rounded to 9 digits.
*/
create or replace macro kg_t_closeness(p_relation, p_quasi_identifiers, p_sensitive, p_ordered := null) as table
  select sensitive_column, class_size, round(t, 9) as t, count(*) as classes
  from query(array_to_string(
    list_transform(
      kg_quoted(p_sensitive),
      lambda kg_sensitive, kg_position: format(
        '(
        with kg_t_counts as materialized (
          select {1}, {2} as kg_value, count(*) as kg_n
          from query_table({3})
          group by {4}, {2}
        ),
        kg_t_values as (
          select kg_value, sum(kg_n) as kg_n
          from kg_t_counts
          group by kg_value
        ),
        -- The relation''s distribution: up to each rank, its sum, and the sum of those sums.
        kg_t_cumulated as (
          select
            kg_value,
            row_number() over kg_up as kg_rank,
            kg_n / sum(kg_n) over () as kg_share,
            sum(kg_n) over kg_up / sum(kg_n) over () as kg_cumulated
          from kg_t_values
          window kg_up as (order by kg_value nulls last)
        ),
        kg_t_ranks as materialized (
          select *, sum(kg_cumulated) over (order by kg_rank) as kg_area
          from kg_t_cumulated
        ),
        kg_t_whole as materialized (
          select
            count(*) as kg_values,
            max(kg_area) as kg_area,
            coalesce(
              {5},
              regexp_matches(
                any_value(typeof(kg_value)),
                ''^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL|FLOAT|DOUBLE|DATE|TIME|INTERVAL)''
              )
            ) as kg_ordered
          from kg_t_ranks
        ),
        kg_t_ordered as (
          select
            {6},
            counts.kg_n,
            ranks.kg_rank,
            ranks.kg_cumulated,
            ranks.kg_area,
            row_number() over kg_up = 1 as kg_first,
            sum(counts.kg_n) over kg_class as kg_size,
            sum(counts.kg_n) over kg_up / sum(counts.kg_n) over kg_class as kg_own,
            lead(ranks.kg_rank, 1, whole.kg_values + 1) over kg_up as kg_next_rank,
            lead(ranks.kg_area - ranks.kg_cumulated, 1, whole.kg_area) over kg_up as kg_next_area
          from kg_t_counts as counts
          join kg_t_ranks as ranks on ranks.kg_value is not distinct from counts.kg_value
          join kg_t_whole as whole on whole.kg_ordered
          window
            kg_class as (partition by {6}),
            kg_up as (partition by {6} order by ranks.kg_rank)
        ),
        -- From a value of the class to the next the class''s own sum stands still, and the relation''s crosses it at
        -- most once: the area between the two is known from the ranks at both ends and where they cross.
        kg_t_crossed as (
          select
            own.*,
            greatest(least(coalesce(ranks.kg_rank, 0), own.kg_next_rank - 1), own.kg_rank - 1) as kg_cross,
            case
              when coalesce(ranks.kg_rank, 0) < own.kg_rank then own.kg_area - own.kg_cumulated
              when ranks.kg_rank > own.kg_next_rank - 1 then own.kg_next_area
              else ranks.kg_area
            end as kg_cross_area
          from kg_t_ordered as own
          asof left join kg_t_ranks as ranks on ranks.kg_cumulated <= own.kg_own
        )
        select
          {0} as sensitive_column,
          cast(any_value(kg_size) as bigint) as class_size,
          sum(
            kg_own * (2 * kg_cross - kg_rank - kg_next_rank + 2)
            - 2 * kg_cross_area
            + kg_area - kg_cumulated
            + kg_next_area
            + case when kg_first then kg_area - kg_cumulated else 0 end
          ) / greatest((select kg_values from kg_t_whole) - 1, 1) as t
        from kg_t_crossed
        group by {6}
        union all
        select
          {0},
          cast(sum(kg_n) as bigint),
          sum(greatest(kg_n / kg_size - kg_share, 0))
        from (
          select counts.*, sum(counts.kg_n) over (partition by {6}) as kg_size, ranks.kg_share
          from kg_t_counts as counts
          join kg_t_ranks as ranks on ranks.kg_value is not distinct from counts.kg_value
          join kg_t_whole as whole on not whole.kg_ordered
        )
        group by {6}
        )',
        '''' || replace(p_sensitive[kg_position], '''', '''''') || '''',
        -- Names of its own, so that no column is taken for another.
        array_to_string(
          list_transform(
            kg_as_seen(p_quasi_identifiers), lambda kg_column, kg_place: kg_column || ' as kg_column_' || kg_place
          ),
          ', '
        ),
        kg_sensitive,
        '''' || replace(p_relation, '''', '''''') || '''',
        array_to_string(kg_as_seen(p_quasi_identifiers), ', '),
        coalesce(cast(cast(p_ordered as boolean) as varchar), 'null'),
        array_to_string(
          list_transform(p_quasi_identifiers, lambda kg_column, kg_place: 'kg_column_' || kg_place), ', '
        )
      )
    ),
    ' union all '
  ))
  group by all
  order by all;
-- {% endmacro %}
