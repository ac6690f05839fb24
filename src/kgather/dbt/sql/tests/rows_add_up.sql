{#-
Asserts that a relation has as many rows as its parts together: nothing was lost and nothing was made up.

  data_tests:
    - kgather.rows_add_up:
        arguments: {parts: [ref('kept'), ref('set_aside')]}
-#}
{% test rows_add_up(model, parts) %}
  {{- config(fail_calc="coalesce(sum(abs(whole_rows - part_rows)), 0)") -}}
  with counts as (
    select
      (select count(*) from {{ model }}) as whole_rows,
      {% for part in parts %}(select count(*) from {{ part }}){{ " + " if not loop.last }}{% endfor %} as part_rows
  )
  select * from counts where whole_rows <> part_rows
{% endtest %}
