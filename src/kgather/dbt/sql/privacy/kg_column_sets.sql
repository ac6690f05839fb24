-- {% macro ddl__kg_column_sets() %}
/*
The sets of columns that kg_risk_conditions looks at, as lists of places in p_columns. With p_null true those of exactly
p_m columns, or of all where there are fewer; with p_null false those of 1 to p_m columns.
*/
create or replace macro kg_column_sets(p_columns, p_m, p_null, p_for := 'kg_column_sets') as
  case
    when coalesce(p_m, 0) < 1 or p_m <> floor(p_m) then error(p_for || ': p_m is a whole number of at least 1')
    when p_null is null then error(p_for || ': p_null is true or false')
    -- How many sets of columns there are.
    when list_sum(list_transform(
      range(
        case when p_null then least(cast(p_m as bigint), len(p_columns)) else 1 end,
        least(cast(p_m as bigint), len(p_columns)) + 1
      ),
      lambda kg_size:
        exp(lgamma(len(p_columns) + 1) - lgamma(kg_size + 1) - lgamma(len(p_columns) - kg_size + 1))
    )) > 5000.5
      then error(p_for || ': there are more than 5,000 sets of p_m columns: choose a smaller p_m or fewer columns')
    else list_filter(
      list_reduce(
        list_transform(range(1, len(p_columns) + 1), lambda kg_place: [[kg_place]]),
        -- Sets of places, by the place of each column in turn: as they are, and with it.
        lambda kg_sets, kg_next, kg_step: list_filter(
          kg_sets || list_transform(kg_sets, lambda kg_set: kg_set || kg_next[1]),
          -- With p_null only those that can still get p_m columns.
          lambda kg_set: len(kg_set) <= p_m
            and (not p_null or len(kg_set) >= least(p_m, len(p_columns)) - len(p_columns) + kg_next[1][1])
        ),
        cast([[]] as bigint[][])
      ),
      lambda kg_set: len(kg_set) > 0
    )
  end;
-- {% endmacro %}
