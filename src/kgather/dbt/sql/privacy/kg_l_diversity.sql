-- {% macro ddl__kg_l_diversity() %}
/*
How diverse sensitive columns are in each equivalence class: the largest l for which a class is l-diverse. p_kind is
'distinct' (how many values there are), 'entropy' (exp of their entropy) or 'recursive' (the largest l with
r_1 < p_c * (r_l + ... + r_m), r_1 >= r_2 >= ... being how often the values occur; 0 where there is none).
p_relation: name of a relation, p_quasi_identifiers and p_sensitive: lists of column names, null a value like any other.
Gives (sensitive_column, class_size, l, classes): how many classes of a size have that l, rounded to 9 digits.
*/
create or replace macro kg_l_diversity(
  p_relation, p_quasi_identifiers, p_sensitive, p_kind := 'distinct', p_c := null
) as table
  with kg_classes as (
    select
      row_number() over () as kg_class,
      sensitive_column,
      frequencies,
      cast(list_sum(frequencies) as bigint) as class_size,
      case
        when p_kind is null or p_kind not in ('distinct', 'entropy', 'recursive')
          then error('p_kind is distinct, entropy or recursive')
        when (p_kind = 'recursive') <> (p_c is not null) then error('p_c goes with p_kind recursive, which needs it')
        when p_c is not null and not (p_c > 0 and isfinite(cast(p_c as double))) then error('p_c is a number above 0')
        else p_kind
      end as kg_kind
    from kg_frequencies(p_relation, p_quasi_identifiers, p_sensitive)
  ),
  -- r_l + ... + r_m for every l at once: from the rarest value up.
  kg_tails as (
    select
      kg_class,
      max(kg_times) over kg_all as kg_most,
      sum(kg_times) over (kg_all order by kg_times rows unbounded preceding) as kg_tail
    from (
      select kg_class, unnest(frequencies) as kg_times
      from kg_classes
      where kg_kind = 'recursive'
    )
    window kg_all as (partition by kg_class)
  ),
  kg_recursive as (
    -- Tails shrink as l grows, so the l that hold are those up to the largest.
    select kg_class, count(*) filter (where kg_most < round(cast(p_c as double) * kg_tail, 9)) as kg_l
    from kg_tails
    group by kg_class
  ),
  kg_measured as (
    select
      sensitive_column,
      class_size,
      case kg_kind
        when 'distinct' then cast(len(frequencies) as double)
        when 'entropy'
          then round(
            exp(
              ln(class_size)
              - list_sum(list_transform(frequencies, lambda kg_times: kg_times * ln(kg_times))) / class_size
            ),
            9
          )
        else cast(kg_l as double)
      end as l
    from kg_classes
    left join kg_recursive using (kg_class)
  )
  select sensitive_column, class_size, l, count(*) as classes
  from kg_measured
  group by all
  order by all;
-- {% endmacro %}
