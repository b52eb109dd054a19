//! Histories of concurrent connections are strictly serialisable, and views show no state that no
//! commit has left.
//!
//! Clients run random transactions over lists, a set and a bank, in tables and through views over
//! them. What they saw is checked afterwards ([`anabranch_testing::histories`]); the bank's total
//! is checked in each read, and in each change that a subscription tells. The order of statements
//! is the machine's, so a seed replays what is asked, not when.
//!
//! `ROUNDS=n` runs n times as many histories, the later ones of up to 32 clients.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anabranch_engine::{Changes, Connection, Database, DatabaseOptions, Error, Outcome};
use anabranch_testing::histories::{Act, Deed, Fate, Key, Value, check};
use anabranch_testing::rng::{Rng, cases};
use arrow::array::{ArrayRef, AsArray};
use arrow::compute::concat_batches;
use arrow::datatypes::Int64Type;
use arrow::util::display::array_value_to_string;

/// Tables of lists, and lists in each.
const TABLES: u64 = 3;
const LISTS: u64 = 4;
/// Keys of the set's elements follow.
const SET: Key = 1_000;
const ACCOUNTS: i64 = 6;
const TOTAL: i64 = 100 * ACCOUNTS;

fn setup(connection: &mut Connection) {
    for table in 0..TABLES {
        run(
            connection,
            &format!(
                "CREATE TABLE lists{table} (k bigint PRIMARY KEY, v text);
                 INSERT INTO lists{table} SELECT k, '' FROM generate_series(0, {}) AS g(k);
                 CREATE MATERIALIZED VIEW seen{table} AS SELECT k, max(v) AS v FROM lists{table} GROUP BY k",
                LISTS - 1
            ),
        );
    }
    run(
        connection,
        &format!(
            "CREATE TABLE elements (e bigint PRIMARY KEY);
             CREATE MATERIALIZED VIEW seen_elements AS SELECT DISTINCT e FROM elements;
             CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint);
             INSERT INTO accounts SELECT id, 100 FROM generate_series(1, {ACCOUNTS}) AS g(id);
             CREATE MATERIALIZED VIEW total AS SELECT sum(balance)::bigint AS total, count(*) AS n FROM accounts"
        ),
    );
}

fn run(connection: &mut Connection, script: &str) -> Vec<Outcome> {
    connection.execute(script).unwrap_or_else(|error| panic!("{script}: {}", error.render(script)))
}

fn ask(connection: &mut Connection, sql: &str) -> Result<Vec<Vec<String>>, Error> {
    let rows = connection.query(sql)?;
    let value = |column: &ArrayRef, row: usize| array_value_to_string(column, row).expect("a value is shown");
    let lines = rows.batches.iter().flat_map(|batch| {
        (0..batch.num_rows())
            .map(|row| batch.columns().iter().map(|column| value(column, row)).collect())
            .collect::<Vec<Vec<String>>>()
    });
    Ok(lines.collect())
}

/// What all clients share.
#[derive(Default)]
struct Shared {
    clock: AtomicU64,
    values: AtomicU64,
    /// Whether the clients are done.
    is_over: AtomicBool,
}

impl Shared {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }
}

struct Client<'a> {
    number: usize,
    connection: Connection,
    random: Rng,
    shared: &'a Shared,
    acts: Vec<Act>,
    /// Elements that were read as a set: those that are not named were not there.
    sets: Vec<Vec<Value>>,
}

/// A deed, and the sets that it read.
struct Seen {
    deed: Deed,
    sets: Vec<Vec<Value>>,
}

impl Client<'_> {
    /// Runs random transactions, one after the other.
    fn run(mut self, n_transactions: usize) -> Vec<Seen> {
        (0..n_transactions).map(|_| self.transaction()).collect()
    }

    fn transaction(&mut self) -> Seen {
        let n_acts = 1 + self.random.below(4);
        let began = self.shared.now();
        let result = match n_acts {
            1 if self.random.chance(50) => self.act(),
            _ => self.in_transaction(n_acts),
        };
        let fate = match result {
            Ok(()) => Fate::Committed,
            Err(error) => {
                assert_eq!(error.sqlstate(), "40001", "{error:?}");
                Fate::Refused
            }
        };
        let ended = self.shared.now();
        let acts = std::mem::take(&mut self.acts);
        Seen { deed: Deed { client: self.number, began, ended, fate, acts }, sets: std::mem::take(&mut self.sets) }
    }

    fn in_transaction(&mut self, n_acts: usize) -> Result<(), Error> {
        self.connection.execute("BEGIN")?;
        let result = (0..n_acts).try_for_each(|_| self.act());
        if let Err(error) = result {
            self.connection.execute("ROLLBACK")?;
            return Err(error);
        }
        self.connection.execute("COMMIT")?;
        Ok(())
    }

    fn act(&mut self) -> Result<(), Error> {
        let (table, list) = (self.random.below(TABLES as usize) as u64, self.random.below(LISTS as usize) as u64);
        match self.random.below(10) {
            0..3 => self.append(table, list),
            3..6 => self.read(table, list),
            6 => self.add(),
            7 => self.read_set(),
            8 => self.transfer(),
            _ => self.read_bank(),
        }
    }

    fn append(&mut self, table: u64, list: u64) -> Result<(), Error> {
        let value = self.shared.values.fetch_add(1, Ordering::SeqCst);
        // (What is refused was tried: its value must not be seen.)
        self.acts.push(Act::Append(table * LISTS + list, value));
        let sql = match self.random.chance(50) {
            true => format!("UPDATE lists{table} SET v = v || ',{value}' WHERE k = {list}"),
            false => format!(
                "INSERT INTO lists{table} VALUES ({list}, ',{value}')
                 ON CONFLICT (k) DO UPDATE SET v = lists{table}.v || excluded.v"
            ),
        };
        self.connection.execute(&sql).map(drop)
    }

    fn read(&mut self, table: u64, list: u64) -> Result<(), Error> {
        let relation = if self.random.chance(50) { "lists" } else { "seen" };
        let rows = ask(&mut self.connection, &format!("SELECT v FROM {relation}{table} WHERE k = {list}"))?;
        self.acts.push(Act::Read(table * LISTS + list, list_of(&rows[0][0])));
        Ok(())
    }

    fn add(&mut self) -> Result<(), Error> {
        let value = self.shared.values.fetch_add(1, Ordering::SeqCst);
        self.acts.push(Act::Append(SET + value, value));
        self.connection.execute(&format!("INSERT INTO elements VALUES ({value})")).map(drop)
    }

    fn read_set(&mut self) -> Result<(), Error> {
        let relation = if self.random.chance(50) { "elements" } else { "seen_elements" };
        let rows = ask(&mut self.connection, &format!("SELECT e FROM {relation}"))?;
        let elements: Vec<Value> = rows.iter().map(|row| row[0].parse().expect("an element is a number")).collect();
        for act in &self.acts {
            let Act::Append(key @ SET.., value) = act else { continue };
            assert!(elements.contains(value), "an element of its own, {key}, was not seen");
        }
        self.acts.extend(elements.iter().map(|element| Act::Read(SET + element, vec![*element])));
        self.sets.push(elements);
        Ok(())
    }

    fn transfer(&mut self) -> Result<(), Error> {
        let (from, to) = (self.random.between(1, ACCOUNTS), self.random.between(1, ACCOUNTS));
        let amount = self.random.between(1, 20);
        let sql = format!(
            "UPDATE accounts SET balance = balance
               - CASE WHEN id = {from} THEN {amount} ELSE 0 END + CASE WHEN id = {to} THEN {amount} ELSE 0 END
             WHERE id IN ({from}, {to})"
        );
        if self.random.chance(50) || self.connection.transaction() == anabranch_engine::TransactionState::Idle {
            return self.connection.execute(&sql).map(drop);
        }
        // By two statements: between them the total is another, but for this transaction alone.
        self.connection.execute(&format!("UPDATE accounts SET balance = balance - {amount} WHERE id = {from}"))?;
        self.connection.execute(&format!("UPDATE accounts SET balance = balance + {amount} WHERE id = {to}")).map(drop)
    }

    fn read_bank(&mut self) -> Result<(), Error> {
        let (sql, n_columns) = *self.random.pick(&[
            ("SELECT sum(balance), count(*) FROM accounts", 2),
            ("SELECT total, n FROM total", 2),
            ("SELECT balance FROM accounts", 1),
            ("SELECT t.total FROM total t JOIN accounts a ON a.id = t.n", 1),
        ]);
        let rows = ask(&mut self.connection, sql)?;
        let number = |row: &Vec<String>| row[0].parse::<i64>().expect("money is a number");
        match (n_columns, rows.len()) {
            (2, 1) => assert_eq!((number(&rows[0]), rows[0][1].as_str()), (TOTAL, "6"), "{sql}"),
            (1, 1) => assert_eq!(number(&rows[0]), TOTAL, "{sql}"),
            (1, 6) => assert_eq!(rows.iter().map(number).sum::<i64>(), TOTAL, "{sql}"),
            _ => panic!("{sql}: {rows:?}"),
        }
        Ok(())
    }
}

fn list_of(text: &str) -> Vec<Value> {
    text.split(',')
        .filter(|value| !value.is_empty())
        .map(|value| value.parse().expect("a list is of numbers"))
        .collect()
}

/// Follows a relation until the clients are done; at each time that is complete the sums of `money`
/// are the total.
fn follow(database: &Database, sql: &str, money: usize, shared: &Shared) -> usize {
    let mut connection = database.connect().expect("the database is open");
    let Some(Outcome::Subscription(subscription)) = run(&mut connection, sql).pop() else { panic!("{sql}") };
    let (mut sum, mut time, mut n_changes) = (0, i64::MIN, 0);
    loop {
        let is_over = shared.is_over.load(Ordering::SeqCst);
        match connection.next_changes(&subscription, Duration::from_millis(20)).expect("changes come") {
            Changes::Rows(batches) => {
                let batch = concat_batches(subscription.schema(), &batches).expect("they have one schema");
                let column = |at: usize| batch.column(at).as_primitive::<Int64Type>();
                for row in 0..batch.num_rows() {
                    if column(0).value(row) != time {
                        assert!(time == i64::MIN || sum == TOTAL, "{sql}: {sum} at {time}");
                        time = column(0).value(row);
                    }
                    sum += column(1).value(row) * column(money).value(row);
                    n_changes += 1;
                }
            }
            Changes::Progress(_) => assert!(time == i64::MIN || sum == TOTAL, "{sql}: {sum} at {time}"),
            Changes::Nothing if is_over => break,
            Changes::Nothing => {}
            Changes::End => panic!("{sql} has ended"),
        }
    }
    assert_eq!(sum, TOTAL);
    connection.unsubscribe(subscription);
    n_changes
}

/// A set that was read says of each element whether it was there.
fn with_absent(seen: Vec<Seen>) -> Vec<Deed> {
    let elements: Vec<Value> = seen
        .iter()
        .flat_map(|seen| &seen.deed.acts)
        .filter_map(|act| match act {
            Act::Append(key, value) if *key >= SET => Some(*value),
            _ => None,
        })
        .collect();
    let mut deeds = Vec::with_capacity(seen.len());
    for Seen { mut deed, sets } in seen {
        let is_own = |element: &Value| deed.acts.contains(&Act::Append(SET + element, *element));
        let absent: Vec<Act> = sets
            .iter()
            .flat_map(|set| elements.iter().filter(|element| !set.contains(element) && !is_own(element)))
            .map(|element| Act::Read(SET + element, vec![]))
            .collect();
        deed.acts.splice(0..0, absent);
        deeds.push(deed);
    }
    deeds
}

fn history(random: &mut Rng, workers: usize, n_clients: usize, n_transactions: usize) {
    let options = DatabaseOptions { workers, ..DatabaseOptions::default() };
    let database = Database::open(options).expect("a database in memory opens");
    setup(&mut database.connect().expect("the database is open"));
    let shared = Arc::new(Shared::default());
    let mut seen: Vec<Seen> = Vec::new();
    thread::scope(|scope| {
        let followers: Vec<_> = [("SUBSCRIBE total WITH (PROGRESS)", 2), ("SUBSCRIBE accounts WITH (PROGRESS)", 3)]
            .into_iter()
            .map(|(sql, money)| {
                let (database, shared) = (&database, &shared);
                scope.spawn(move || follow(database, sql, money, shared))
            })
            .collect();
        let clients: Vec<_> = (0..n_clients)
            .map(|number| {
                let connection = database.connect().expect("the database is open");
                let client =
                    Client { number, connection, random: random.fork(), shared: &shared, acts: vec![], sets: vec![] };
                scope.spawn(move || client.run(n_transactions))
            })
            .collect();
        let joined: Vec<_> = clients.into_iter().map(thread::ScopedJoinHandle::join).collect();
        shared.is_over.store(true, Ordering::SeqCst);
        let n_changes: Vec<usize> =
            followers.into_iter().map(|follower| follower.join().expect("a follower sees the total")).collect();
        // The total itself never changes.
        assert_eq!(n_changes[0], 1);
        joined.into_iter().for_each(|deeds| seen.extend(deeds.expect("a client's reads are sound")));
    });
    seen.push(last(&database, &shared));
    let fates: BTreeMap<bool, usize> = seen.iter().fold(BTreeMap::new(), |mut fates, seen| {
        *fates.entry(seen.deed.fate == Fate::Committed).or_default() += 1;
        fates
    });
    let n_committed = fates.get(&true).copied().unwrap_or(0);
    assert!(n_committed * 4 > n_clients * n_transactions, "few transactions were committed: {fates:?}");
    let deeds = with_absent(seen);
    if let Err(problem) = check(&deeds) {
        panic!("{n_clients} clients, {workers} workers: {problem}");
    }
}

/// Reads all there is.
fn last(database: &Database, shared: &Shared) -> Seen {
    let connection = database.connect().expect("the database is open");
    let (random, acts, sets) = (Rng::new(0), vec![], vec![]);
    let began = shared.now();
    let mut client = Client { number: usize::MAX, connection, random, shared, acts, sets };
    for (table, list) in (0..TABLES).flat_map(|table| (0..LISTS).map(move |list| (table, list))) {
        client.read(table, list).expect("a list is read");
    }
    client.read_set().expect("the set is read");
    let ended = shared.now();
    let deed = Deed { client: client.number, began, ended, fate: Fate::Committed, acts: client.acts };
    Seen { deed, sets: client.sets }
}

#[test]
fn concurrent_connections_are_strictly_serialisable() {
    let round = AtomicU64::new(0);
    cases("concurrent_connections_are_strictly_serialisable", 2, |random| {
        let round = round.fetch_add(1, Ordering::SeqCst) as usize;
        let n_clients = [8, 16, 8, 24, 32][round % 5];
        history(random, 1 + round % 2, n_clients, 240 / n_clients);
    });
}
