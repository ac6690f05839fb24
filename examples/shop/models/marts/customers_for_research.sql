-- One row for each customer, who looks like nine others at least.
{{ kgather.anonymize(
  ref("stg_customers"), k=10, quasi_identifiers={"age": {"step": 5}, "postcode": {"kind": "prefix"}}, sensitive=["spent"]
) }}
