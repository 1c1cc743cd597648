{% snapshot amounts %}
{{ config(target_schema='dbt_shop', unique_key='id', strategy='check', check_cols=['amount']) }}
select id, amount from {{ ref('raw_orders') }}
{% endsnapshot %}
