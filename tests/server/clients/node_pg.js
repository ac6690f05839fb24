// node's pg, with its cursor.
const { Client } = require("pg");
const Cursor = require("pg-cursor");
const { COUNT, AVERAGE, GROUPS, REFUSED, TABLES, COLUMNS, step, refusal } = require("./common.js");

(async () => {
  const client = new Client();
  await client.connect();
  const rows = async (sql, values) => (await client.query({ text: sql, values, rowMode: "array" })).rows;
  await step("connects", async () => (await rows("SELECT 1"))[0][0]);
  await step("tables", async () => (await rows(TABLES)).map((row) => row[0]));
  await step("columns", async () => (await rows(COLUMNS, ["people"])).map((row) => row[0]));
  await step("count", async () => (await client.query(COUNT)).rows[0].count);
  await step("average", async () => (await client.query(AVERAGE)).rows[0].avg);
  await step("groups", () => rows(GROUPS("$1", "$2"), [2, 3]));
  await step("refusal", () => refusal(() => rows(REFUSED)));
  await step("cursor", async () => {
    const cursor = client.query(new Cursor(GROUPS("$1", "$2"), [2, 3], { rowMode: "array" }));
    const found = [];
    for (let portion = await cursor.read(2); portion.length; portion = await cursor.read(2)) found.push(...portion);
    await cursor.close();
    return found;
  });
  await step("array", () => rows("SELECT city, COUNT(*) FROM people WHERE film_a = ANY($1) GROUP BY city ORDER BY 1", [[2, 3]]));
  await client.end();
})();
