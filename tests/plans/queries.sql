-- Queries whose answers the optimizer must not change: one a line, over t(a, b, c), u(a, x, y), v(a, z, l) and e(a),
-- which is empty; NULLs and duplicates everywhere. tests/sql/test_optimizer_answers.py runs them.

-- EXISTS
SELECT a, b FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a)
SELECT a, b FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.a = t.a)
SELECT a, b FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a AND u.x > t.b)
SELECT a, b FROM t WHERE NOT EXISTS (SELECT * FROM u WHERE u.a = t.a AND u.x <> t.b)
SELECT a, b FROM t WHERE EXISTS (SELECT * FROM u WHERE u.x < t.b)
SELECT a FROM t WHERE EXISTS (SELECT * FROM u)
SELECT a FROM t WHERE NOT EXISTS (SELECT * FROM u)
SELECT a FROM t WHERE EXISTS (SELECT * FROM e)
SELECT a FROM t WHERE NOT EXISTS (SELECT * FROM e)
SELECT a FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.a = t.a)
SELECT a FROM t WHERE EXISTS (SELECT u.a FROM u WHERE u.a = t.a GROUP BY u.a HAVING count(*) > 1)
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a LIMIT 1)
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a ORDER BY x LIMIT 1 OFFSET 1)
SELECT a, EXISTS (SELECT * FROM u WHERE u.a = t.a) FROM t
SELECT a, NOT EXISTS (SELECT * FROM u WHERE u.a = t.a AND u.x = t.b) FROM t
SELECT a FROM t WHERE a > 2 OR EXISTS (SELECT * FROM u WHERE u.a = t.a)
SELECT a FROM t WHERE b = 1 AND (a = 3 OR NOT EXISTS (SELECT * FROM u WHERE u.x = t.b))
SELECT a, CASE WHEN EXISTS (SELECT * FROM u WHERE u.a = t.a) THEN 'yes' ELSE 'no' END FROM t
SELECT a FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a AND EXISTS (SELECT * FROM v WHERE v.a = u.a AND v.z = t.b))
SELECT a FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a AND NOT EXISTS (SELECT * FROM v WHERE v.a = u.x AND v.z < t.b))
SELECT a FROM t WHERE EXISTS (SELECT * FROM u, v WHERE u.a = v.a AND u.x = t.b)
SELECT a FROM t WHERE EXISTS (SELECT * FROM u LEFT JOIN v ON u.a = v.a AND v.z = t.b WHERE u.a = t.a AND v.a IS NULL)
SELECT a FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a UNION ALL SELECT * FROM u WHERE u.x = t.b)
SELECT a FROM t WHERE EXISTS (SELECT u.a FROM u WHERE u.x >= t.b INTERSECT SELECT v.a FROM v WHERE v.z <= t.b)
SELECT a FROM t WHERE EXISTS (SELECT u.a FROM u WHERE u.a = t.a EXCEPT SELECT v.a FROM v WHERE v.z = t.b)
SELECT a FROM t WHERE EXISTS (SELECT DISTINCT x FROM u WHERE u.a = t.a AND x IS NOT NULL)

-- IN, ANY and ALL
SELECT a, b FROM t WHERE a IN (SELECT a FROM u)
SELECT a, b FROM t WHERE a NOT IN (SELECT a FROM u)
SELECT a, b FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL)
SELECT a, b FROM t WHERE a NOT IN (SELECT a FROM e)
SELECT a, b FROM t WHERE a IN (SELECT a FROM e)
SELECT a, b FROM t WHERE a IN (SELECT x FROM u WHERE u.a = t.a)
SELECT a, b FROM t WHERE a NOT IN (SELECT x FROM u WHERE u.a = t.a)
SELECT a, b FROM t WHERE a NOT IN (SELECT x FROM u WHERE u.a < t.b)
SELECT a, b FROM t WHERE (a, b) IN (SELECT a, x FROM u)
SELECT a, b FROM t WHERE (a, b) NOT IN (SELECT a, x FROM u)
SELECT a, a IN (SELECT a FROM u) FROM t
SELECT a, a NOT IN (SELECT a FROM u) FROM t
SELECT a, a NOT IN (SELECT x FROM u WHERE u.a = t.a) FROM t
SELECT a, a IN (SELECT x FROM u WHERE u.y <> t.b) FROM t
SELECT a, (a, b) IN (SELECT a, x FROM u) FROM t
SELECT a, a NOT IN (SELECT a FROM e) FROM t
SELECT a, a > ANY (SELECT x FROM u) FROM t
SELECT a, a > ALL (SELECT x FROM u) FROM t
SELECT a, a > ALL (SELECT x FROM u WHERE x IS NOT NULL AND u.a = t.a) FROM t
SELECT a, a <= ALL (SELECT x FROM u WHERE u.a = t.b) FROM t
SELECT a FROM t WHERE a < ANY (SELECT x FROM u WHERE u.a <> t.a)
SELECT a FROM t WHERE a >= ALL (SELECT x FROM u WHERE u.a = t.a)
SELECT a FROM t WHERE a = ALL (SELECT x FROM u WHERE u.a = t.a)
SELECT a FROM t WHERE a <> ANY (SELECT x FROM u)
SELECT a FROM t WHERE NOT (a IN (SELECT x FROM u WHERE u.a = t.a) OR b IN (SELECT z FROM v))
SELECT a FROM t WHERE a IN (SELECT max(x) FROM u WHERE u.a = t.a)
SELECT a FROM t WHERE a NOT IN (SELECT max(x) FROM u WHERE u.a = t.a)
SELECT a, a NOT IN (SELECT max(x) FROM u WHERE u.a = t.a) FROM t
SELECT a FROM t WHERE 2 IN (SELECT count(*) FROM u WHERE u.a = t.a)
SELECT a FROM t WHERE a + 1 IN (SELECT u.x + t.b FROM u WHERE u.a = t.a)
SELECT a FROM t WHERE (SELECT max(x) FROM u) IN (SELECT z FROM v WHERE v.a = t.a)
SELECT a FROM t WHERE a IN (SELECT x FROM u WHERE x IN (SELECT z FROM v WHERE v.a = t.a))
SELECT a FROM t WHERE a IN (SELECT x FROM u WHERE u.a = t.a ORDER BY x LIMIT 2)
SELECT a FROM t WHERE a IN (SELECT x FROM u UNION SELECT z FROM v WHERE v.a = t.a)

-- Subqueries as values
SELECT a, (SELECT max(x) FROM u) FROM t
SELECT a, (SELECT max(x) FROM e, u) FROM t
SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a) FROM t
SELECT a, (SELECT count(*) + 1 FROM u WHERE u.a = t.a) FROM t
SELECT a, (SELECT coalesce(sum(x), -1) FROM u WHERE u.a = t.a) FROM t
SELECT a, (SELECT sum(x) FROM u WHERE u.a = t.a AND u.x > t.b) FROM t
SELECT a, (SELECT count(*) FROM u WHERE u.x > t.b) FROM t
SELECT a, (SELECT count(x) FROM u WHERE u.a > t.a OR u.x = t.b) FROM t
SELECT a, (SELECT max(x) + t.b FROM u WHERE u.a = t.a) FROM t
SELECT a, (SELECT max(x + t.b) FROM u WHERE u.a = t.a) FROM t
SELECT a, (SELECT x FROM u WHERE u.a = t.a ORDER BY x, y LIMIT 1) FROM t
SELECT a, (SELECT x FROM u WHERE u.a <= t.a ORDER BY x DESC NULLS LAST, y LIMIT 1 OFFSET 1) FROM t
SELECT a, (SELECT u.x FROM u WHERE u.a = t.a AND u.y = -1) FROM t
SELECT a, (SELECT max(x) FROM u WHERE u.a = t.a HAVING count(*) > 1) FROM t
SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a HAVING count(*) < 2) FROM t
SELECT a, (SELECT sum(n) FROM (SELECT count(*) AS n FROM u WHERE u.a = t.a GROUP BY x) AS s) FROM t
SELECT a, (SELECT count(*) FROM (SELECT DISTINCT x FROM u WHERE u.a = t.a) AS s) FROM t
SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a AND u.x = (SELECT max(z) FROM v WHERE v.a = t.b)) FROM t
SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a AND u.x >= (SELECT min(z) FROM v WHERE v.a = u.a AND v.z <> t.b)) FROM t
SELECT a, (SELECT (SELECT count(*) FROM v WHERE v.a = t.a)) FROM t
SELECT a, (SELECT count(*) FROM (SELECT u.a FROM u WHERE u.x = t.b UNION ALL SELECT v.a FROM v WHERE v.z = t.b) AS s) FROM t
SELECT a, (SELECT count(*) FROM (SELECT u.a FROM u WHERE u.x = t.b UNION SELECT v.a FROM v) AS s) FROM t
SELECT a, (SELECT count(*) FROM u FULL JOIN v ON u.a = v.a AND v.z = t.b WHERE coalesce(u.x, v.z) >= t.a) FROM t
SELECT a, (SELECT count(v.a) FROM u LEFT JOIN v ON u.a = v.a AND v.z > t.b) FROM t
SELECT a, (SELECT count(*) FROM (SELECT * FROM u WHERE u.a = t.a) AS s FULL JOIN v ON s.x = v.z) FROM t
SELECT a, (SELECT count(*) FROM (SELECT * FROM u WHERE u.a = t.a) AS s RIGHT JOIN v ON s.x = v.z) FROM t
SELECT a, (SELECT sum(r) FROM (SELECT row_number() OVER (ORDER BY x, y) AS r FROM u WHERE u.a = t.a) AS s) FROM t
SELECT a, (SELECT max(r) FROM (SELECT count(*) OVER (PARTITION BY x) AS r FROM u WHERE u.a <> t.a) AS s) FROM t
SELECT a, (SELECT t.b) FROM t
SELECT a, (SELECT t.b WHERE t.a > 1) FROM t
SELECT a, (SELECT t.a + u.x FROM u WHERE u.y = -1) FROM t
SELECT a FROM t WHERE b > (SELECT avg(x) FROM u WHERE u.a = t.a)
SELECT a FROM t WHERE b < (SELECT count(*) FROM u WHERE u.a = t.a)
SELECT a FROM t WHERE (SELECT count(*) FROM u WHERE u.a = t.a) = 0
SELECT a FROM t WHERE (SELECT max(x) FROM u WHERE u.a = t.a) IS NULL
SELECT a, b FROM t ORDER BY (SELECT max(x) FROM u WHERE u.a = t.a) NULLS FIRST, a, b
SELECT (SELECT max(x) FROM u WHERE u.a = t.a) AS m, count(*) FROM t GROUP BY 1
SELECT a, sum((SELECT count(*) FROM u WHERE u.a = t.a)) FROM t GROUP BY a
SELECT a, max(b) FROM t GROUP BY a HAVING max(b) > (SELECT min(x) FROM u WHERE u.a = t.a)
SELECT sum(b) OVER (PARTITION BY (SELECT max(x) FROM u WHERE u.a = t.a) ORDER BY a, b, c) FROM t
SELECT a, CASE WHEN b > 1 THEN (SELECT max(x) FROM u WHERE u.a = t.a) ELSE (SELECT min(z) FROM v) END FROM t
SELECT (SELECT 1), (SELECT max(x) FROM u)
SELECT * FROM (VALUES ((SELECT max(x) FROM u)), ((SELECT min(z) FROM v))) AS w(m)
SELECT a, (WITH w AS (SELECT x FROM u WHERE u.a = t.a) SELECT count(*) FROM w AS p, w AS q) FROM t
SELECT a, (WITH w AS (SELECT x FROM u WHERE u.a > t.a) SELECT count(*) FROM w AS p JOIN w AS q ON p.x = q.x) FROM t
SELECT a, (SELECT count(*) FROM generate_series(1, 3) AS g(n) WHERE g.n < t.a) FROM t
SELECT a, (SELECT sum(n) FROM (VALUES (t.a), (t.b), (1)) AS w(n)) FROM t
SELECT a, (SELECT max(n) FROM (VALUES (t.a), (t.b)) AS w(n) WHERE n > (SELECT min(x) FROM u WHERE u.a = n)) FROM t
SELECT CAST(a AS BIGINT), (SELECT count(*) FROM u WHERE CAST(u.a AS BIGINT) = CAST(t.a AS BIGINT) + 1) FROM t
SELECT a, (SELECT count(*) FROM u WHERE u.a IS NOT DISTINCT FROM t.a) FROM t
SELECT a, (SELECT string_agg(CAST(x AS VARCHAR), ',' ORDER BY x) FROM u WHERE u.a = t.a) FROM t
SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a AND u.a = t.b) FROM t
SELECT a, (SELECT count(DISTINCT x) FROM u WHERE u.a < t.a) FROM t
SELECT a, (SELECT count(*) FROM (SELECT x, count(*) FROM u WHERE u.a = t.a GROUP BY GROUPING SETS ((x), ())) AS s) FROM t

-- LATERAL
SELECT t.a, s.m FROM t, LATERAL (SELECT max(x) AS m FROM u WHERE u.a = t.a) AS s
SELECT t.a, s.n FROM t CROSS JOIN LATERAL (SELECT count(*) AS n FROM u WHERE u.a = t.a) AS s
SELECT t.a, s.x FROM t, LATERAL (SELECT x FROM u WHERE u.a = t.a ORDER BY x, y LIMIT 2) AS s
SELECT t.a, s.x FROM t LEFT JOIN LATERAL (SELECT x FROM u WHERE u.a = t.a ORDER BY x, y LIMIT 2) AS s ON true
SELECT t.a, s.x FROM t LEFT JOIN LATERAL (SELECT x FROM u WHERE u.a > t.a) AS s ON s.x = t.b
SELECT t.a, s.x FROM t, LATERAL (SELECT u.x + t.b AS x FROM u WHERE u.a = t.a) AS s
SELECT t.a, s.x FROM t LEFT JOIN LATERAL (SELECT u.x + t.b AS x FROM u WHERE u.a = t.a) AS s ON true
SELECT t.a, s.n, r.m FROM t, LATERAL (SELECT t.a + t.b AS n) AS s, LATERAL (SELECT s.n * 2 AS m) AS r
SELECT t.a, s.n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.a = t.a) AS s WHERE s.n > 1
SELECT t.a, s.n FROM t JOIN LATERAL (SELECT count(*) AS n FROM u WHERE u.x > t.b) AS s ON s.n > t.a
SELECT t.a, s.x, r.z FROM t, LATERAL (SELECT x FROM u WHERE u.a = t.a) AS s, LATERAL (SELECT z FROM v WHERE v.a = s.x AND v.z <> t.b) AS r
SELECT t.a, s.x FROM t, LATERAL (SELECT x FROM u WHERE u.a = t.a UNION SELECT z FROM v WHERE v.z > t.b) AS s
SELECT t.a, s.x FROM t, LATERAL (SELECT DISTINCT x FROM u WHERE u.x < t.b) AS s
SELECT v.a, w.i FROM v, UNNEST(v.l) AS w(i)
SELECT v.a, w.i FROM v LEFT JOIN LATERAL UNNEST(v.l) AS w(i) ON true
SELECT v.a, (SELECT sum(i) FROM UNNEST(v.l) AS w(i)) FROM v
SELECT v.a, w.i FROM v, LATERAL (SELECT i FROM UNNEST(v.l) AS q(i) WHERE i > v.z) AS w

-- Joins and conditions
SELECT t.a, u.x FROM t LEFT JOIN u ON t.a = u.a WHERE u.x > 1
SELECT t.a, u.x FROM t LEFT JOIN u ON t.a = u.a WHERE u.x IS NULL
SELECT t.a, u.x FROM t LEFT JOIN u ON t.a = u.a AND t.b = 1 WHERE t.a < 4
SELECT t.a, u.x FROM t LEFT JOIN u ON t.a = u.a AND u.x = 1
SELECT t.a, u.x FROM t RIGHT JOIN u ON t.a = u.a AND t.b > 1 WHERE u.x < 3
SELECT t.a, u.x FROM t RIGHT JOIN u ON t.a = u.a WHERE t.b = 1
SELECT t.a, u.x FROM t FULL JOIN u ON t.a = u.a
SELECT t.a, u.x FROM t FULL JOIN u ON t.a = u.a WHERE t.b = 1
SELECT t.a, u.x FROM t FULL JOIN u ON t.a = u.a WHERE u.x = 1
SELECT t.a, u.x FROM t FULL JOIN u ON t.a = u.a WHERE u.x = 1 AND t.b = 1
SELECT t.a, u.x FROM t FULL JOIN u ON t.a = u.a WHERE coalesce(u.x, 1) = 1
SELECT t.a, u.x, v.z FROM t, u, v WHERE t.a = u.a AND u.a = v.a AND t.a = 2
SELECT t.a, u.x, v.z FROM t, u, v WHERE t.a = u.a AND u.x = v.z AND v.a = t.b
SELECT t.a, u.x, v.z FROM t LEFT JOIN u ON t.a = u.a, v WHERE v.a = t.b
SELECT t.a, u.x, v.z FROM t LEFT JOIN u ON t.a = u.a LEFT JOIN v ON v.a = u.x
SELECT t.a, u.x, v.z FROM t LEFT JOIN (u JOIN v ON u.a = v.a) ON t.a = u.a
SELECT t.a, u.x, v.z FROM t JOIN u ON t.a = u.a LEFT JOIN v ON v.a = u.x WHERE v.z IS NULL OR v.z > t.b
SELECT t.a, p.x, q.x FROM t JOIN u AS p ON t.a = p.a JOIN u AS q ON p.x = q.x JOIN v ON v.a = q.a JOIN u AS r ON r.a = v.a
SELECT t.a, u.x FROM t, u WHERE (t.a = 1 AND u.x = 2) OR (t.a = 2 AND u.x = 1)
SELECT t.a, u.x FROM t, u WHERE (t.a = u.a AND t.b = 1 AND u.x < 3) OR (t.a = u.a AND t.b = 2 AND u.x > 1)
SELECT t.a, u.x FROM t LEFT JOIN u ON t.a = u.a AND EXISTS (SELECT * FROM v WHERE v.a = u.a)
SELECT t.a, u.x FROM t LEFT JOIN u ON t.a = u.a AND t.b IN (SELECT z FROM v)
SELECT t.a, u.x FROM t LEFT JOIN u ON EXISTS (SELECT * FROM v WHERE v.a = t.a AND v.z = u.x)
SELECT t.a, u.x FROM t FULL JOIN u ON t.a = u.a AND u.x > (SELECT min(z) FROM v WHERE v.a = t.a OR v.z = u.x)
SELECT t.a, u.x FROM t RIGHT JOIN u ON u.x >= (SELECT min(z) FROM v WHERE v.a = t.a AND v.z <> u.y)
SELECT count(*) FROM t, u
SELECT count(*) FROM t LEFT JOIN (SELECT DISTINCT a FROM u) AS d ON t.a = d.a
SELECT t.a FROM t LEFT JOIN (SELECT a, count(*) AS n FROM u GROUP BY a) AS d ON t.a = d.a
SELECT t.a, d.n FROM t LEFT JOIN (SELECT a, count(*) AS n FROM u GROUP BY a) AS d ON t.a = d.a WHERE d.n > 1 AND d.a > 0
SELECT a FROM t WHERE a = 1 AND a = 2
SELECT a FROM t WHERE NOT (a < 3 OR b IS NULL)
SELECT a FROM t WHERE a IN (1, NULL, 3)
SELECT a FROM t WHERE a NOT IN (1, NULL, 3)
SELECT a, a IN (1, NULL) FROM t
SELECT a, NOT (a = 1 AND b = NULL) FROM t
SELECT a FROM t WHERE CAST(a AS BIGINT) < 5000000000 AND CAST(a AS DOUBLE) > 1.5
SELECT a FROM t WHERE a * 1.0 > 2.5 OR a = 1 OR a = 1 OR a IN (1, 2)
SELECT a FROM t WHERE c LIKE 'a' OR c LIKE 'b%'
SELECT a FROM t WHERE CASE WHEN a > 2 THEN b = 1 WHEN false THEN true ELSE c = 'a' END
SELECT a FROM t WHERE a >= 1 AND a > 1 AND a <= 4 AND a < 5 AND a <> 3
SELECT a FROM t WHERE a = a AND b <> b
SELECT a FROM t WHERE a = a

-- Limits, sets, groups, shared parts
SELECT a, b FROM t ORDER BY a, b, c LIMIT 3
SELECT a, b FROM t ORDER BY a DESC NULLS LAST, b, c LIMIT 2 OFFSET 2
SELECT b + 1 FROM t ORDER BY a, b, c LIMIT 4
SELECT count(*) FROM (SELECT a FROM t LIMIT 3) AS s
SELECT count(*) FROM (SELECT a FROM t UNION ALL SELECT a FROM u LIMIT 5) AS s
SELECT a FROM t UNION SELECT a FROM u
SELECT a FROM t UNION ALL SELECT x FROM u
SELECT a FROM t INTERSECT SELECT a FROM u
SELECT a FROM t INTERSECT ALL SELECT a FROM u
SELECT a FROM t EXCEPT SELECT a FROM u
SELECT a FROM t EXCEPT ALL SELECT a FROM u
SELECT s.a FROM (SELECT a, b FROM t UNION SELECT a, x FROM u) AS s WHERE s.a > 1 AND s.b < 3
SELECT s.a FROM (SELECT a, b, c FROM t UNION ALL SELECT a, x, 'k' FROM u) AS s
SELECT DISTINCT a, b FROM t
SELECT DISTINCT a FROM (SELECT a, count(*) FROM t GROUP BY a) AS s
SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b, c
SELECT a, count(DISTINCT b), count(DISTINCT c) FROM t GROUP BY a
SELECT a, count(DISTINCT b) FROM t GROUP BY a
SELECT count(DISTINCT b), sum(DISTINCT b) FROM t
SELECT a, min(DISTINCT b), count(*) FROM t GROUP BY a
SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b)
SELECT s.a, s.n FROM (SELECT a, b, count(*) AS n FROM t GROUP BY CUBE (a, b)) AS s WHERE s.a = 1
SELECT a FROM (SELECT a, b, count(*) AS n FROM t GROUP BY a, b) AS s WHERE a > 1 AND n > 0
SELECT a, r FROM (SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b, c) AS r FROM t) AS s WHERE a = 2 AND r = 1
SELECT a FROM (SELECT a, sum(b) OVER () AS s FROM t) AS q WHERE a = 1
WITH w AS (SELECT a, count(*) AS n FROM t GROUP BY a) SELECT p.a, q.n FROM w AS p JOIN w AS q ON p.n = q.n
WITH w AS (SELECT a, count(*) AS n FROM t GROUP BY a) SELECT a FROM w WHERE n = (SELECT max(n) FROM w)
WITH w AS (SELECT a, b FROM t WHERE b > 1) SELECT p.a FROM w AS p, w AS q WHERE p.a = q.b
WITH w AS (SELECT a FROM t) SELECT count(*) FROM u
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r
WITH RECURSIVE r AS (SELECT a, b FROM t WHERE a = 1 UNION SELECT u.a, r.b FROM r JOIN u ON u.x = r.a) SELECT * FROM r
SELECT a, (WITH RECURSIVE r AS (SELECT t.a AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT count(*) FROM r) FROM t WHERE a > 0
WITH RECURSIVE r AS (SELECT a AS n FROM t WHERE a = 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT max(x) FROM u)) SELECT count(*) FROM r
SELECT s.a, q.n FROM (SELECT t.a, count(*) AS n FROM t JOIN u ON t.a = u.a GROUP BY t.a) AS s JOIN (SELECT t.a, count(*) AS n FROM t JOIN u ON t.a = u.a GROUP BY t.a) AS q ON s.n = q.n
SELECT sum(n) FROM (SELECT a, count(*) AS n FROM t WHERE false GROUP BY a) AS s
SELECT count(*), max(a) FROM t WHERE 1 = 0
SELECT t.a FROM t JOIN (SELECT a FROM u WHERE false) AS q ON t.a = q.a
SELECT t.a, q.a FROM t LEFT JOIN (SELECT a FROM u WHERE false) AS q ON t.a = q.a
SELECT t.a FROM t WHERE t.a NOT IN (SELECT a FROM u WHERE false)
SELECT a FROM t WHERE b IN (SELECT x FROM u) ORDER BY a NULLS FIRST LIMIT 5
SELECT s.a FROM (SELECT a, b FROM t ORDER BY b) AS s JOIN u ON s.a = u.a
SELECT a FROM e UNION ALL SELECT a FROM t WHERE a = 1
WITH c AS (SELECT a, b, count(*) AS n FROM t GROUP BY a, b) SELECT one.a, two.a, two.n FROM c AS one JOIN c AS two ON one.b = two.b WHERE one.a = 1 AND two.a = 2 AND two.n > 1
WITH c AS (SELECT a, 's' AS kind FROM t UNION ALL SELECT a, 'w' FROM u) SELECT one.a, two.kind FROM c AS one LEFT JOIN c AS two ON one.a = two.a AND two.kind = 'w' WHERE one.kind = 's'
WITH c AS (SELECT a, b FROM t), d AS (SELECT DISTINCT a FROM c WHERE b > 0) SELECT c.a FROM c WHERE c.b = 2 AND c.a IN (SELECT a FROM d WHERE a < 5) AND EXISTS (SELECT 1 FROM d WHERE d.a = 3)
SELECT t.a, t.b FROM t LEFT JOIN u ON t.a = u.a WHERE u.a IS NULL
