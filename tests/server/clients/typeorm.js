// TypeORM.
const { DataSource, EntitySchema, In } = require("typeorm");
const { AVERAGE, COLUMNS, REFUSED, step, refusal } = require("./common.js");

const Person = new EntitySchema({
  name: "Person",
  tableName: "people",
  columns: { person_id: { type: "bigint", primary: true }, city: { type: "text" }, film_a: { type: "bigint" } },
});

(async () => {
  const { PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE } = process.env;
  const source = new DataSource({
    type: "postgres",
    host: PGHOST,
    port: Number(PGPORT),
    username: PGUSER,
    password: PGPASSWORD,
    database: PGDATABASE,
    entities: [Person],
    installExtensions: false,
  });
  await step("connects", async () => {
    await source.initialize();
    return 1;
  });
  const people = source.getRepository("Person");
  const runner = source.createQueryRunner();
  await step("tables", async () =>
    (await source.query("SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY 1")).map(
      (row) => row.table_name,
    ),
  );
  await step("columns", async () => {
    await runner.getTable("people");
    return (await source.query(COLUMNS, ["people"])).map((row) => row.column_name);
  });
  await step("count", () => people.count());
  await step("average", async () => (await source.query(AVERAGE))[0].avg);
  await step("groups", async () =>
    (
      await people
        .createQueryBuilder("p")
        .select("p.city", "city")
        .addSelect("COUNT(*)", "n")
        .where({ film_a: In([2, 3]) })
        .groupBy("p.city")
        .orderBy("p.city")
        .getRawMany()
    ).map((row) => [row.city, row.n]),
  );
  await step("refusal", () => refusal(() => source.query(REFUSED)));
  await source.destroy();
})();
