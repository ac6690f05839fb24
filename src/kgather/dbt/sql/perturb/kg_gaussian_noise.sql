-- {% macro ddl__kg_gaussian_noise() %}
/*
Gaussian noise addition, a baseline without k-anonymity: each rating plus a normal draw of p_sigma standard deviations
of its item, clipped to p_min and p_max (null: no bound). That is what standardising an item, adding N(0, p_sigma) and
undoing it comes to. p_cells(user_id, item_id, rating): name of a relation; cells without a rating are left out. Gives
(user_id, item_id, rating), with new draws each time it is read.
*/
create or replace macro kg_gaussian_noise(p_cells, p_sigma, p_min, p_max) as table
  with kg_noise as (
    select
      case
        when p_min > p_max then error('p_min is above p_max')
        when isfinite(cast(p_sigma as double)) and p_sigma >= 0 then cast(p_sigma as double)
        else error('p_sigma is a number of at least 0')
      end as sigma
  ),
  kg_spreads as (
    select item_id, stddev_pop(rating) as spread
    from query_table(p_cells)
    where rating is not null
    group by item_id
  )
  select
    cells.user_id,
    cells.item_id,
    least(
      greatest(
        cast(cells.rating as double)
        -- Box-Muller; random() is below 1, so that the logarithm is one of a number above 0.
        + noise.sigma * spreads.spread * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()),
        cast(p_min as double)
      ),
      cast(p_max as double)
    ) as rating
  from query_table(p_cells) as cells
  join kg_spreads as spreads using (item_id)
  cross join kg_noise as noise
  where cells.rating is not null;
-- {% endmacro %}
