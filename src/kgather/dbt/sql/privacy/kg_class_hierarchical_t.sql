-- {% macro ddl__kg_class_hierarchical_t() %}
/*
How far each equivalence class is from the whole relation in one sensitive column whose values lie in a hierarchy: (class,
class_size, t), one row for each class. class is its place in the order of all classes. The arguments and t are those of
kg_hierarchical_t_closeness.
*/
create or replace macro kg_class_hierarchical_t(
  p_relation, p_quasi_identifiers, p_sensitive, p_hierarchy, p_for := 'kg_class_hierarchical_t'
) as table
  with kg_h_counts as materialized (
    from query(format(
      'select dense_rank() over (order by {0} asc) as kg_class, kg_value, kg_n from (
         select {1}, cast({2} as varchar) as kg_value, count(*) as kg_n from query_table({3}) group by all)',
      array_to_string(
        list_transform(p_quasi_identifiers, lambda kg_column, kg_place: 'kg_column_' || kg_place), ', '
      ),
      array_to_string(
        list_transform(
          kg_as_seen(p_quasi_identifiers, p_for := p_for), lambda kg_column, kg_place: kg_column || ' as kg_column_' || kg_place
        ),
        ', '
      ),
      kg_quoted([p_sensitive], p_for := p_for)[1],
      '''' || replace(p_relation, '''', '''''') || ''''
    ))
  ),
  kg_h_lines as (
    select unnest(cast(p_hierarchy as varchar[][])) as kg_line
  ),
  kg_h_shape as (
    select max(len(kg_line)) + cast(count(distinct kg_line[-1]) > 1 as integer) as kg_depth
    from kg_h_lines
  ),
  -- For each value its labels from itself to one that all have; a short line stays at its last label.
  kg_h_paths as materialized (
    select
      kg_line[1] as kg_value,
      list_transform(
        range(1, kg_depth + 1),
        lambda kg_at: case when kg_at = kg_depth then '*' else kg_line[least(kg_at, len(kg_line))] end
      ) as kg_path
    from (select distinct kg_line from kg_h_lines), kg_h_shape
    union all
    select
      null,
      list_transform(range(1, kg_depth + 1), lambda kg_at: case when kg_at = kg_depth then '*' end)
    from kg_h_shape
  ),
  kg_h_shares as materialized (
    select
      counts.kg_class,
      sum(counts.kg_n) over (partition by counts.kg_class) as kg_size,
      counts.kg_n / sum(counts.kg_n) over (partition by counts.kg_class) as kg_share,
      counts.kg_n / sum(counts.kg_n) over () as kg_of_all,
      case
        when paths.kg_path is null then error(p_for || ': some values of ' || p_sensitive || ' are not in the hierarchy: add them.')
        else paths.kg_path
      end as kg_path
    from kg_h_counts as counts
    left join kg_h_paths as paths on paths.kg_value is not distinct from counts.kg_value
  ),
  kg_h_levels as (
    select unnest(range(1, greatest(kg_depth, 2))) as kg_height, kg_depth
    from kg_h_shape
  ),
  kg_h_below as materialized (
    select
      shares.kg_class,
      levels.kg_height,
      levels.kg_height / greatest(levels.kg_depth - 1, 1) as kg_cost,
      shares.kg_path[levels.kg_height + 1 :] as kg_above,
      shares.kg_path[levels.kg_height :] as kg_node,
      sum(shares.kg_share) as kg_share,
      sum(shares.kg_of_all) as kg_of_all
    from kg_h_shares as shares, kg_h_levels as levels
    group by all
  ),
  -- What of each node's share in all is nearest by is moved within the node above it, the rest farther up.
  kg_h_nodes as (
    select kg_height, kg_node, sum(kg_of_all) as kg_of_all
    from kg_h_below
    group by kg_height, kg_node
  ),
  kg_h_parents as (
    select kg_height, kg_above, sum(kg_of_all) as kg_of_all
    from kg_h_below
    group by kg_height, kg_above
  ),
  kg_h_extra as (
    select
      below.kg_class,
      below.kg_height,
      below.kg_cost,
      below.kg_above,
      sum(greatest(below.kg_share - nodes.kg_of_all, 0)) as kg_more,
      sum(below.kg_share) as kg_share
    from kg_h_below as below
    join kg_h_nodes as nodes on nodes.kg_height = below.kg_height and nodes.kg_node is not distinct from below.kg_node
    group by all
  ),
  kg_h_classes as (
    select
      extra.kg_class,
      sum(extra.kg_cost * least(extra.kg_more, extra.kg_more - (extra.kg_share - parents.kg_of_all))) as t
    from kg_h_extra as extra
    join kg_h_parents as parents
      on parents.kg_height = extra.kg_height and parents.kg_above is not distinct from extra.kg_above
    group by extra.kg_class
  ),
  kg_h_sizes as (
    select kg_class, cast(any_value(kg_size) as bigint) as class_size
    from kg_h_shares
    group by kg_class
  )
  select kg_class as class, class_size, round(greatest(t, 0), 9) as t
  from kg_h_classes
  join kg_h_sizes using (kg_class);
-- {% endmacro %}
