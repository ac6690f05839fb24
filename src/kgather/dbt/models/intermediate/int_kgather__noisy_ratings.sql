{{ config(enabled=kgather.publishes() and kgather.homogenize() == "noise") }}
{% set clip = kgather.setting("noise_clip") -%}
-- Gaussian noise on every cell that is shown. No k-anonymity comes of it.
select user_id, item_id, rating
from kg_gaussian_noise(
  {{ kgather.named(ref("int_kgather__filled_cells")) }},
  {{ kgather.setting("noise_sigma") }},
  {{ kgather.scale_end("min") if clip else "null" }},
  {{ kgather.scale_end("max") if clip else "null" }}
)
