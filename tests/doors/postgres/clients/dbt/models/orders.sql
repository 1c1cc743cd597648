{{ config(materialized='view') }}
select id, customer, coalesce(amount, 0) as amount, ordered from {{ ref('raw_orders') }}
