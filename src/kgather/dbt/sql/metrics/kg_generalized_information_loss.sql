-- {% macro ddl__kg_generalized_information_loss() %}
/*
Generalized information loss GenILoss (Riyana and Natwichai 2018, equation 3): the mean over all users and artifacts of
(high - low) / p_width, where p_width is the width of the domain. Not rated is 0, so the domain of ratings 1 to 5 is 0
to 5 and its width 5. A cell that is not there is blank and loses 0, but counts.
p_cells(group_id, item_id, low, high), p_members(group_id), one row a user, p_artifacts(item_id), one row an artifact:
names of relations. Gives one row (generalized_information_loss), null where there are no users or artifacts.
*/
create or replace macro kg_generalized_information_loss(p_cells, p_members, p_artifacts, p_width) as table
  with kg_domain as (
    select
      case
        when p_width > 0 and isfinite(cast(p_width as double)) then cast(p_width as double)
        else error('kg_generalized_information_loss: p_width is a number above 0, not ' || coalesce(cast(p_width as varchar), 'null'))
      end as width
  ),
  kg_sizes as (
    select group_id, count(*) as class_size
    from query_table(p_members)
    group by group_id
  ),
  kg_spans as (
    select coalesce(sum(sizes.class_size * (cells.high - cells.low)), 0) as span
    from query_table(p_cells) as cells
    join kg_sizes as sizes using (group_id)
  )
  select
    kg_spans.span / (
      kg_domain.width
      * nullif((select coalesce(sum(class_size), 0) from kg_sizes), 0)
      * nullif((select count(*) from query_table(p_artifacts)), 0)
    ) as generalized_information_loss
  from kg_spans, kg_domain;
-- {% endmacro %}
