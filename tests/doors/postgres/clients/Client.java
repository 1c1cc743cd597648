// pgjdbc at the door: java -cp postgresql.jar Client.java jdbc:postgresql://127.0.0.1:5432/lake?user=admin
//
// Each check prints `ok NAME` or `FAILED NAME: why`; the last line counts them.

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Properties;
import org.postgresql.PGConnection;
import org.postgresql.PGStatement;
import org.postgresql.util.PSQLException;

public class Client {
    interface Check { void run(Connection db) throws Exception; }

    static String url;
    static int failed = 0, passed = 0;

    public static void main(String[] words) throws Exception {
        url = words[0];
        check("settings", Client::settings);
        check("statements", Client::statements);
        check("parameters as text", db -> parameters(db, 0));
        check("parameters as binary", db -> parameters(db, 1));
        check("prepared on the server", Client::prepared);
        check("fetch size", Client::fetchSize);
        check("batches", Client::batches);
        check("generated keys", Client::generatedKeys);
        check("transactions", Client::transactions);
        check("copy", Client::copy);
        check("errors", Client::errors);
        check("cancel", Client::cancel);
        check("notices", Client::notices);
        check("tables and columns", Client::tables);
        check("keys and indexes", Client::keys);
        check("catalog listings", Client::listings);
        check("columns of a result", Client::resultColumns);
        check("updatable rows", Client::updatable);
        System.out.println(passed + " passed, " + failed + " failed, pgjdbc " + version());
        System.exit(failed == 0 ? 0 : 1);
    }

    static String version() throws SQLException {
        return org.postgresql.Driver.getVersion().replace("PostgreSQL JDBC Driver ", "");
    }

    static Connection connect(String... settings) throws SQLException {
        Properties given = new Properties();
        for (String setting : settings) {
            String[] parts = setting.split("=");
            given.put(parts[0], parts[1]);
        }
        return DriverManager.getConnection(url, given);
    }

    static void check(String name, Check body) {
        try (Connection db = connect()) {
            body.run(db);
            System.out.println("ok " + name);
            passed++;
        } catch (Throwable error) {
            StackTraceElement place = Arrays.stream(error.getStackTrace())
                .filter(item -> item.getClassName().equals("Client")).findFirst().orElse(null);
            System.out.println("FAILED " + name + ": " + error + " at " + place);
            failed++;
        }
    }

    static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) throw new AssertionError("expected " + expected + ", found " + found);
    }

    static Object one(Connection db, String sql) throws SQLException {
        try (Statement statement = db.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getObject(1);
        }
    }

    static void run(Connection db, String sql) throws SQLException {
        try (Statement statement = db.createStatement()) { statement.execute(sql); }
    }

    static List<String> column(ResultSet rows, String name) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) found.add(rows.getString(name));
        rows.close();
        return found;
    }

    static void settings(Connection db) throws SQLException {
        DatabaseMetaData about = db.getMetaData();
        same(16, about.getDatabaseMajorVersion());
        same("PostgreSQL", about.getDatabaseProductName());
        same(true, db.isValid(5));
        same("public", db.getSchema());
        db.setSchema("public");
        db.setReadOnly(true);
        db.setReadOnly(false);
        same("lake", db.getCatalog());
        db.setClientInfo("ApplicationName", "jdbc");
        same("jdbc", one(db, "SHOW application_name"));
        same("admin", about.getUserName());
    }

    static void statements(Connection db) throws SQLException {
        run(db, "CREATE TABLE j_things (id INT, name TEXT)");
        try (Statement statement = db.createStatement()) {
            same(2, statement.executeUpdate("INSERT INTO j_things VALUES (1, 'a'), (2, NULL)"));
            same(true, statement.execute("SELECT 1; INSERT INTO j_things VALUES (3, 'c'); SELECT 2"));
            same(false, statement.getMoreResults());
            same(1, statement.getUpdateCount());
            same(true, statement.getMoreResults());
            same(1L, statement.executeLargeUpdate("DELETE FROM j_things WHERE id = 3"));
        }
        try (Statement statement = db.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY);
             ResultSet rows = statement.executeQuery("SELECT * FROM j_things ORDER BY id")) {
            rows.last();
            same(2, rows.getRow());
            rows.first();
            same("a", rows.getString("name"));
        }
        try (Statement statement = db.createStatement()) {
            statement.setEscapeProcessing(true);
            try (ResultSet rows = statement.executeQuery("SELECT {fn concat('a', 'b')}, {d '2024-02-29'}, {ts '2024-02-29 10:00:00'}")) {
                rows.next();
                same("ab", rows.getString(1));
                same(LocalDate.of(2024, 2, 29), rows.getObject(2, LocalDate.class));
            }
        }
    }

    static void parameters(Connection unused, int threshold) throws SQLException {
        try (Connection db = connect("prepareThreshold=" + (threshold == 1 ? -1 : 0), "binaryTransfer=" + (threshold == 1));
             PreparedStatement statement = db.prepareStatement(
                 "SELECT ?::int, ?::bigint, ?::smallint, ?::real, ?::float8, ?::numeric(20,4), ?::text, ?::boolean, ?::bytea,"
                 + " ?::date, ?::time, ?::timestamp, ?::timestamptz, ?::int[], ?::text[], ?::text, ?::varchar")) {
            OffsetDateTime at = OffsetDateTime.of(2024, 2, 29, 12, 30, 0, 500_000, ZoneOffset.UTC);
            for (int turn = 0; turn < 2; turn++) {
                statement.setInt(1, -7);
                statement.setLong(2, 1L << 40);
                statement.setShort(3, (short) 3);
                statement.setFloat(4, 1.5f);
                statement.setDouble(5, -2.25);
                statement.setBigDecimal(6, new BigDecimal("-12345678901.2345"));
                statement.setString(7, "it's é\n");
                statement.setBoolean(8, true);
                statement.setBytes(9, new byte[] {0, 65, -1});
                statement.setObject(10, LocalDate.of(1969, 7, 20));
                statement.setObject(11, LocalTime.of(1, 2, 3));
                statement.setObject(12, LocalDateTime.of(2024, 2, 29, 12, 30));
                statement.setObject(13, at);
                statement.setArray(14, db.createArrayOf("int4", new Integer[] {1, null, 3}));
                statement.setArray(15, db.createArrayOf("text", new String[] {"a b", null, "q\""}));
                statement.setNull(16, Types.VARCHAR);
                statement.setObject(17, "free");
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                    same(-7, rows.getInt(1));
                    same(1L << 40, rows.getLong(2));
                    same((short) 3, rows.getShort(3));
                    same(1.5f, rows.getFloat(4));
                    same(-2.25, rows.getDouble(5));
                    same(new BigDecimal("-12345678901.2345"), rows.getBigDecimal(6));
                    same("it's é\n", rows.getString(7));
                    same(true, rows.getBoolean(8));
                    same("[0, 65, -1]", Arrays.toString(rows.getBytes(9)));
                    same(LocalDate.of(1969, 7, 20), rows.getObject(10, LocalDate.class));
                    same(LocalTime.of(1, 2, 3), rows.getObject(11, LocalTime.class));
                    same(LocalDateTime.of(2024, 2, 29, 12, 30), rows.getObject(12, LocalDateTime.class));
                    same(at.toInstant(), rows.getObject(13, OffsetDateTime.class).toInstant());
                    same("[1, null, 3]", Arrays.toString((Object[]) rows.getArray(14).getArray()));
                    same("[a b, null, q\"]", Arrays.toString((Object[]) rows.getArray(15).getArray()));
                    same(null, rows.getString(16));
                    same("free", rows.getObject(17));
                }
            }
        }
    }

    static void prepared(Connection db) throws SQLException {
        run(db, "CREATE TABLE j_prepared (id INT, name TEXT, price DECIMAL(10,2), at TIMESTAMP)");
        try (PreparedStatement insert = db.prepareStatement("INSERT INTO j_prepared VALUES (?, ?, ?, ?)")) {
            for (int number = 0; number < 12; number++) {
                insert.setInt(1, number);
                insert.setString(2, "n" + number);
                insert.setBigDecimal(3, new BigDecimal(number).movePointLeft(2));
                insert.setTimestamp(4, Timestamp.valueOf("2024-01-01 00:00:0" + number % 10));
                same(1, insert.executeUpdate());
            }
            same(true, insert.unwrap(PGStatement.class).isUseServerPrepare());
        }
        try (PreparedStatement select = db.prepareStatement("SELECT name, price, at FROM j_prepared WHERE id = ?")) {
            for (int number = 0; number < 12; number++) {
                select.setInt(1, number);
                try (ResultSet rows = select.executeQuery()) {
                    rows.next();
                    same("n" + number, rows.getString(1));
                    same(0, new BigDecimal(number).movePointLeft(2).compareTo(rows.getBigDecimal(2)));
                    same(Timestamp.valueOf("2024-01-01 00:00:0" + number % 10), rows.getTimestamp(3));
                }
            }
            same("int4", select.getParameterMetaData().getParameterTypeName(1));
        }
        // What a statement reads is defined anew between two of its runs.
        try (PreparedStatement select = db.prepareStatement("SELECT * FROM j_prepared WHERE id = 1")) {
            for (int turn = 0; turn < 7; turn++) select.executeQuery().close();
            run(db, "ALTER TABLE j_prepared ADD COLUMN more INT");
            try (ResultSet rows = select.executeQuery()) {
                same(5, rows.getMetaData().getColumnCount());
            }
        }
    }

    static void fetchSize(Connection db) throws SQLException {
        db.setAutoCommit(false);
        try (Statement statement = db.createStatement()) {
            statement.setFetchSize(100);
            long sum = 0;
            try (ResultSet rows = statement.executeQuery("SELECT x FROM generate_series(1, 2500) g(x)")) {
                while (rows.next()) sum += rows.getLong(1);
            }
            same(2500L * 2501 / 2, sum);
            statement.setMaxRows(5);
            same(5, column(statement.executeQuery("SELECT x FROM generate_series(1, 2500) g(x)"), "x").size());
        }
        db.commit();
    }

    static void batches(Connection unused) throws SQLException {
        for (String rewrite : new String[] {"false", "true"}) {
            try (Connection db = connect("reWriteBatchedInserts=" + rewrite)) {
                run(db, "DROP TABLE IF EXISTS j_batch");
                run(db, "CREATE TABLE j_batch (id INT, name TEXT)");
                try (PreparedStatement insert = db.prepareStatement("INSERT INTO j_batch VALUES (?, ?)")) {
                    for (int number = 0; number < 1000; number++) {
                        insert.setInt(1, number);
                        insert.setString(2, "n" + number);
                        insert.addBatch();
                    }
                    same(1000, insert.executeBatch().length);
                }
                same(1000L, one(db, "SELECT count(*) FROM j_batch"));
                try (Statement batch = db.createStatement()) {
                    batch.addBatch("INSERT INTO j_batch VALUES (1000, 'x')");
                    batch.addBatch("UPDATE j_batch SET name = 'y' WHERE id = 1000");
                    same("[1, 1]", Arrays.toString(batch.executeBatch()));
                }
            }
        }
    }

    static void generatedKeys(Connection db) throws SQLException {
        run(db, "CREATE TABLE j_keys (id BIGINT GENERATED BY DEFAULT AS IDENTITY, name TEXT)");
        try (PreparedStatement insert = db.prepareStatement("INSERT INTO j_keys (name) VALUES (?)", new String[] {"id"})) {
            insert.setString(1, "first");
            insert.executeUpdate();
            try (ResultSet keys = insert.getGeneratedKeys()) {
                keys.next();
                same(1L, keys.getLong("id"));
            }
        }
        try (PreparedStatement insert = db.prepareStatement("INSERT INTO j_keys (name) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
            insert.setString(1, "second");
            insert.executeUpdate();
            same("[second]", column(insert.getGeneratedKeys(), "name").toString());
        }
    }

    static void transactions(Connection db) throws SQLException {
        run(db, "CREATE TABLE j_moved (a INT)");
        db.setAutoCommit(false);
        db.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        same(Connection.TRANSACTION_REPEATABLE_READ, db.getTransactionIsolation());
        run(db, "INSERT INTO j_moved VALUES (1)");
        Savepoint point = db.setSavepoint("half");
        run(db, "INSERT INTO j_moved VALUES (2)");
        db.rollback(point);
        db.commit();
        run(db, "INSERT INTO j_moved VALUES (3)");
        db.rollback();
        same(1L, one(db, "SELECT count(*) FROM j_moved"));
        db.commit();
        try (Connection saving = connect("autosave=always")) {
            saving.setAutoCommit(false);
            run(saving, "INSERT INTO j_moved VALUES (4)");
            try {
                run(saving, "SELECT nope");
                throw new AssertionError("a column that is not there");
            } catch (PSQLException expected) {
                same("42703", expected.getSQLState());
            }
            saving.commit();
            same(2L, one(saving, "SELECT count(*) FROM j_moved"));
        }
    }

    static void copy(Connection db) throws Exception {
        run(db, "CREATE TABLE j_copied (a INT, b TEXT)");
        org.postgresql.copy.CopyManager copies = db.unwrap(PGConnection.class).getCopyAPI();
        same(2L, copies.copyIn("COPY j_copied FROM STDIN (FORMAT csv)", new StringReader("1,x\n2,\n")));
        StringWriter out = new StringWriter();
        same(2L, copies.copyOut("COPY (SELECT * FROM j_copied ORDER BY a) TO STDOUT", out));
        same("1\tx\n2\t\\N\n", out.toString());
    }

    static void errors(Connection db) throws SQLException {
        run(db, "CREATE TABLE j_checked (a INT NOT NULL, b INT CONSTRAINT j_positive CHECK (b > 0), c INT UNIQUE)");
        try (PreparedStatement insert = db.prepareStatement("INSERT INTO j_checked VALUES (1, ?, 1)")) {
            insert.setInt(1, 0);
            insert.executeUpdate();
            throw new AssertionError("a check that fails");
        } catch (PSQLException error) {
            same("23514", error.getSQLState());
            same("j_positive", error.getServerErrorMessage().getConstraint());
            same("j_checked", error.getServerErrorMessage().getTable());
        }
        try {
            run(db, "SELECT 1 +\n nope");
            throw new AssertionError("a column that is not there");
        } catch (PSQLException error) {
            same("42703", error.getSQLState());
            same(13, error.getServerErrorMessage().getPosition());
        }
        same(1L, one(db, "SELECT 1"));
    }

    static void cancel(Connection db) throws Exception {
        String endless = "SELECT count(*) FROM generate_series(1, 1000000) a(x), generate_series(1, 1000000) b(y) WHERE x * y % 7 = 3";
        try (Statement statement = db.createStatement()) {
            statement.setQueryTimeout(1);
            statement.executeQuery(endless);
            throw new AssertionError("an endless query ended");
        } catch (SQLException error) {
            same("57014", error.getSQLState());
        }
        same(1L, one(db, "SELECT 1"));
    }

    static void notices(Connection db) throws SQLException {
        try (Statement statement = db.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS j_never_was");
            same(true, statement.getWarnings().getMessage().contains("j_never_was"));
        }
    }

    static void makeFamily(Connection db) throws SQLException {
        run(db, "CREATE TABLE IF NOT EXISTS j_parent (id INT NOT NULL, name VARCHAR DEFAULT 'x', code TEXT UNIQUE, PRIMARY KEY (id) NOT ENFORCED)");
        run(db, "CREATE TABLE IF NOT EXISTS j_child (id INT GENERATED ALWAYS AS IDENTITY, parent INT REFERENCES j_parent NOT ENFORCED,"
            + " price DECIMAL(12,3), tags TEXT[], at TIMESTAMPTZ, CHECK (price > 0))");
        run(db, "COMMENT ON TABLE j_parent IS 'the parent'");
        run(db, "CREATE OR REPLACE VIEW j_view AS SELECT id, name FROM j_parent");
    }

    static void tables(Connection db) throws SQLException {
        makeFamily(db);
        DatabaseMetaData about = db.getMetaData();
        try (ResultSet rows = about.getTables(null, "public", "j\\_parent", new String[] {"TABLE"})) {
            rows.next();
            same("j_parent", rows.getString("TABLE_NAME"));
            same("TABLE", rows.getString("TABLE_TYPE"));
            same("the parent", rows.getString("REMARKS"));
        }
        same("[j_view]", column(about.getTables(null, null, "j%", new String[] {"VIEW"}), "TABLE_NAME").toString());
        same(true, column(about.getTables(null, "pg_catalog", "%", null), "TABLE_NAME").contains("pg_class"));
        List<String> found = new ArrayList<>();
        try (ResultSet rows = about.getColumns(null, "public", "j_child", "%")) {
            while (rows.next()) {
                found.add(rows.getString("COLUMN_NAME") + " " + rows.getString("TYPE_NAME") + " " + rows.getInt("DATA_TYPE") + " "
                    + rows.getInt("COLUMN_SIZE") + " " + rows.getInt("DECIMAL_DIGITS") + " " + rows.getString("IS_NULLABLE") + " "
                    + rows.getString("IS_AUTOINCREMENT"));
            }
        }
        same("[id int4 4 10 0 NO YES, parent int4 4 10 0 YES NO, price numeric 2 12 3 YES NO,"
            + " tags _text 2003 2147483647 0 YES NO, at timestamptz 93 35 6 YES NO]", found.toString());
    }

    static void keys(Connection db) throws SQLException {
        makeFamily(db);
        DatabaseMetaData about = db.getMetaData();
        same("[id]", column(about.getPrimaryKeys(null, "public", "j_parent"), "COLUMN_NAME").toString());
        same("[j_parent]", column(about.getImportedKeys(null, "public", "j_child"), "PKTABLE_NAME").toString());
        same("[j_child]", column(about.getExportedKeys(null, "public", "j_parent"), "FKTABLE_NAME").toString());
        same("[parent]", column(about.getCrossReference(null, null, "j_parent", null, null, "j_child"), "FKCOLUMN_NAME").toString());
        same(true, column(about.getIndexInfo(null, "public", "j_parent", false, true), "COLUMN_NAME").contains("code"));
        same("[id]", column(about.getBestRowIdentifier(null, "public", "j_parent", 0, false), "COLUMN_NAME").toString());
        about.getVersionColumns(null, "public", "j_parent").close();
    }

    static void listings(Connection db) throws SQLException {
        DatabaseMetaData about = db.getMetaData();
        same("[lake]", column(about.getCatalogs(), "TABLE_CAT").toString());
        same(true, column(about.getSchemas(), "TABLE_SCHEM").containsAll(List.of("public", "pg_catalog", "information_schema")));
        same(true, column(about.getTableTypes(), "TABLE_TYPE").contains("VIEW"));
        same(true, column(about.getTypeInfo(), "TYPE_NAME").containsAll(List.of("int4", "text", "timestamptz", "numeric")));
        same(true, column(about.getFunctions(null, "pg_catalog", "lower"), "FUNCTION_NAME").contains("lower"));
        about.getFunctionColumns(null, "pg_catalog", "lower", "%").close();
        about.getProcedures(null, null, "%").close();
        about.getProcedureColumns(null, null, "j%", "%").close();
        about.getTablePrivileges(null, "public", "j%").close();
        about.getColumnPrivileges(null, "public", "j_parent", "%").close();
        about.getUDTs(null, null, "%", null).close();
        about.getClientInfoProperties().close();
        same(true, about.getSQLKeywords().length() > 10);
        same(true, about.getMaxColumnNameLength() > 0);
    }

    static void resultColumns(Connection db) throws SQLException {
        makeFamily(db);
        try (Statement statement = db.createStatement();
             ResultSet rows = statement.executeQuery("SELECT id, price AS cost, at, 1 + 1 AS two FROM j_child")) {
            ResultSetMetaData about = rows.getMetaData();
            same("cost", about.getColumnLabel(2));
            same("numeric", about.getColumnTypeName(2));
            same(12, about.getPrecision(2));
            same(3, about.getScale(2));
            same("java.sql.Timestamp", about.getColumnClassName(3));
            same("j_child", about.getTableName(1));
            same("price", ((org.postgresql.PGResultSetMetaData) about).getBaseColumnName(2));
            same(ResultSetMetaData.columnNoNulls, about.isNullable(1));
            same(true, about.isAutoIncrement(1));
            same("", about.getTableName(4));
        }
    }

    static void updatable(Connection db) throws SQLException {
        run(db, "CREATE TABLE j_updated (id INT, name TEXT, PRIMARY KEY (id))");
        run(db, "INSERT INTO j_updated VALUES (1, 'a'), (2, 'b')");
        try (Statement statement = db.createStatement(ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_UPDATABLE);
             ResultSet rows = statement.executeQuery("SELECT id, name FROM j_updated WHERE id = 2")) {
            rows.next();
            rows.updateString("name", "changed");
            rows.updateRow();
            rows.moveToInsertRow();
            rows.updateInt("id", 3);
            rows.updateString("name", "c");
            rows.insertRow();
        }
        same("changed", one(db, "SELECT name FROM j_updated WHERE id = 2"));
        same(3L, one(db, "SELECT count(*) FROM j_updated"));
    }
}
