{{ config(enabled=kgather.publishes()) }}
-- How much was read and staged; fails the run here, before any work, where the input cannot be published.
{#- With --empty there is no input: what is built is to be looked at, not released. -#}
{% set users, items, staged = ref("int_kgather__users"), ref("int_kgather__items"), ref("stg_kgather__ratings") %}
{% set refuses = not flags.EMPTY %}
{#- Named even where it is not asked for anything: dbt has to know of it while it parses. -#}
{% set staged_of_read = ref("base_kgather__staged_of_read") %}
{% set presence, last = ref("int_kgather__presence"), kgather.last_of("kgather_history") %}
{% set rows = "users" if kgather.has_rows_of_users() else "greatest(users // " ~ kgather.setting("k") ~ ", 1)" %}
{% set chosen = (kgather.top_items() or kgather.best_items() or kgather.popular_items()) | trim %}
{% set cells = ("least(items, " ~ chosen ~ ")" if chosen else "items") ~ " * " ~ rows %}
{#- What members rated is never more than the ratings. -#}
{% set bounded = kgather.form_facts(kgather.homogenize()).bounded or kgather.setting("cells") in ("low_rank", "rated") %}
with counts as (
  select
    (select count(*) from {{ ref("base_kgather__read_ratings") }}) as rows_of_files,
    (select count(*) from {{ staged_of_read }}) as staged_of_read,
    (select count(*) from {{ staged }}) as staged_rows,
    (select count(*) from {{ ref("int_kgather__rejected_ratings") }}) as rejected_rows,
    (
      -- Rows that say "not rated" and users set aside on request are no sign of a bad file.
      select count(*)
      from {{ ref("int_kgather__rejected_ratings") }}
      where {{ kgather.is_fault("reason") }}
    ) as bad_rows,
    (
      select string_agg(reason || ' (' || times || ')', '; ' order by times desc, reason asc)
      from (
        select reason, count(*) as times
        from {{ ref("int_kgather__rejected_ratings") }}
        group by reason
        order by times desc, reason asc
        limit 5
      )
    ) as reasons,
    (
      select arg_min(source || ' line ' || line || ': ' || reason, (source, line))
      from {{ ref("int_kgather__rejected_ratings") }}
      where {{ kgather.is_fault("reason") }}
    ) as first_bad_row,
    (
      select count(user_id) - count(distinct user_id)
      from {{ ref("stg_kgather__user_attributes") }}
    ) as repeated_attributes,
    {% if not kgather.setting("items_confirmed") -%}
    (
      select string_agg(measured || ' ' || sign, '; ' order by sign asc)
      from kg_signs_of_people({{ kgather.named(users) }}, {{ kgather.named(items) }})
    ) as signs_of_people,
    {% endif -%}
    {% if not kgather.setting("scale") -%}
    (
      select string_agg(sign, '; ' order by sign asc)
      from kg_signs_of_no_scale({{ kgather.named(staged) }})
    ) as signs_of_no_scale,
    {% endif -%}
    {% if last -%}
    (
      -- Who came or went since the last release, where somebody was erased since; else nobody looks.
      select if(count(*) filter (known.state = 'erased') = 0, null, count(*) filter (
        today.state = 'new' or (known.state in ('present', 'erased') and today.state is distinct from 'present')
      ))
      from {{ presence }} as today
      left join (
        select user_id, state
        from {{ last }}
        where release_number = (select max(release_number) from {{ last }})
      ) as known using (user_id)
    ) as changes_after_erasure,
    {% endif -%}
    (select count(*) from {{ users }}) as users,
    (select count(*) from {{ items }}) as items
),

input as (
  -- What was taken over was read for an earlier release.
  select rows_of_files + staged_rows - staged_of_read as read_rows, counts.*
  from counts
)

select
  {% if refuses -%}
  case
    when read_rows = 0
      then error('kgather refuses the input: it has no ratings.')
    when bad_rows > {{ kgather.setting("max_rejected_share") }} * rows_of_files
      then error(
        'kgather refuses the input: ' || bad_rows || ' of ' || rows_of_files || ' rows are rejected, more than the '
        || 'share of {{ kgather.setting("max_rejected_share") }} that max_rejected_share allows. First: ' || first_bad_row
        || '. By reason: ' || reasons || '.'
        {% if kgather.setting("repeats") is none -%}
        || case
          when reasons like '%repeated pair%' then ' Where pairs occur several times, as events do, say which rating counts (repeats).'
          else ''
        end
        {%- endif %}
      )
    when staged_rows = 0
      then error('kgather refuses the input: every row is set aside. By reason: ' || reasons || '.')
    when users < {{ kgather.setting("k") }}
      then error(
        'kgather refuses the input: k = {{ kgather.setting("k") }} is larger than the number of users, ' || users
        || '. Lower k or add users.'
      )
    {% if last -%}
    when changes_after_erasure < {{ kgather.setting("k") }}
      then error(
        'kgather refuses the input: somebody was erased since the last release, and fewer than k = '
        || '{{ kgather.setting("k") }} people have come or gone: the release would tell of that person. Publish when you '
        || 'planned the next one.'
      )
    {% endif -%}
    when repeated_attributes > 0
      then error(
        'kgather refuses the input: ' || repeated_attributes || ' users occur twice in {{ kgather.setting("user_attributes") }}. '
        || 'Give one row for each user.'
      )
    {% if not kgather.setting("scale") -%}
    when signs_of_no_scale is not null
      then error(
        'kgather refuses the input: the ratings do not look like ratings: ' || signs_of_no_scale || '. Take the column '
        || 'that holds them, say the scale if it is meant (scale), a value that means "not rated" (not_rated), or of '
        || 'counts a logarithm or an end (rating_log, rating_cap).'
      )
    {% endif -%}
    {% if not kgather.setting("items_confirmed") -%}
    when signs_of_people is not null
      then error(
        'kgather refuses the input: its items look like people, and items are published: ' || signs_of_people
        || '. Look which column holds the people. If the items are none, set items_confirmed to true.'
      )
    {% endif -%}
    {% if not bounded -%}
    when {{ cells }} > {{ kgather.setting("max_cells") }}
      then error(
        'kgather refuses the input: the release could have ' || {{ cells }} || ' cells, more than max_cells = '
        || '{{ kgather.setting("max_cells") }}. Release {{ "the vectors instead (cells: low_rank), " if 'low_rank' in kgather.form_facts(kgather.homogenize()).cells }}what members '
        || 'rated (cells: rated) or fewer items (cells: top N), or raise max_cells.'
      )
    {%- endif %}
    else read_rows
  end
  {%- else -%}
  read_rows
  {%- endif %} as read_rows,
  staged_rows,
  rejected_rows,
  users,
  items
from input
