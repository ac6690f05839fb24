-- {% macro ddl__kg_signs_of_people() %}
/*
Whether what is called items looks like people: then users and items are likely the wrong way round, and a release would
publish people's ids. p_users: name of a relation of (user_id, rated), one row a user with how many items they rated.
p_items: likewise (item_id, raters). Gives the signs that are there, as (sign, measured): a sentence that quotes no id,
and the number that is meant.

The thresholds are those at which public ratings (MovieLens, FilmTrust, Jester, Netflix) show no sign as they are, and
show one when users and items change places. A sign is a reason to ask, and no proof.
*/
create or replace macro kg_signs_of_people(p_users, p_items) as table
  with users as (
    select cast(user_id as varchar) as id, rated as ratings from query_table(p_users)
  ),

  items as (
    select cast(item_id as varchar) as id, raters as ratings from query_table(p_items)
  ),

  user_ids as (
    select
      count(*) as ids,
      count(*) filter (ratings = 1) as once,
      quantile_cont(ratings, 0.99) as many,
      count(*) filter (
        regexp_full_match(lower(id), '(item|movie|film|product|book|track|song|album|tt)[_:#-]?[0-9]+')
      ) as things,
      count(*) filter (regexp_full_match(id, 'B0[0-9A-Z]{8}')) as products
    from users
  ),

  item_ids as (
    select
      count(*) as ids,
      count(*) filter (ratings = 1) as once,
      min(ratings) as fewest,
      quantile_cont(ratings, 0.99) as many,
      count(*) filter (regexp_full_match(id, '[^@\s]+@[^@\s]+[.][A-Za-z]{2,}')) as addresses,
      count(*) filter (
        regexp_full_match(
          lower(id), '(user|usr|customer|reviewer|member|person|patient|account|client|subject|uid)[_:#-]?[0-9]+'
        )
      ) as people,
      count(*) filter (regexp_full_match(id, 'A[0-9A-Z]{11,14}')) as reviewers,
      count(*) filter (regexp_full_match(id, '7656119[0-9]{10}')) as players
    from items
  ),

  in_both as (
    -- Small numbers are ids of anything.
    select count(*) as ids
    from items
    semi join users using (id)
    where not regexp_full_match(id, '[0-9]{1,9}')
  ),

  signs as (
    select 'item ids are e-mail addresses' as sign, item_ids.addresses as measured, 1 as at_least
    from item_ids

    union all
    select 'item ids begin with a word for people, as user_17', item_ids.people, item_ids.ids / 10
    from item_ids

    union all
    select 'item ids have the form that Amazon gives its reviewers', item_ids.reviewers, item_ids.ids / 10
    from item_ids

    union all
    select 'item ids have the form that Steam gives its players', item_ids.players, item_ids.ids / 10
    from item_ids

    union all
    select 'user ids begin with a word for things, as movie_17', user_ids.things, user_ids.ids / 10
    from user_ids

    union all
    select 'user ids have the form that Amazon gives its products', user_ids.products, user_ids.ids / 10
    from user_ids

    union all
    select 'item ids are user ids as well', in_both.ids, greatest(2, item_ids.ids / 10)
    from in_both
    cross join item_ids

    union all
    -- There are many more people than things, and many people rate once.
    select 'items were rated by one user each, and there are many more items than users', item_ids.once, item_ids.ids / 2
    from item_ids
    cross join user_ids
    where item_ids.ids >= 1.5 * user_ids.ids

    union all
    -- People are asked for a least number of ratings, things are not.
    select 'users rated one item only, while every item has 10 ratings or more', user_ids.once, user_ids.ids / 50
    from item_ids
    cross join user_ids
    where item_ids.fewest >= 10 and item_ids.ids >= 50 and user_ids.ids <= 20 * item_ids.ids

    union all
    -- A film may be rated by half of all people; nobody rates half of all films.
    select
      'times as large a share of all items has each of the most active users as each of the best known items has of users',
      (user_ids.many / item_ids.ids) / (item_ids.many / user_ids.ids),
      3
    from item_ids
    cross join user_ids
    where item_ids.ids >= 50 and user_ids.ids >= 50
  )

  select sign, cast(round(measured) as bigint) as measured
  from signs
  where measured >= greatest(at_least, 1)
  order by sign asc;
-- {% endmacro %}
