-- {% macro ddl__kg_group_vectors() %}
/*
The mean preference of each group: (group_id, level, factor).
p_preferences(user_id, level, preference), p_groups(user_id, group_id): names of relations.
*/
create or replace macro kg_group_vectors(p_preferences, p_groups) as table
  with coordinates as (
    select
      members.group_id,
      preferences.level,
      unnest(preferences.preference) as coordinate,
      generate_subscripts(preferences.preference, 1) as dimension
    from query_table(p_preferences) as preferences
    join query_table(p_groups) as members using (user_id)
  ),
  means as (
    select group_id, dimension, avg(level) as level, avg(coordinate) as coordinate
    from coordinates
    group by group_id, dimension
  )
  select
    group_id,
    cast(any_value(level) as float) as level,
    cast(list(coordinate order by dimension asc) as float[]) as factor
  from means
  group by group_id;
-- {% endmacro %}
