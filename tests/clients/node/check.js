// node-postgres against the server that the environment names.
const assert = require("node:assert");
const fs = require("node:fs");
const { Client, Pool } = require("pg");
const Cursor = require("pg-cursor");

const ca = process.env.PGSSLROOTCERT;
delete process.env.PGSSLMODE;
const ssl = ca ? { ca: fs.readFileSync(ca, "utf8"), checkServerIdentity: () => undefined } : false;

async function main() {
  const client = new Client({ ssl });
  const notices = [];
  client.on("notice", (notice) => notices.push(notice.message));
  await client.connect();
  await client.query("DROP TABLE IF EXISTS node_t CASCADE");
  await client.query("CREATE TABLE node_t (k int PRIMARY KEY, s text, j jsonb, a int[], z timestamptz)");
  const at = new Date(1700000000000);
  await client.query("INSERT INTO node_t VALUES ($1, $2, $3, $4, $5)", [1, "é", { x: 1 }, [1, 2], at]);
  const named = { name: "by-key", text: "SELECT s, a, z FROM node_t WHERE k = $1" };
  for (let n = 0; n < 3; n++) {
    const { rows } = await client.query({ ...named, values: [1] });
    assert.deepStrictEqual(rows, [{ s: "é", a: [1, 2], z: at }]);
  }
  await client.query("BEGIN");
  await client.query("INSERT INTO node_t (k) VALUES (2)");
  await client.query("ROLLBACK");
  const { rows } = await client.query("SELECT count(*)::int AS n FROM node_t");
  assert.strictEqual(rows[0].n, 1);
  await assert.rejects(client.query("INSERT INTO node_t (k) VALUES (1)"), (error) => error.code === "23505");
  await assert.rejects(client.query("SELECT nothing FROM node_t"), (error) => error.code === "42703");
  await client.query("COMMIT");
  assert.ok(notices.some((notice) => notice.includes("no transaction")), notices.join());
  const series = client.query(new Cursor("SELECT n FROM generate_series(1, 25) AS g(n) ORDER BY n"));
  let seen = 0;
  for (let part = await series.read(10); part.length > 0; part = await series.read(10)) seen += part.length;
  assert.strictEqual(seen, 25);
  await series.close();
  await subscribe(client);
  await client.end();
  const pool = new Pool({ ssl, max: 4 });
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => pool.query("SELECT $1::int AS n", [n])));
  assert.deepStrictEqual(answers.map(({ rows }) => rows[0].n), Array.from({ length: 20 }, (_, n) => n));
  await pool.end();
}

// Changes come through a cursor while another client writes.
async function subscribe(writer) {
  const reader = new Client({ ssl });
  await reader.connect();
  const changes = reader.query(new Cursor("SUBSCRIBE (SELECT k, s FROM node_t)"));
  assert.deepStrictEqual((await changes.read(1)).map(({ k, diff }) => [k, diff]), [[1, "1"]]);
  await writer.query("DELETE FROM node_t WHERE k = 1");
  assert.deepStrictEqual((await changes.read(1)).map(({ k, diff }) => [k, diff]), [[1, "-1"]]);
  await changes.close();
  await reader.query("SELECT 1");
  await reader.end();
}

main().then(() => console.log("ok"), (error) => {
  console.error(error);
  process.exit(1);
});
