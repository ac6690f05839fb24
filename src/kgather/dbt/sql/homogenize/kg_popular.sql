-- {% macro ddl__kg_popular() %}
/*
The p_popular items with the most raters in each group, the counts with noise: (group_id, item_id). Every item has a
count in every group, be it 0; to each is added a draw of the Laplace distribution of scale p_noise, in raters, and one
between 0 and 1, so that equal counts are in random order. One rating moves one count by 1, and so changes the odds of
any choice of items by a factor of at most exp(1 / p_noise); p_noise = 0 leaves the true order. New draws each time it
is read.
p_ratings(user_id, item_id, rating), p_groups(user_id, group_id), p_items(item_id): names of relations.
*/
create or replace macro kg_popular(p_ratings, p_groups, p_items, p_popular, p_noise) as table
  with kg_asked as (
    select
      case
        when isfinite(cast(p_noise as double)) and p_noise >= 0 then cast(p_noise as double)
        else error('kg_popular: p_noise is a number of at least 0')
      end as noise,
      case
        when p_popular between 1 and 999999 then cast(p_popular as bigint)
        else error('kg_popular: p_popular is a whole number from 1 to 999999')
      end as popular
  ),
  kg_raters as (
    select members.group_id, ratings.item_id, count(distinct ratings.user_id) as raters
    from query_table(p_ratings) as ratings
    join query_table(p_groups) as members on ratings.user_id = members.user_id
    where ratings.rating is not null
    group by members.group_id, ratings.item_id
  ),
  kg_counts as (
    select
      groups.group_id,
      items.item_id,
      asked.popular,
      -- The difference of two exponential draws is a Laplace draw; random() is below 1.
      coalesce(raters.raters, 0) + asked.noise * ln((1 - random()) / (1 - random())) + random() as raters
    from (select distinct group_id from query_table(p_groups)) as groups
    cross join query_table(p_items) as items
    cross join kg_asked as asked
    left join kg_raters as raters on groups.group_id = raters.group_id and items.item_id = raters.item_id
  )
  select group_id, unnest(max_by(item_id, raters, popular)) as item_id
  from kg_counts
  group by group_id;
-- {% endmacro %}
