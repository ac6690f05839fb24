-- {% macro ddl__kg_shown_errors() %}
/*
How far what is shown lies from the users' own ratings: for every rating r of a user in a group and the value s that the
group's cell shows, the mean of |r - s|, the root of the mean of (r - s)^2, and the sum of (r - s)^2 (SSE over the rated
cells). Ratings without a cell are counted but do not enter. p_ratings(user_id, item_id, rating), p_groups(user_id,
group_id), p_cells(group_id, item_id, rating): names of relations. Gives one row (ratings, shown, mean_absolute_error,
root_mean_square_error, sum_of_squares), the last three null where nothing is shown.
*/
create or replace macro kg_shown_errors(p_ratings, p_groups, p_cells) as table
  select
    count(*) as ratings,
    count(cells.rating) as shown,
    avg(abs(ratings.rating - cells.rating)) as mean_absolute_error,
    sqrt(avg((ratings.rating - cells.rating) * (ratings.rating - cells.rating))) as root_mean_square_error,
    sum((ratings.rating - cells.rating) * (ratings.rating - cells.rating)) as sum_of_squares
  from query_table(p_ratings) as ratings
  join query_table(p_groups) as members using (user_id)
  left join query_table(p_cells) as cells
    on cells.group_id = members.group_id and cells.item_id = ratings.item_id
  where ratings.rating is not null;
-- {% endmacro %}
