-- {% macro ddl__kg_homogenize() %}
/*
Pure homogenization as a relation to hand on: (group_id, item_id, rating), in an order that tells nothing of the
input. p_single_rater says what becomes of cells with one rater, which show that person's rating: 'keep', as the
papers do, or 'drop'.
*/
create or replace macro kg_homogenize(p_ratings, p_groups, p_single_rater := 'keep') as table
  select group_id, item_id, rating
  from kg_pure(p_ratings, p_groups)
  where
    case p_single_rater
      when 'keep' then true
      when 'drop' then raters > 1
      else error('kg_homogenize: p_single_rater is ''keep'' or ''drop'', not ''' || coalesce(p_single_rater, 'null') || '''')
    end
  order by group_id asc, item_id asc;
-- {% endmacro %}
