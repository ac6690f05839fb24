{#- The form noise: every cell of users x items that is shown, under Gaussian noise. -#}
{% macro form__noise() -%}
  select user_id, item_id, rating
  from {{ kgather.ref_to("int_kgather__noisy_ratings") }}
{%- endmacro %}
