-- {% macro ddl__kg_digits() %}
/*
The decimals of a released rating: as many as make the last one worth at most a hundredth of the scale's width. p_width
is that width. Two for scales of 1 to less than 10, as from 1 to 5; a negative number rounds before the point.
*/
create or replace macro kg_digits(p_width) as
  cast(case when p_width > 0 and isfinite(p_width) then 2 - floor(log10(p_width)) else 2 end as integer);
-- {% endmacro %}
