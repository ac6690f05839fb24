-- {% macro ddl__kg_class_l() %}
/*
How diverse sensitive columns are in each equivalence class: (class, sensitive_column, class_size, l), one row for each
class and sensitive column. class is its place in the order of all classes. The arguments and l are those of
kg_l_diversity.
*/
create or replace macro kg_class_l(
  p_relation, p_quasi_identifiers, p_sensitive, p_kind := 'distinct', p_c := null, p_for := 'kg_class_l'
) as table
  with kg_classes as materialized (
    select
      class,
      sensitive_column,
      frequencies,
      cast(list_sum(frequencies) as bigint) as class_size,
      case
        when p_kind is null or p_kind not in ('distinct', 'entropy', 'recursive')
          then error(p_for || ': p_kind is distinct, entropy or recursive')
        when (p_kind = 'recursive') <> (p_c is not null) then error(p_for || ': p_c goes with p_kind recursive, which needs it')
        when p_c is not null and not (p_c > 0 and isfinite(cast(p_c as double))) then error(p_for || ': p_c is a number above 0')
        else p_kind
      end as kg_kind
    from kg_class_frequencies(p_relation, p_quasi_identifiers, p_sensitive, p_for := p_for)
  ),
  -- Values that occur equally often are taken together: there are far fewer such runs than values.
  kg_runs as (
    select class, sensitive_column, kg_times, cast(count(*) as bigint) as kg_values
    from (
      select class, sensitive_column, cast(unnest(frequencies) as bigint) as kg_times
      from kg_classes
      where kg_kind = 'recursive'
    )
    group by class, sensitive_column, kg_times
  ),
  -- r_l + ... + r_m of what is rarer than a run: from the rarest value up.
  kg_tails as (
    select
      class,
      sensitive_column,
      kg_times,
      kg_values,
      max(kg_times) over kg_all as kg_most,
      sum(kg_times * kg_values) over (kg_all order by kg_times asc rows unbounded preceding) - kg_times * kg_values as kg_rarer
    from kg_runs
    window kg_all as (partition by class, sensitive_column)
  ),
  -- The first value of a run from which on the condition holds: near where it would without rounding.
  kg_near as (
    select
      *,
      cast(
        least(greatest(floor(((kg_most + 5e-10) / cast(p_c as double) - kg_rarer) / kg_times), 0), kg_values) as bigint
      ) as kg_first
    from kg_tails
  ),
  kg_recursive as (
    -- Tails shrink as l grows, so the l that hold are those up to the largest.
    select
      class,
      sensitive_column,
      sum(
        list_sum(list_transform(
          [kg_first - 1, kg_first, kg_first + 1, kg_first + 2],
          lambda kg_nth: case
            when kg_nth >= 1 and kg_nth <= kg_values
              and kg_most < round(cast(p_c as double) * (kg_rarer + kg_nth * kg_times), 9) then 1
            else 0
          end
        ))
        + greatest(kg_values - kg_first - 2, 0)
      ) as kg_l
    from kg_near
    group by class, sensitive_column
  )
  select
    kg_classes.class,
    kg_classes.sensitive_column,
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
  left join kg_recursive
    on kg_recursive.class = kg_classes.class and kg_recursive.sensitive_column = kg_classes.sensitive_column;
-- {% endmacro %}
