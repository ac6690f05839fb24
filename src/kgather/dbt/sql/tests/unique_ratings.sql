{#-
Asserts that no pair of user and item is staged twice. added: what came beside ratings that were taken over, of which
this was asserted when they were staged: each of its pairs of people who are in the release is there exactly once.

Failures are numbers of rows, never values.
-#}
{% test unique_ratings(model, added) %}
  {%- if not kgather.takes_over() -%}
  {{ kgather.test_unique_combination(model, ["user_id", "item_id"]) }}
  {%- else -%}
  {{- config(fail_calc="coalesce(sum(abs(wanted - found)), 0)") -}}
  with counts as (
    select
      (
        select count(*)
        from {{ added }}
        semi join {{ kgather.ref_to("int_kgather__users") }} using (user_id)
      ) as wanted,
      (select count(*) from {{ model }} semi join {{ added }} using (user_id, item_id)) as found
  )
  select * from counts where wanted <> found
  {%- endif %}
{% endtest %}
