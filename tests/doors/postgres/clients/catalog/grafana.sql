-- What Grafana's data source asks: a ping, versions, tables and columns on the search path, and a panel's time series.
-- ping
SELECT 1;
-- rows 1
SELECT current_setting('server_version_num')::int/100 as version;
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';
-- rows 2
select quote_ident(table_name) as "table" from information_schema.tables where quote_ident(table_schema) not in ('information_schema', 'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog', '_timescaledb_internal', '_timescaledb_config', 'timescaledb_information', 'timescaledb_experimental') and table_type = 'BASE TABLE' and quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array(current_setting('search_path'),','),1), array_upper(string_to_array(current_setting('search_path'),','),1)) as i, string_to_array(current_setting('search_path'),',') s);
-- rows 3
select quote_ident(column_name) as "column", data_type as "type" from information_schema.columns where quote_ident(table_name) = 'bi_order' and quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array(current_setting('search_path'),','),1), array_upper(string_to_array(current_setting('search_path'),','),1)) as i, string_to_array(current_setting('search_path'),',') s);
-- rows 1
SELECT quote_ident(column_name) as "column" FROM information_schema.columns WHERE quote_ident(table_name) = 'bi_order' AND data_type IN ('TIMESTAMP','timestamp without time zone','timestamp with time zone');
-- rows 1
SELECT floor(extract(epoch from placed)/3600)*3600 AS "time", avg(amount) AS "value" FROM bi_order WHERE placed BETWEEN '2000-01-01T00:00:00Z' AND '2100-01-01T00:00:00Z' GROUP BY 1 ORDER BY 1;
-- rows 1
SELECT placed AS "time", shop::text AS metric, amount FROM bi_order WHERE extract(epoch from placed) >= 946684800 ORDER BY 1 LIMIT 50;
