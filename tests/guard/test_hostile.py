"""Statements made to get at one person: every one is refused by the text alone, whatever rule sees it first."""

import pytest
from guard_data import Ask

from kgather._guard.plan import Plan
from kgather._guard.policy import ANSWERED
from kgather._guard.refused import Refused

HOSTILE = (
    # The person by another name
    "SELECT AVG(salary) FROM ratings_wide WHERE ratings_wide.user_id::VARCHAR = '42'",
    "SELECT AVG(salary) FROM ratings_wide WHERE user_id IS NOT DISTINCT FROM 42",
    "SELECT AVG(salary) FROM ratings_wide WHERE NOT user_id <> 42",
    "SELECT AVG(salary) FROM ratings_wide WHERE (user_id) IN ((42))",
    "SELECT AVG(salary) FROM ratings_wide WHERE CASE user_id WHEN 42 THEN TRUE END",
    "SELECT AVG(salary) FROM ratings_wide WHERE ABS(user_id - 42) < 1",
    "SELECT AVG(salary) FROM ratings_wide WHERE GREATEST(user_id, warcross) = 42",
    "SELECT AVG(salary) FROM ratings_wide WHERE user_id BETWEEN SYMMETRIC 42 AND 42",
    "SELECT AVG(w.salary) FROM ratings_wide w JOIN users u ON w.user_id = u.user_id AND u.user_id = 42",
    "SELECT AVG(w.salary) FROM ratings_wide w JOIN (SELECT user_id FROM users WHERE user_id = 42) u USING (user_id)",
    "SELECT AVG(w.salary) FROM ratings_wide w JOIN (SELECT 42 AS user_id) u USING (user_id)",
    "SELECT AVG(w.salary) FROM ratings_wide w, (SELECT item_id AS user_id FROM items) u WHERE w.user_id = u.user_id",
    "WITH u AS (SELECT user_id AS item_id FROM users) SELECT COUNT(*) FROM u JOIN items i USING (item_id)",
    "WITH u(x) AS (SELECT user_id FROM users) SELECT COUNT(*) FROM u WHERE x = 42",
    "SELECT COUNT(*) FROM ratings_wide WHERE user_id IN (SELECT item_id FROM items)",
    "SELECT COUNT(*) FROM ratings_wide WHERE user_id IN (SELECT 42)",
    "SELECT COUNT(*) FROM ratings_wide WHERE item_id IN (SELECT user_id FROM ratings)",
    "SELECT COUNT(*) FROM ratings_wide WHERE (user_id, warcross) IN (SELECT user_id, rating FROM ratings)",
    "SELECT COUNT(*) FROM ratings_wide WHERE user_id IN (SELECT user_id FROM ratings ORDER BY rated_at LIMIT 1)",
    "SELECT COUNT(*) FROM ratings_wide WHERE user_id IN (SELECT MAX(user_id) FROM ratings)",
    "SELECT COUNT(*) FROM ratings_wide WHERE user_id IN (SELECT user_id FROM ratings GROUP BY user_id, item_id)",
    "SELECT COUNT(*) FROM users WHERE user_id IN (SELECT user_id FROM users UNION ALL SELECT user_id FROM users)",
    "SELECT COUNT(*) FROM ratings_wide w WHERE EXISTS (SELECT 1 FROM items i WHERE i.item_id = w.user_id)",
    "SELECT COUNT(*) FROM users w WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = w.user_id AND w.age > 9)",
    "SELECT COUNT(*) FROM ratings_wide w WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id <> w.user_id)",
    "SELECT COUNT(*) FROM ratings_wide w WHERE EXISTS (SELECT COUNT(*) FROM users u WHERE u.user_id = w.user_id)",
    "SELECT COUNT(*) FROM ratings_wide w WHERE EXISTS (FROM users u WHERE u.user_id = w.user_id LIMIT 0)",
    "SELECT COUNT(DISTINCT CASE WHEN warcross = 5 THEN user_id ELSE 0 END) FROM ratings_wide",
    "SELECT COUNT(DISTINCT user_id) + SUM(user_id) FROM ratings_wide",
    "SELECT city, COUNT(*) FROM ratings_wide GROUP BY city, user_id",
    "SELECT COUNT(*) FROM ratings_wide GROUP BY user_id",
    "SELECT COUNT(*) FROM ratings_wide GROUP BY user_id % 2",
    "SELECT * FROM (SELECT user_id AS a, COUNT(*) AS b FROM ratings GROUP BY user_id) t ORDER BY b LIMIT 1",
    "SELECT SUM(n) FROM (SELECT user_id, COUNT(*) AS n FROM ratings GROUP BY user_id) t WHERE user_id = 42",
    "SELECT t.user_id, COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM ratings GROUP BY 1) t GROUP BY t.user_id",
    "SELECT MAX(n) FROM (SELECT user_id, COUNT(*) AS n FROM ratings GROUP BY user_id) t",
    "SELECT LIST(n) FROM (SELECT user_id, COUNT(*) AS n FROM ratings GROUP BY user_id) t",
    "SELECT AVG(n) FROM (SELECT user_id, COUNT(*) AS n FROM ratings GROUP BY ROLLUP (user_id)) t",
    # Measures, dimensions and hidden columns in other dress
    "SELECT warcross AS salary, COUNT(*) FROM ratings_wide WHERE ratings_wide.salary > 1 GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT salary - 999999 AS warcross FROM ratings_wide) t WHERE t.warcross = 0",
    "SELECT COUNT(*) FROM (SELECT CASE WHEN salary > 9 THEN 1 END AS x FROM ratings_wide) t WHERE x = 1",
    "SELECT COUNT(x) FROM (SELECT CASE WHEN salary > 900000 THEN 1 END AS x FROM ratings_wide) t",
    "SELECT CORR(salary, salary = 999999) FROM ratings_wide",
    "SELECT CORR(salary, user_id) FROM ratings_wide",
    "SELECT COUNT(*) FILTER (WHERE city = 'Bergen') FROM ratings_wide",
    "SELECT AVG(salary) FILTER (WHERE education = 'PhD' AND warcross = 5) FROM ratings_wide",
    "SELECT age // 10, COUNT(*) FROM users GROUP BY 1",
    "SELECT ROUND(age, -1), COUNT(*) FROM users GROUP BY 1",
    "SELECT gender, COUNT(*) FROM users u GROUP BY gender HAVING SUM(CASE WHEN zip = '1' THEN 1 END) > 0",
    "SELECT (SELECT zip FROM users LIMIT 1)",
    "SELECT COUNT(*), (SELECT COUNT(*) FROM users WHERE zip = '1') FROM ratings_wide",
    "SELECT COUNT(*) FROM ratings_wide ORDER BY (SELECT zip FROM users)",
    "SELECT DATE_TRUNC('hour', rated_at), COUNT(*) FROM ratings GROUP BY 1",
    "SELECT DATE_TRUNC('month', CAST(rated_at AS DATE)), COUNT(*) FROM ratings GROUP BY 1",
    "SELECT EXTRACT(epoch FROM rated_at), COUNT(*) FROM ratings GROUP BY 1",
    "SELECT d, COUNT(*) FROM (SELECT rated_at AS d FROM ratings) t GROUP BY d",
    "SELECT COUNT(DISTINCT rated_at) FROM ratings",
    "SELECT SUM(x + 1) FROM (SELECT CASE WHEN salary > 900000 THEN 1 END AS x FROM ratings_wide) t",
    "SELECT SUM(x) FROM (SELECT (salary > 900000)::INT AS x FROM ratings_wide) t",
    "SELECT SUM(CASE salary WHEN 999999 THEN 1 ELSE 0 END) FROM ratings_wide",
    "SELECT AVG(1 + CASE WHEN COALESCE(salary > 900000, FALSE) THEN 1 ELSE 0 END) FROM ratings_wide",
    "SELECT SUM(CASE WHEN salary > 900000 THEN warcross ELSE joy_ride END * 2) FROM ratings_wide",
    "SELECT COUNT_IF(salary > 900000) FROM ratings_wide",
    "SELECT SUM(CASE WHEN user_id = 42 THEN salary ELSE 0 END) FROM ratings_wide",
    "SELECT SUM(salary * user_id) FROM ratings_wide",
    "SELECT COUNT(*) FROM ratings_wide WHERE city LIKE 'B%'",
    "SELECT COUNT(*) FROM ratings_wide WHERE STARTS_WITH(city, 'B')",
    "SELECT COUNT(*) FROM ratings WHERE DAY(rated_at) = 1",
    "SELECT STRFTIME(rated_at, '%Y-%m-%d %H'), COUNT(*) FROM ratings GROUP BY 1",
    "SELECT COUNT(*) FROM ratings WHERE rated_at >= '2024-02-17'",
    "SELECT COUNT(*) FROM ratings_wide WHERE warcross > (SELECT MAX(warcross) FROM ratings_wide)",
    "SELECT DISTINCT user_id FROM ratings_wide",
    "SELECT DISTINCT salary FROM ratings_wide",
    "SELECT DISTINCT city, zip FROM ratings_wide JOIN users USING (user_id)",
    "SELECT warcross FROM ratings_wide INTERSECT SELECT item_id FROM items",
    "SELECT title FROM items EXCEPT SELECT city FROM ratings_wide",
    "SELECT string_agg(city, ',') FROM ratings_wide",
    "SELECT mode(salary) FROM ratings_wide",
    "SELECT max_by(city, salary) FROM ratings_wide",
    # Rows, one by one
    "SELECT * FROM ratings_wide WHERE warcross = 5",
    "SELECT t.* FROM (SELECT * FROM ratings_wide) t",
    "WITH a AS (SELECT * FROM ratings_wide), b AS (SELECT * FROM a) FROM b",
    "SELECT w.salary FROM (SELECT COUNT(*) AS n FROM users) t, ratings_wide w",
    "SELECT * FROM items i, (SELECT rating FROM ratings) r",
    "SELECT i.title, r.rating FROM items i JOIN ratings r USING (item_id)",
    "SELECT title FROM items i JOIN ratings r USING (item_id)",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM users) t UNION ALL SELECT warcross FROM ratings_wide",
    "(SELECT salary FROM ratings_wide) UNION ALL (SELECT COUNT(*) FROM users)",
    "SELECT 1 FROM ratings_wide",
    "SELECT COUNT(*) OVER () FROM ratings_wide",
    "SELECT SUM(salary) OVER (ORDER BY salary), COUNT(*) FROM ratings_wide",
    "SELECT city, RANK() OVER (ORDER BY salary) FROM ratings_wide GROUP BY city",
    "SELECT FIRST_VALUE(city) OVER (ORDER BY salary) FROM ratings_wide",
    "SELECT LAG(salary) OVER (ORDER BY salary), COUNT(*) FROM ratings_wide",
    "SELECT COUNT(*) FROM (SELECT * FROM ratings_wide ORDER BY salary DESC LIMIT 1)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT ON (city) * FROM ratings_wide)",
    "SELECT SUM(salary) FROM (SELECT DISTINCT salary FROM ratings_wide)",
    "SELECT AVG(salary) FROM (SELECT *, ROW_NUMBER() OVER () AS r FROM ratings_wide) WHERE r = 1",
    # Joins that repeat or pick
    "SELECT SUM(w.salary) FROM ratings_wide w JOIN ratings r USING (user_id) WHERE r.rating = 5",
    "SELECT SUM(w.salary) FROM ratings_wide w, items i",
    "SELECT SUM(w.salary) FROM ratings_wide w JOIN items i ON TRUE",
    "SELECT SUM(w.salary) FROM ratings_wide w LEFT JOIN ratings r ON w.user_id = r.user_id AND r.item_id = 1",
    "SELECT SUM(w.salary) FROM ratings_wide w JOIN ratings r USING (user_id) WHERE r.item_id = 1 OR r.item_id = 2",
    "SELECT SUM(w.salary) FROM ratings_wide w JOIN ratings r USING (user_id) WHERE r.item_id = r.rating",
    "SELECT SUM(w.salary) FILTER (WHERE r.item_id = 1) FROM ratings_wide w JOIN ratings r USING (user_id)",
    "SELECT AVG(u.age) FROM users u JOIN ratings r USING (user_id)",
    "SELECT AVG(a.salary) FROM ratings_wide a JOIN ratings_wide b ON a.warcross = b.warcross",
    "SELECT AVG(a.salary) FROM ratings_wide a JOIN ratings_wide b USING (city)",
    "SELECT COUNT(*) FROM ratings a JOIN ratings b USING (user_id) WHERE a.rating = b.rating",
    "SELECT COUNT(*) FROM ratings a JOIN ratings b USING (user_id, item_id)",
    "SELECT AVG(salary) FROM ratings_wide, LATERAL (SELECT 1)",
    "SELECT AVG(w.salary) FROM ratings_wide w ASOF JOIN users u ON w.user_id >= u.user_id",
    "SELECT AVG(w.salary) FROM users u LEFT JOIN ratings_wide w USING (user_id) JOIN ratings r USING (user_id)",
    "SELECT COUNT(*) FROM ratings r JOIN items i ON r.item_id = i.item_id JOIN items j ON j.item_id = r.rating",
    # Errors, side effects and the engine
    "SELECT SUM(salary::UTINYINT) FROM ratings_wide",
    "SELECT AVG(CAST(city AS INTEGER)) FROM ratings_wide",
    "SELECT COUNT(*) FROM ratings_wide WHERE error('x')",
    "SELECT COUNT(*) FROM ratings_wide WHERE warcross = CAST('x' AS INTEGER)",
    "SELECT SUM(salary * 9223372036854775807) FROM ratings_wide",
    "SELECT SUM(salary / (1 - 1)) FROM ratings_wide",
    "SELECT sleep_ms(1000)",
    "SELECT nextval('s')",
    "SELECT setseed(0.5)",
    "SELECT txid_current()",
    "SELECT * FROM query('SELECT * FROM users')",
    "SELECT * FROM query_table('users')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_duckdb('fixture.duckdb', table_name = 'users')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM range(99999)",
    "SELECT * FROM pragma_storage_info('users')",
    "SELECT json_execute_serialized_sql('{}')",
    "SELECT stats(salary) FROM ratings_wide",
    "SELECT COUNT(*) FROM histogram(ratings_wide, salary)",
    "FROM histogram_values(users, age)",
    "SELECT unnest(list(salary)) FROM ratings_wide",
    "SELECT * FROM (PIVOT ratings_wide ON city USING SUM(salary))",
    "SELECT * FROM ratings_wide PIVOT (SUM(salary) FOR city IN ('Bergen'))",
    "SELECT * FROM (DESCRIBE users)",
    "SELECT * FROM (SHOW TABLES)",
    "WITH x AS (INSERT INTO users VALUES (1) RETURNING *) SELECT * FROM x",
    "SELECT COUNT(*) INTO t FROM users",
    "SELECT COUNT(*) FROM users; DROP TABLE users",
    "SELECT COUNT(*) FROM users;; SELECT 1",
    "; SELECT 1",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM users",
    "COPY (SELECT COUNT(*) FROM users) TO 'x'",
    "ALTER TABLE users ADD COLUMN x INTEGER",
    "SET application_name = (SELECT zip FROM users)",
    "SET application_name = 'x', threads = 9",
    "SHOW TABLES FROM main",
    "BEGIN; SELECT 1",
    "",
    "-- nothing",
    "SELECT",
    "SELECT FROM ratings_wide",
    "SELECT COUNT(*) FROM",
)

WITH_NOISE = (
    "SELECT SUM(x) FROM (SELECT salary * age AS x FROM ratings_wide) t",
    "SELECT AVG(x) FROM (SELECT LEAST(salary, 70001) AS x FROM ratings_wide) t",
    "SELECT COVAR_POP(salary, age * age) FROM ratings_wide",
    "SELECT city || '', COUNT(*) FROM ratings_wide GROUP BY 1",
    "SELECT CASE WHEN city = 'Bergen' THEN 1 ELSE 0 END, COUNT(*) FROM ratings_wide GROUP BY 1",
    "SELECT city = 'Bergen', COUNT(*) FROM ratings_wide GROUP BY ALL",
    "SELECT length(city), COUNT(*) FROM ratings_wide GROUP BY 1",
    "SELECT GREATEST(city, 'Bergen'), COUNT(*) FROM ratings_wide GROUP BY 1",
    "SELECT NULLIF(city, 'Graz'), COUNT(*) FROM ratings_wide GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT DATE_TRUNC('month', rated_at) AS m FROM ratings) t WHERE m < '2024-02-01'",
    "SELECT DISTINCT warcross FROM ratings_wide",
    "SELECT warcross FROM ratings_wide GROUP BY warcross HAVING warcross = 5",
)
"""What mode measured answers, since every number it tells is noisy, and every group that it shows is large enough."""


def test_no_statement_twice() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 60


@pytest.mark.parametrize("at", range(len(HOSTILE)))
def test_refused(ask: Ask, at: int) -> None:
    with pytest.raises(Refused) as caught:
        ask(HOSTILE[at])
    assert caught.value.static
    assert caught.value.rule


@pytest.mark.parametrize("sql", WITH_NOISE)
def test_without_noise_it_is_refused(ask: Ask, sql: str) -> None:
    assert isinstance(ask(sql), Plan)
    with pytest.raises(Refused) as caught:
        ask(sql, mode="generalized")
    assert caught.value.static


@pytest.mark.parametrize("at", range(0, len(HOSTILE), 3))
def test_refused_under_a_generous_policy(ask: Ask, at: int) -> None:
    """More aggregates and margins let no statement of these pass."""
    for mode in ("measured", "generalized"):
        with pytest.raises(Refused):
            ask(HOSTILE[at], aggregates=ANSWERED[mode], margins=True, mode=mode)
