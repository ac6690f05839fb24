// Sequelize.
const { Sequelize, DataTypes, QueryTypes } = require("sequelize");
const { COUNT, AVERAGE, REFUSED, step, refusal } = require("./common.js");

(async () => {
  const { PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE } = process.env;
  const sequelize = new Sequelize(PGDATABASE, PGUSER, PGPASSWORD, {
    host: PGHOST,
    port: Number(PGPORT),
    dialect: "postgres",
    logging: false,
    schema: "main",
  });
  const rows = (sql, replacements) => sequelize.query(sql, { replacements, type: QueryTypes.SELECT });
  const Person = sequelize.define(
    "people",
    { person_id: { type: DataTypes.INTEGER, primaryKey: true }, city: DataTypes.TEXT, film_a: DataTypes.INTEGER },
    { tableName: "people", timestamps: false },
  );
  await step("connects", async () => {
    await sequelize.authenticate();
    return 1;
  });
  await step("tables", async () =>
    (await sequelize.getQueryInterface().showAllTables({ schema: "main" })).map((table) => table.tableName ?? table).sort(),
  );
  await step("columns", async () =>
    Object.keys(await sequelize.getQueryInterface().describeTable("people", { schema: "main" })),
  );
  await step("count", () => Person.count());
  await step("average", async () => (await rows(AVERAGE))[0].avg);
  await step("groups", async () =>
    (
      await Person.findAll({
        attributes: ["city", [sequelize.fn("COUNT", sequelize.col("*")), "n"]],
        where: { film_a: [2, 3] },
        group: ["city"],
        order: ["city"],
        raw: true,
      })
    ).map((row) => [row.city, row.n]),
  );
  await step("refusal", () => refusal(() => rows(REFUSED)));
  await sequelize.close();
})();
