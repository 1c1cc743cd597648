// node-postgres at the door: NODE_PATH=.. node client.js postgres://admin@127.0.0.1:5432/lake
//
// Each check prints `ok NAME` or `FAILED NAME: why`; the last line counts them.

"use strict";

const assert = require("node:assert/strict");
const { Client, Pool, Query } = require("pg");

const url = process.argv[2];
const checks = {
  async settings(db) {
    const shown = await db.query("SHOW server_version");
    assert.equal(shown.rows[0].server_version, "16.0");
    await db.query("SET application_name = 'node'");
    const { rows } = await db.query("SELECT current_setting('application_name') AS name");
    assert.deepEqual(rows, [{ name: "node" }]);
  },

  async "simple queries"(db) {
    const [one, two] = await db.query("SELECT 1 AS a; SELECT 'x' AS b, NULL AS c");
    assert.deepEqual(one.rows, [{ a: "1" }]); // bigint comes as text, for it may not fit a number
    assert.deepEqual(two.rows, [{ b: "x", c: null }]);
    assert.equal(two.command, "SELECT");
    const empty = await db.query("");
    assert.equal(empty.rowCount, null);
  },

  async "types as text"(db) {
    const { rows, fields } = await db.query(
      "SELECT 7::int AS i, 1.5::float8 AS d, 1.25::numeric(6,2) AS n, true AS b, 'é' AS t, '\\x00ff'::bytea AS y, " +
        "DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 12:30:00' AS at, TIMESTAMPTZ '2024-02-29 12:30:00+00' AS atz, " +
        "ARRAY[1, NULL, 3]::int[] AS list, ARRAY['a b', 'q\"'] AS words, INTERVAL '1 day 02:00:00' AS span",
    );
    const row = rows[0];
    assert.equal(row.i, 7);
    assert.equal(row.d, 1.5);
    assert.equal(row.n, "1.25");
    assert.equal(row.b, true);
    assert.equal(row.t, "é");
    assert.deepEqual(row.y, Buffer.from([0, 255]));
    assert.deepEqual(row.day, new Date(2024, 1, 29));
    assert.deepEqual(row.at, new Date(2024, 1, 29, 12, 30));
    assert.deepEqual(row.atz, new Date("2024-02-29T12:30:00Z"));
    assert.deepEqual(row.list, [1, null, 3]);
    assert.deepEqual(row.words, ["a b", 'q"']);
    assert.equal(row.span.days, 1);
    assert.equal(row.span.hours, 2);
    assert.equal(fields.find((field) => field.name === "list").dataTypeID, 1007);
    assert.equal(fields.find((field) => field.name === "n").dataTypeModifier, ((6 << 16) | 2) + 4);
  },

  async "types as binary"(db) {
    const result = await db.query({ text: "SELECT 7::int AS i, true AS b, $1::text AS t", values: ["x"], binary: true });
    assert.deepEqual(result.rows, [{ i: 7, b: true, t: "x" }]);
    assert.equal(result.fields[0].format, "binary");
  },

  async parameters(db) {
    const at = new Date("2024-02-29T12:30:00.123Z");
    const { rows } = await db.query(
      "SELECT $1::int AS a, $2::text AS b, $3::timestamptz AS c, $4::int[] AS d, $5::bytea AS e, $6::json AS f, $7::bool AS g, $8 AS h",
      [1, "it's", at, [1, 2], Buffer.from([1, 2]), { k: [1] }, true, null],
    );
    assert.deepEqual(rows, [
      { a: 1, b: "it's", c: at, d: [1, 2], e: Buffer.from([1, 2]), f: { k: [1] }, g: true, h: null },
    ]);
    const array = await db.query({ text: "SELECT $1::int, 2::int", values: [1], rowMode: "array" });
    assert.deepEqual(array.rows, [[1, 2]]);
  },

  async "named statements"(db) {
    await db.query("CREATE TABLE n_named (id INT, name TEXT)");
    for (let number = 0; number < 10; number++) {
      const done = await db.query({ name: "add", text: "INSERT INTO n_named VALUES ($1, $2)", values: [number, `n${number}`] });
      assert.equal(done.rowCount, 1);
    }
    for (let number = 0; number < 10; number++) {
      const found = await db.query({ name: "one", text: "SELECT name FROM n_named WHERE id = $1", values: [number] });
      assert.deepEqual(found.rows, [{ name: `n${number}` }]);
    }
    const made = await db.query("INSERT INTO n_named VALUES ($1, $2) RETURNING id, upper(name) AS name", [77, "x"]);
    assert.deepEqual(made.rows, [{ id: 77, name: "X" }]);
  },

  async "queued queries"(db) {
    const numbers = Array.from({ length: 50 }, (_, number) => number);
    const answers = await Promise.all(numbers.map((number) => db.query("SELECT $1::int AS n", [number])));
    assert.deepEqual(answers.map((answer) => answer.rows[0].n), numbers);
  },

  async "portals of some rows"(db) {
    // What pg-cursor and pg-query-stream do: Execute with a row limit, again and again.
    const portal = { text: "SELECT x::int AS x FROM generate_series(1, 1000) g(x)", rows: 64 };
    const query = db.query(new Query(portal));
    let count = 0;
    query.on("row", () => count++);
    await new Promise((done, fail) => query.on("end", done).on("error", fail));
    assert.equal(count, 1000);
  },

  async transactions(db) {
    await db.query("CREATE TABLE n_moved (a INT)");
    await db.query("BEGIN");
    await db.query("INSERT INTO n_moved VALUES ($1)", [1]);
    await assert.rejects(db.query("SELECT nope"), { code: "42703" });
    await assert.rejects(db.query("SELECT 1"), { code: "25P02" });
    assert.equal((await db.query("COMMIT")).command, "ROLLBACK");
    assert.equal((await db.query("SELECT count(*)::int AS n FROM n_moved")).rows[0].n, 0);
  },

  async errors(db) {
    await db.query("CREATE TABLE n_checked (a INT NOT NULL, b INT CONSTRAINT n_positive CHECK (b > 0))");
    await assert.rejects(db.query("INSERT INTO n_checked VALUES (1, $1)", [0]), (error) => {
      assert.equal(error.code, "23514");
      assert.equal(error.constraint, "n_positive");
      assert.equal(error.table, "n_checked");
      assert.equal(error.severity, "ERROR");
      return true;
    });
    await assert.rejects(db.query("INSERT INTO n_checked VALUES (NULL, 1)"), { code: "23502", column: "a" });
    await assert.rejects(db.query("SELECT 1,\n nope"), { code: "42703", position: "12" });
    await assert.rejects(db.query("SELECT $1::int", ["x"]), { code: "22P02" });
  },

  async notices(db) {
    const heard = [];
    db.on("notice", (notice) => heard.push(notice.message));
    await db.query("DROP TABLE IF EXISTS n_never_was");
    assert.equal(heard.length, 1);
    assert.match(heard[0], /n_never_was/);
  },

  async "a pool"() {
    const pool = new Pool({ connectionString: url, max: 5, statement_timeout: 60000 });
    const answers = await Promise.all(Array.from({ length: 40 }, (_, number) => pool.query("SELECT $1::int AS n", [number])));
    assert.equal(answers.length, 40);
    await assert.rejects(pool.query("SELECT nope"), { code: "42703" });
    await pool.end();
  },

  async cancel(db) {
    await db.query("SET statement_timeout = 200");
    const endless = "SELECT count(*) FROM generate_series(1, 1000000) a(x), generate_series(1, 1000000) b(y) WHERE x * y % 7 = 3";
    await assert.rejects(db.query(endless), { code: "57014" });
    await db.query("RESET statement_timeout");
    const { rows } = await db.query("SELECT pg_backend_pid() AS pid");
    assert.equal(rows[0].pid, db.processID);
  },
};

async function main() {
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    const db = new Client({ connectionString: url });
    try {
      await db.connect();
      await check(db);
      console.log(`ok ${name}`);
    } catch (error) {
      failed++;
      console.log(`FAILED ${name}: ${error.stack}`);
    } finally {
      await db.end();
    }
  }
  const { version } = require("pg/package.json");
  console.log(`${Object.keys(checks).length - failed} passed, ${failed} failed, node-postgres ${version}, node ${process.version}`);
  process.exit(failed ? 1 : 0);
}

main();
