{{ config(materialized='table') }}
select customer, count(*) as orders, sum(amount) as amount from {{ ref('orders') }} group by customer
