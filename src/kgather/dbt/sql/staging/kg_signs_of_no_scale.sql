-- {% macro ddl__kg_signs_of_no_scale() %}
/*
Whether ratings look like something else: times, ids, counts, or a scale with a value that means something else.
p_ratings: name of a relation with a column rating, of finite numbers. Gives the signs that are there, one row each, as
sentences that tell no more of the values than their order of magnitude.
*/
create or replace macro kg_signs_of_no_scale(p_ratings) as table
  with found as (
    select rating, abs(rating) as size from query_table(p_ratings) group by rating
  ),

  facts as (
    select
      count(*) as ratings,
      min(rating) as lowest,
      max(rating) as highest,
      max(size, 2) as largest,
      bool_and(rating = round(rating)) as whole
    from found
  )

  select unnest(list_filter(
    [
      case
        when lowest >= 1e8 and highest < 1e20 then 'they are as large as times in seconds (or parts of it) since 1970'
      end,
      case
        when ratings >= 4 and largest[1] >= 10 * largest[2] and largest[2] > 0
          then 'one value is 10 times any other or more, as one that means "not rated", or a line that is no rating'
      end,
      case
        when whole and ratings > 101
          then 'they are more than 100 different whole numbers, as counts and ids are'
      end,
      case when highest - lowest > 1000 then 'they reach over more than 1,000' end
    ],
    lambda sign: sign is not null
  )) as sign
  from facts;
-- {% endmacro %}
