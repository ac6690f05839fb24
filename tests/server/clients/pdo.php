<?php
// PHP's pgsql and PDO.
function step($name, $work) {
    try {
        $told = ["step" => $name, "value" => $work()];
    } catch (Throwable $error) {
        $told = ["step" => $name, "error" => $error->getMessage()];
    }
    echo json_encode($told), "\n";
}

$dsn = "pgsql:host=" . getenv("PGHOST") . ";port=" . getenv("PGPORT") . ";dbname=" . getenv("PGDATABASE");
$pdo = new PDO($dsn, getenv("PGUSER"), getenv("PGPASSWORD"), [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$rows = function ($sql, $values = []) use ($pdo) {
    $asked = $pdo->prepare($sql);
    $asked->execute($values);
    return $asked->fetchAll(PDO::FETCH_NUM);
};
$groups = "SELECT city, COUNT(*) AS n FROM people WHERE film_a IN (?, ?) GROUP BY city ORDER BY city";
step("connects", fn() => $rows("SELECT 1")[0][0]);
step("tables", fn() => array_column($rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY 1"), 0));
step("columns", function () {
    $db = pg_connect("host=" . getenv("PGHOST") . " port=" . getenv("PGPORT") . " dbname=" . getenv("PGDATABASE"));
    return array_keys(pg_meta_data($db, "main.people"));
});
step("count", fn() => $rows("SELECT COUNT(*) FROM people")[0][0]);
step("average", fn() => $rows("SELECT AVG(salary) FROM people")[0][0]);
step("groups", fn() => $rows($groups, [2, 3]));
step("refusal", function () use ($rows) {
    try {
        $rows("SELECT AVG(salary) FROM people WHERE zip = 'Z1'");
    } catch (PDOException $error) {
        return $error->getMessage();
    }
    throw new Exception("This had to be refused.");
});
