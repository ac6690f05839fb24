{{ config(enabled=kgather.publishes(), materialized="view") }}
-- Those whose group of the last release stays, with the id that it was formed with. Empty in a first release.
select users.user_code, presence.lineage
from {{ ref("int_kgather__presence") }} as presence
join {{ ref("int_kgather__users") }} as users on cast(users.user_id as varchar) = presence.user_id
where presence.state = 'present'
