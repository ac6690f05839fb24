{#- What a release that follows another has to know of it. -#}

{#-
The relation that keeps the secret map from one release to the next, as the last run left it; nothing where there was
none, or where releases do not follow each other. It is named and not referred to: it is made after all that reads it.
-#}
{% macro last_of(name) %}
  {% if not execute or not kgather.setting("history") %}{{ return(none) }}{% endif %}
  {{ return(load_relation(this.incorporate(path={"identifier": kgather.name_in_release(name)}))) }}
{% endmacro %}

{#- Members of a group when it is formed: k, and what the releases to come may take away. -#}
{% macro gathered_size() %}
  {% set reserve = kgather.setting("reserve") %}
  {{ return(kgather.setting("k") + (reserve if reserve is not none else 3 if kgather.setting("history") else 0)) }}
{% endmacro %}

{#- What item_noise stands for, where it is not said: whoever has two releases sees items move. -#}
{% macro noise_of_items() %}
  {% set said, over_time = kgather.setting("item_noise"), kgather.setting("history") or kgather.setting("reserve") %}
  {{ return(said if said is not none else 3 if over_time else 2) }}
{% endmacro %}

{#- What all releases of a chain have in common: who has two of different kinds of the same groups has more than both. -#}
{% macro chain_settings() %}
  {% set common = {} %}
  {% for name in kgather.names_of_chain() %}
    {% do common.update({name: kgather.setting(name)}) %}
  {% endfor %}
  {#- What stands for a setting where nothing is said. -#}
  {% do common.update({"homogenize": kgather.homogenize(), "item_noise": kgather.noise_of_items() | float}) %}
  {% if kgather.setting("within") is not none %}{% do common.update({"within": kgather.setting("within")}) %}{% endif %}
  {{ return(tojson(common, sort_keys=true)) }}
{% endmacro %}

{#- Refuses a release that is of another kind than the last one of its chain, and says in what. -#}
{% macro refuse_another_chain() %}
  {% set last = kgather.last_of("kgather_chain") %}
  {% if not last %}{{ return("") }}{% endif %}
  {% set rows = run_query("select settings from " ~ last ~ " order by release_number desc limit 1").rows %}
  {% set before = fromjson(rows[0][0]) if rows else none %}
  {% set now = fromjson(kgather.chain_settings()) %}
  {% set others = [] %}
  {#- As text: YAML reads 1e-06 as one, and JSON as a number. -#}
  {% for name in (now.keys() | list + ["within"]) | unique
    if before is not none and before.get(name) | string != now.get(name) | string %}
    {% do others.append(name ~ " was " ~ tojson(before.get(name)) ~ " and is " ~ tojson(now.get(name))) %}
  {% endfor %}
  {% if others %}
    {% do exceptions.raise_compiler_error(
      "kgather refuses the input: this release is of another kind than the last one of the same people: "
      ~ others | join("; ") ~ ". Whoever has two kinds of the same groups learns from both. Set what the last one had, "
      ~ "or begin a chain of other people."
    ) %}
  {% endif %}
{% endmacro %}

{#- The map that the release keeps which this one is within; nothing where it keeps none. -#}
{% macro history_of_origin() %}
  {% set origin = kgather.setting("within") %}
  {% if not context.get("kgather_" ~ origin) or not kgather.keeps_history(origin) %}{{ return(none) }}{% endif %}
  {{ return(ref("kgather_" ~ origin ~ "_history")) }}
{% endmacro %}

{#- Whether some people of the input may be in no release: where this one, or the one that it is within, follows others. -#}
{% macro leaves_people_out() %}
  {{ return(kgather.setting("history") or kgather.history_of_origin() is not none) }}
{% endmacro %}

{#- Why ratings of people who are in no release are set aside, by the state of the person. -#}
{% macro reasons_of_absence() %}
  {{ return({
    "waiting": "user waits for more newcomers",
    "withdrawn": "user is of a group that was withdrawn",
    "left": "user had left and stays away",
  }) }}
{% endmacro %}

{% macro reason_of_absence(state) -%}
  case {{ state }}
    {%- for name, reason in kgather.reasons_of_absence().items() %}
    when '{{ name }}' then '{{ reason }}'
    {%- endfor %}
  end
{%- endmacro %}

{#- People of the input who are in no release. -#}
{% macro absent_people() -%}
  (
    select user_id, state
    from {{ kgather.ref_to("int_kgather__presence") }}
    where state not in ('present', 'new')
  )
{%- endmacro %}

{#- What is published is made after the map is kept: a run that is stopped in between has promised too much, not too little. -#}
{% macro after_history() -%}
  {% if kgather.setting("history") %}-- depends_on: {{ kgather.ref_to("kgather_history") }}{% endif %}
{%- endmacro %}

{#-
Whether the staged ratings of the last release are in the database already, and only others are read: as the command line
has it with additions. It is no setting, as a project of its own has all its ratings.
-#}
{% macro takes_over() %}{{ return(var("kgather_takes_over", false)) }}{% endmacro %}

{#- A relation that the last release left in the database, where its ratings are taken over. -#}
{% macro of_last(name) -%}
  {{ this.incorporate(path={"identifier": kgather.name_in_release(name)}) }}
{%- endmacro %}

{#- A number for what a user rated how, in any order, whatever the user is called. Such numbers of parts add up. -#}
{% macro rated_so() -%}
  sum(cast(hash(cast(item_id as varchar), rating) as hugeint))
{%- endmacro %}

{#- Takes out of the staged ratings those in whose place others come. -#}
{% macro take_out_added() -%}
  delete from {{ this }} as staged
  using {{ kgather.ref_to("base_kgather__added_ratings") }} as added
  where staged.user_id = added.user_id and staged.item_id = added.item_id
{%- endmacro %}

{#- Takes out of the staged ratings those of people who are removed, or are not in this release. -#}
{% macro take_out_people() -%}
  {%- set columns = adapter.get_columns_in_relation(this) if execute else [] -%}
  {%- set types = columns | selectattr("name", "equalto", "user_id") | map(attribute="dtype") | list -%}
  delete from {{ this }}
  where user_id in (
    select try_cast(user_id as {{ types[0] if types else "varchar" }})
    from (
      select user_id from {{ kgather.absent_people() }}
      {%- if kgather.takes_over() %}
      union all
      select user_id from loaded.removed
      {%- endif %}
    )
  )
{%- endmacro %}

{#- Whether somebody waits for more newcomers. -#}
{% macro somebody_waits(presence) %}
  {% if not execute or not kgather.setting("history") %}{{ return(false) }}{% endif %}
  {{ return(run_query("select 1 from " ~ presence ~ " where state = 'waiting' limit 1").rows | length > 0) }}
{% endmacro %}
