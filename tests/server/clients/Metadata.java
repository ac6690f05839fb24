// JDBC: its metadata, a prepared statement, and rows in portions.
import java.sql.*;
import java.util.*;

public class Metadata {
    interface Work { Object run() throws Exception; }

    static String json(Object value) {
        if (value instanceof List) {
            StringJoiner joined = new StringJoiner(", ", "[", "]");
            for (Object each : (List<?>) value) joined.add(json(each));
            return joined.toString();
        }
        if (value instanceof Number) return value.toString();
        return '"' + String.valueOf(value).replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ") + '"';
    }

    static void step(String name, Work work) {
        try {
            System.out.println("{\"step\": \"" + name + "\", \"value\": " + json(work.run()) + "}");
        } catch (Exception error) {
            System.out.println("{\"step\": \"" + name + "\", \"error\": " + json(error.toString()) + "}");
        }
    }

    static List<Object> named(ResultSet rows, String column) throws SQLException {
        List<Object> found = new ArrayList<>();
        while (rows.next()) found.add(rows.getString(column));
        return found;
    }

    static List<Object> groups(Connection connection, int portion) throws SQLException {
        String sql = "SELECT city, COUNT(*) AS n FROM people WHERE film_a IN (?,?) GROUP BY city ORDER BY city";
        try (PreparedStatement asked = connection.prepareStatement(sql)) {
            asked.setFetchSize(portion);
            asked.setInt(1, 2);
            asked.setInt(2, 3);
            List<Object> found = new ArrayList<>();
            ResultSet rows = asked.executeQuery();
            while (rows.next()) found.add(List.of(rows.getString("city"), rows.getLong("n")));
            return found;
        }
    }

    static Object first(Connection connection, String sql, String column) throws SQLException {
        try (Statement asked = connection.createStatement()) {
            ResultSet rows = asked.executeQuery(sql);
            rows.next();
            return rows.getObject(column);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> env = System.getenv();
        String url = "jdbc:postgresql://" + env.get("PGHOST") + ":" + env.get("PGPORT") + "/" + env.get("PGDATABASE");
        Connection connection = DriverManager.getConnection(url, env.get("PGUSER"), env.get("PGPASSWORD"));
        DatabaseMetaData metadata = connection.getMetaData();
        step("connects", () -> first(connection, "SELECT 1 AS one", "one"));
        step("tables", () -> named(metadata.getTables(null, "main", "%", new String[] {"TABLE"}), "TABLE_NAME"));
        step("columns", () -> named(metadata.getColumns(null, "main", "people", "%"), "COLUMN_NAME"));
        step("count", () -> first(connection, "SELECT COUNT(*) FROM people", "count"));
        step("average", () -> first(connection, "SELECT AVG(salary) FROM people", "avg"));
        step("groups", () -> groups(connection, 0));
        step("refusal", () -> {
            try {
                first(connection, "SELECT AVG(salary) FROM people WHERE zip = 'Z1'", "avg");
            } catch (SQLException error) {
                return error.getMessage();
            }
            throw new Exception("This had to be refused.");
        });
        step("cursor", () -> {
            connection.setAutoCommit(false);
            return groups(connection, 2);
        });
        connection.close();
    }
}
