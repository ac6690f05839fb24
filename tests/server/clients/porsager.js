// porsager's postgres.
const postgres = require("postgres");
const { COUNT, AVERAGE, REFUSED, TABLES, step, refusal } = require("./common.js");

(async () => {
  const sql = postgres({ onnotice: () => {} });
  await step("connects", async () => (await sql`SELECT 1 AS one`)[0].one);
  await step("tables", async () => (await sql.unsafe(TABLES)).map((row) => row.table_name));
  await step("columns", async () =>
    (await sql`SELECT column_name FROM information_schema.columns WHERE table_name = ${"people"} ORDER BY ordinal_position`).map(
      (row) => row.column_name,
    ),
  );
  await step("count", async () => (await sql.unsafe(COUNT))[0].count);
  await step("average", async () => (await sql.unsafe(AVERAGE))[0].avg);
  await step("groups", () =>
    sql`SELECT city, COUNT(*) AS n FROM people WHERE film_a IN (${2},${3}) GROUP BY city ORDER BY city`.values(),
  );
  await step("refusal", () => refusal(() => sql.unsafe(REFUSED)));
  await step("cursor", async () => {
    const found = [];
    const asked = sql`SELECT city, COUNT(*) AS n FROM people WHERE film_a IN ${sql([2, 3])} GROUP BY city ORDER BY city`;
    await asked.cursor(2, (portion) => found.push(...portion.map((row) => [row.city, row.n])));
    return found;
  });
  await step("array", () => sql`SELECT COUNT(*) FROM people WHERE film_a = ANY(${[2, 3]})`.values());
  await sql.end();
})();
