// What scripts of node's clients share. pg reads PGHOST and its kin by itself.
const COUNT = "SELECT COUNT(*) FROM people";
const AVERAGE = "SELECT AVG(salary) FROM people";
const GROUPS = (one, other) =>
  `SELECT city, COUNT(*) AS n FROM people WHERE film_a IN (${one},${other}) GROUP BY city ORDER BY city`;
const REFUSED = "SELECT AVG(salary) FROM people WHERE zip = 'Z1'";
const TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY 1";
const COLUMNS = "SELECT column_name FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position";

const step = async (name, work) => {
  let told;
  try {
    told = { step: name, value: await work() };
  } catch (error) {
    told = { step: name, error: String(error) };
  }
  console.log(JSON.stringify(told));
};

const refusal = async (work) => {
  try {
    await work();
  } catch (error) {
    return String(error);
  }
  throw new Error("This had to be refused.");
};

module.exports = { COUNT, AVERAGE, GROUPS, REFUSED, TABLES, COLUMNS, step, refusal };
