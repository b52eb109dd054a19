import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.postgresql.PGConnection;

/** PgJDBC against the server that the environment names. */
public class Check {
    static void same(Object wanted, Object is) {
        if (!wanted.equals(is)) throw new AssertionError("wanted " + wanted + ", but it is " + is);
    }

    static Connection connect() throws SQLException {
        Properties with = new Properties();
        with.setProperty("user", System.getenv("PGUSER"));
        with.setProperty("password", System.getenv("PGPASSWORD"));
        with.setProperty("sslmode", System.getenv("PGSSLMODE"));
        if (!System.getenv("PGSSLROOTCERT").isEmpty()) with.setProperty("sslrootcert", System.getenv("PGSSLROOTCERT"));
        return DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/anabranch", with);
    }

    public static void main(String[] args) throws Exception {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            if (args.length > 0 && args[0].equals("copy")) {
                statement.execute("DROP TABLE IF EXISTS jdbc_c CASCADE");
                statement.execute("CREATE TABLE jdbc_c (k int PRIMARY KEY, s varchar(20))");
                copy(connection, statement);
                System.out.println("ok");
                return;
            }
            statement.execute("DROP TABLE IF EXISTS jdbc_t CASCADE");
            statement.execute("CREATE TABLE jdbc_t (k int PRIMARY KEY, s varchar(20), n numeric(10,2), z timestamptz)");
            // More often than the threshold at which values go as binary.
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc_t VALUES (?, ?, ?, ?)")) {
                for (int k = 0; k < 20; k++) {
                    insert.setInt(1, k);
                    insert.setString(2, "s" + k);
                    insert.setBigDecimal(3, new BigDecimal("1.50"));
                    insert.setTimestamp(4, new Timestamp(1_700_000_000_000L));
                    same(1, insert.executeUpdate());
                }
            }
            try (PreparedStatement select = connection.prepareStatement("SELECT s, n, z FROM jdbc_t WHERE k = ?")) {
                for (int k = 0; k < 20; k++) {
                    select.setInt(1, k);
                    try (ResultSet rows = select.executeQuery()) {
                        same(true, rows.next());
                        same("s" + k, rows.getString(1));
                        same(new BigDecimal("1.50"), rows.getBigDecimal(2));
                        same(1_700_000_000_000L, rows.getTimestamp(3).getTime());
                    }
                }
            }
            transactions(connection, statement);
            cursor(connection);
            metadata(connection);
            cancel(statement);
        }
        System.out.println("ok");
    }

    static void transactions(Connection connection, Statement statement) throws SQLException {
        connection.setAutoCommit(false);
        statement.executeUpdate("UPDATE jdbc_t SET s = 'x'");
        connection.rollback();
        try {
            statement.executeUpdate("INSERT INTO jdbc_t (k) VALUES (1)");
            connection.commit();
            throw new AssertionError("a key was there twice");
        } catch (SQLException error) {
            same("23505", error.getSQLState());
            connection.rollback();
        }
        connection.setAutoCommit(true);
        try (ResultSet rows = statement.executeQuery("SELECT count(*) FROM jdbc_t WHERE s = 'x'")) {
            rows.next();
            same(0, rows.getInt(1));
        }
    }

    static void cursor(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(3);
            int n = 0;
            try (ResultSet rows = statement.executeQuery("SELECT k FROM jdbc_t ORDER BY k")) {
                while (rows.next()) same(n++, rows.getInt(1));
            }
            same(20, n);
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    static void metadata(Connection connection) throws SQLException {
        DatabaseMetaData metadata = connection.getMetaData();
        List<String> found = new ArrayList<>();
        try (ResultSet rows = metadata.getTables(null, "public", "jdbc_%", new String[] {"TABLE"})) {
            while (rows.next()) found.add(rows.getString("TABLE_NAME"));
        }
        same(List.of("jdbc_t"), found);
        found.clear();
        try (ResultSet rows = metadata.getColumns(null, "public", "jdbc_t", null)) {
            while (rows.next()) found.add(rows.getString("COLUMN_NAME") + " " + rows.getString("TYPE_NAME"));
        }
        same(List.of("k int4", "s varchar", "n numeric", "z timestamptz"), found);
        keys(connection, metadata);
        others(metadata);
    }

    /** The values of one column, in order. */
    static List<String> column(ResultSet of, String name) throws SQLException {
        List<String> found = new ArrayList<>();
        try (ResultSet rows = of) {
            while (rows.next()) found.add(rows.getString(name));
        }
        return found;
    }

    static void keys(Connection connection, DatabaseMetaData metadata) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS jdbc_keys CASCADE");
            statement.execute("CREATE TABLE jdbc_keys (a int, b int, c text, PRIMARY KEY (b, a))");
            statement.execute("CREATE INDEX jdbc_by_c ON jdbc_keys (c, a)");
            statement.execute("CREATE VIEW jdbc_v AS SELECT a FROM jdbc_keys");
            statement.execute("CREATE MATERIALIZED VIEW jdbc_m AS SELECT count(*) AS n FROM jdbc_keys");
        }
        List<String> key = new ArrayList<>();
        try (ResultSet rows = metadata.getPrimaryKeys(null, "public", "jdbc_keys")) {
            while (rows.next()) key.add(rows.getString("COLUMN_NAME") + rows.getShort("KEY_SEQ") + rows.getString("PK_NAME"));
        }
        same(List.of("b1jdbc_keys_pkey", "a2jdbc_keys_pkey"), key);
        List<String> indexes = new ArrayList<>();
        try (ResultSet rows = metadata.getIndexInfo(null, "public", "jdbc_keys", false, false)) {
            while (rows.next()) {
                indexes.add(rows.getString("INDEX_NAME") + " " + rows.getShort("ORDINAL_POSITION") + " "
                    + rows.getString("COLUMN_NAME") + " " + rows.getBoolean("NON_UNIQUE"));
            }
        }
        same(List.of("jdbc_keys_pkey 1 b false", "jdbc_keys_pkey 2 a false", "jdbc_by_c 1 c true", "jdbc_by_c 2 a true"),
            indexes);
        List<String> best = column(metadata.getBestRowIdentifier(null, "public", "jdbc_keys",
            DatabaseMetaData.bestRowSession, false), "COLUMN_NAME");
        best.sort(null);
        same(List.of("a", "b"), best);
        same(List.of(), column(metadata.getImportedKeys(null, "public", "jdbc_keys"), "PKCOLUMN_NAME"));
        same(List.of(), column(metadata.getExportedKeys(null, "public", "jdbc_keys"), "PKCOLUMN_NAME"));
        same(List.of(), column(metadata.getCrossReference(null, null, "jdbc_keys", null, null, "jdbc_t"), "FK_NAME"));
        same(List.of("jdbc_v"), column(metadata.getTables(null, "public", "jdbc_v", new String[] {"VIEW"}), "TABLE_NAME"));
        same(List.of("jdbc_m"), column(metadata.getTables(null, "public", "jdbc%", new String[] {"MATERIALIZED VIEW"}), "TABLE_NAME"));
    }

    static void others(DatabaseMetaData metadata) throws SQLException {
        same(List.of("anabranch"), column(metadata.getCatalogs(), "TABLE_CAT"));
        same(true, column(metadata.getSchemas(), "TABLE_SCHEM").contains("public"));
        same(true, column(metadata.getTypeInfo(), "TYPE_NAME").contains("timestamptz"));
        same(true, column(metadata.getTableTypes(), "TABLE_TYPE").contains("MATERIALIZED VIEW"));
        same(List.of(), column(metadata.getFunctions(null, "public", "%"), "FUNCTION_NAME"));
        same(List.of(), column(metadata.getProcedures(null, "public", "%"), "PROCEDURE_NAME"));
        same(List.of(), column(metadata.getUDTs(null, null, "%", null), "TYPE_NAME"));
        same(true, column(metadata.getVersionColumns(null, "public", "jdbc_keys"), "COLUMN_NAME").contains("ctid"));
        column(metadata.getColumnPrivileges(null, "public", "jdbc_keys", "%"), "PRIVILEGE");
        column(metadata.getTablePrivileges(null, "public", "jdbc_keys"), "PRIVILEGE");
        same(15, metadata.getDatabaseMajorVersion());
        same(true, metadata.getMaxColumnNameLength() > 0);
    }

    static void cancel(Statement statement) throws Exception {
        Thread canceller = new Thread(() -> {
            try {
                Thread.sleep(500);
                statement.cancel();
            } catch (Exception error) {
                throw new AssertionError(error);
            }
        });
        canceller.start();
        try {
            statement.execute("SUBSCRIBE jdbc_t");
            throw new AssertionError("a subscription ended");
        } catch (SQLException error) {
            same("57014", error.getSQLState());
        }
        canceller.join();
    }

    static void copy(Connection connection, Statement statement) throws Exception {
        var copies = connection.unwrap(PGConnection.class).getCopyAPI();
        same(2L, copies.copyIn("COPY jdbc_c (k, s) FROM STDIN", new StringReader("100\ta\n101\t\\N\n")));
        StringWriter out = new StringWriter();
        copies.copyOut("COPY (SELECT k, s FROM jdbc_c WHERE k >= 100 ORDER BY k) TO STDOUT", out);
        same("100\ta\n101\t\\N\n", out.toString());
    }
}
