-- {% macro ddl__kg_popularity_kept() %}
/*
Whether items keep their order: Spearman's rank correlation, over the items that the release shows, of the item's mean
rating (in the release the mean of its cells, each as often as the group has members) and of the item's count (in the
release the members of the groups that show it). Equal values have the mean of their ranks. 1: the order is kept, 0:
nothing of it. A correlation is null where one side is constant: where all groups show all items counts carry nothing.
p_ratings(user_id, item_id, rating), p_groups(user_id, group_id), p_cells(group_id, item_id, rating): names of
relations. Gives one row (means, counts).
*/
create or replace macro kg_popularity_kept(p_ratings, p_groups, p_cells) as table
  with kg_items as (
    select item_id, avg(rating) as mean, count(*) as times
    from query_table(p_ratings)
    where rating is not null
    group by item_id
  ),
  kg_sizes as (
    select group_id, count(*) as group_size
    from query_table(p_groups)
    group by group_id
  ),
  kg_shown as (
    select
      cells.item_id,
      sum(sizes.group_size * cells.rating) / sum(sizes.group_size) as mean,
      sum(sizes.group_size) as times
    from query_table(p_cells) as cells
    join kg_sizes as sizes using (group_id)
    where cells.rating is not null
    group by cells.item_id
  ),
  kg_pairs as (
    -- Rounded, so that means which differ in their last bits only are equal.
    select
      round(items.mean, 6) as mean,
      round(shown.mean, 6) as shown_mean,
      items.times,
      shown.times as shown_times
    from kg_items as items
    join kg_shown as shown using (item_id)
  ),
  kg_ranks as (
    select
      rank() over (order by mean asc) + (count(*) over (partition by mean) - 1) / 2 as mean,
      rank() over (order by shown_mean asc) + (count(*) over (partition by shown_mean) - 1) / 2 as shown_mean,
      rank() over (order by times asc) + (count(*) over (partition by times) - 1) / 2 as times,
      rank() over (order by shown_times asc) + (count(*) over (partition by shown_times) - 1) / 2 as shown_times
    from kg_pairs
  )
  select
    if(min(mean) < max(mean) and min(shown_mean) < max(shown_mean), corr(mean, shown_mean), null) as means,
    if(min(times) < max(times) and min(shown_times) < max(shown_times), corr(times, shown_times), null) as counts
  from kg_ranks;
-- {% endmacro %}
