{#-
Conditions on group_id that part the groups into slices of about six million ratings, ascending: what is grouped by
groups and items is then grouped and sorted a slice at a time, in memory, and is in order as a whole. One slice while
nothing is built.
-#}
{% macro group_slices() %}
  {% set groups, ratings = kgather.ref_to("int_kgather__groups"), kgather.ref_to("stg_kgather__ratings") %}
  {% if not execute or load_relation(groups) is none or load_relation(ratings) is none %}
    {{ return(["true"]) }}
  {% endif %}
  {% set slices = run_query("select count(*) // 6000000 + 1 from " ~ ratings).rows[0][0] | int %}
  {% if slices == 1 %}
    {{ return(["true"]) }}
  {% endif %}
  {% set shares = [] %}
  {% for slice in range(1, slices) %}{% do shares.append(slice ~ " / " ~ slices) %}{% endfor %}
  {% set bounds = run_query(
    "select distinct unnest(quantile_disc(group_id, [" ~ shares | join(", ") ~ "])) as bound from " ~ groups
    ~ " order by bound asc"
  ).columns[0].values() %}
  {% set conditions = ["group_id < " ~ bounds[0]] %}
  {% for bound in bounds %}
    {% do conditions.append(
      "group_id >= " ~ bound ~ ("" if loop.last else " and group_id < " ~ bounds[loop.index])
    ) %}
  {% endfor %}
  {{ return(conditions) }}
{% endmacro %}
