-- {% macro ddl__kg_class_t() %}
/*
How far the distribution of sensitive columns in each equivalence class is from that in the whole relation: (class,
sensitive_column, class_size, t), one row for each class and sensitive column. class is its place in the order of all
classes. The arguments and t are those of kg_t_closeness.
*/
create or replace macro kg_class_t(
  p_relation, p_quasi_identifiers, p_sensitive, p_ordered := null, p_for := 'kg_class_t'
) as table
  select class, sensitive_column, class_size, round(t, 9) as t
  from query(
    kg_classed(p_relation, p_quasi_identifiers, p_sensitive, p_for := p_for)
    || ',
    kg_sizes as materialized (
      select kg_class, cast(sum(kg_n) as bigint) as kg_size
      from kg_rows
      group by kg_class
    ),'
    || array_to_string(
      list_transform(
        p_sensitive,
        lambda kg_sensitive, kg_place: format(
          '
        kg_t_counts_{0} as materialized (
          select kg_class, kg_value_{0} as kg_value, cast(sum(kg_n) as bigint) as kg_n
          from kg_rows
          group by kg_class, kg_value_{0}
        ),
        kg_t_values_{0} as (
          select kg_value, cast(sum(kg_n) as bigint) as kg_n
          from kg_t_counts_{0}
          group by kg_value
        ),
        -- The relation''s distribution: up to each rank, its sum, and the sum of those sums.
        kg_t_cumulated_{0} as (
          select
            kg_value,
            row_number() over kg_up as kg_rank,
            kg_n / sum(kg_n) over () as kg_share,
            sum(kg_n) over kg_up / sum(kg_n) over () as kg_cumulated
          from kg_t_values_{0}
          window kg_up as (order by kg_value asc nulls last)
        ),
        kg_t_ranks_{0} as materialized (
          select *, sum(kg_cumulated) over (order by kg_rank asc) as kg_area
          from kg_t_cumulated_{0}
        ),
        kg_t_whole_{0} as materialized (
          select
            count(*) as kg_values,
            max(kg_area) as kg_area,
            coalesce(
              {1},
              regexp_matches(
                any_value(typeof(kg_value)),
                ''^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL|FLOAT|DOUBLE|DATE|TIME|INTERVAL)''
              )
            ) as kg_ordered
          from kg_t_ranks_{0}
        ),
        kg_t_ordered_{0} as (
          select
            counts.kg_class,
            sizes.kg_size,
            ranks.kg_rank,
            ranks.kg_cumulated,
            ranks.kg_area,
            row_number() over kg_up = 1 as kg_first,
            sum(counts.kg_n) over kg_up / sizes.kg_size as kg_own,
            lead(ranks.kg_rank, 1, whole.kg_values + 1) over kg_up as kg_next_rank,
            lead(ranks.kg_area - ranks.kg_cumulated, 1, whole.kg_area) over kg_up as kg_next_area
          from kg_t_counts_{0} as counts
          join kg_sizes as sizes on sizes.kg_class = counts.kg_class
          join kg_t_ranks_{0} as ranks on ranks.kg_value is not distinct from counts.kg_value
          join kg_t_whole_{0} as whole on whole.kg_ordered
          window kg_up as (partition by counts.kg_class order by ranks.kg_rank asc)
        ),
        -- From a value of the class to the next the class''s own sum stands still, and the relation''s crosses it at
        -- most once: the area between the two is known from the ranks at both ends and where they cross.
        kg_t_crossed_{0} as (
          select
            own.*,
            greatest(least(coalesce(ranks.kg_rank, 0), own.kg_next_rank - 1), own.kg_rank - 1) as kg_cross,
            case
              when coalesce(ranks.kg_rank, 0) < own.kg_rank then own.kg_area - own.kg_cumulated
              when ranks.kg_rank > own.kg_next_rank - 1 then own.kg_next_area
              else ranks.kg_area
            end as kg_cross_area
          from kg_t_ordered_{0} as own
          asof left join kg_t_ranks_{0} as ranks on ranks.kg_cumulated <= own.kg_own
        )',
          kg_place,
          coalesce(cast(cast(p_ordered as boolean) as varchar), 'null')
        )
      ),
      ','
    )
    || array_to_string(
      list_transform(
        p_sensitive,
        lambda kg_sensitive, kg_place: format(
          '
        select
          kg_class as class,
          {1} as sensitive_column,
          any_value(kg_size) as class_size,
          sum(
            kg_own * (2 * kg_cross - kg_rank - kg_next_rank + 2)
            - 2 * kg_cross_area
            + kg_area - kg_cumulated
            + kg_next_area
            + case when kg_first then kg_area - kg_cumulated else 0 end
          ) / greatest((select kg_values from kg_t_whole_{0}) - 1, 1) as t
        from kg_t_crossed_{0}
        group by kg_class
        union all
        select
          kg_class,
          {1},
          any_value(kg_size),
          sum(greatest(kg_n / kg_size - kg_share, 0))
        from (
          select counts.*, sizes.kg_size, ranks.kg_share
          from kg_t_counts_{0} as counts
          join kg_sizes as sizes on sizes.kg_class = counts.kg_class
          join kg_t_ranks_{0} as ranks on ranks.kg_value is not distinct from counts.kg_value
          join kg_t_whole_{0} as whole on not whole.kg_ordered
        )
        group by kg_class',
          kg_place,
          '''' || replace(kg_sensitive, '''', '''''') || ''''
        )
      ),
      ' union all '
    )
  );
-- {% endmacro %}
