//! Random commits, and what they make of a database, in the plainest code.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_batch::{Batch, Diffs, Times};
use anabranch_store::{Commit, Contents, Created, Fact, StoreError, StoreOptions, Threads};
use arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray};
use arrow::datatypes::Int64Type;

/// SplitMix64, behind bytes that were given.
pub struct Rng {
    state: u64,
    given: Vec<u8>,
    n_taken: usize,
}

impl Rng {
    /// The sequence of a case: `SEED` if it is set.
    pub fn of(case: u64) -> Rng {
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(case);
        Rng { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), given: vec![], n_taken: 0 }
    }

    /// The sequence that takes a byte a number, as far as there are bytes: what a fuzzer changes is
    /// then one decision.
    pub fn of_bytes(bytes: &[u8]) -> Rng {
        Rng { state: 0, given: bytes.to_vec(), n_taken: 0 }
    }

    pub fn bits(&mut self) -> u64 {
        if let Some(byte) = self.given.get(self.n_taken) {
            self.n_taken += 1;
            return u64::from(*byte);
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Cases of a random test: `ROUNDS` times as many for a longer hunt.
pub fn cases(count: u64) -> std::ops::Range<u64> {
    let rounds = std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    0..count * rounds
}

/// Runs a case and says which one failed.
pub fn run(count: u64, mut body: impl FnMut(&mut Rng)) {
    for case in cases(count) {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&mut Rng::of(case))));
        if let Err(panic) = outcome {
            eprintln!("case {case} failed; replay it with SEED={case}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// How often each row is there.
type Rows = BTreeMap<(i64, String), i64>;

/// Objects with texts and rows with their number; facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub objects: BTreeMap<u64, (String, Rows)>,
    pub facts: BTreeMap<(u64, String), Vec<u8>>,
    pub time: i64,
    pub id_max: u64,
}

impl Model {
    pub fn apply(&mut self, commit: &Commit) {
        self.time = commit.time;
        for id in &commit.removed {
            self.objects.remove(id).unwrap();
            self.facts.retain(|(object, _), _| object != id);
        }
        for created in &commit.created {
            self.objects.insert(created.id, (created.text.clone(), BTreeMap::new()));
            self.id_max = self.id_max.max(created.id);
        }
        for (object, batch) in &commit.rows {
            let rows = &mut self.objects.get_mut(object).unwrap().1;
            add_rows(rows, batch);
        }
        for fact in &commit.facts {
            let key = (fact.object, fact.name.clone());
            match &fact.value {
                Some(value) => self.facts.insert(key, value.clone()),
                None => self.facts.remove(&key),
            };
        }
    }

    /// What contents say.
    pub fn of(contents: &Contents) -> Model {
        let mut model = Model { time: contents.time(), id_max: contents.id_max(), ..Model::default() };
        for object in contents.objects() {
            let mut rows = BTreeMap::new();
            let read = contents.rows(object.id, |batch| {
                assert!(batch.times().min() == contents.time() || batch.is_empty());
                add_rows(&mut rows, &batch);
                Ok::<(), StoreError>(())
            });
            read.unwrap();
            model.objects.insert(object.id, (object.text, rows));
        }
        for (object, name, value) in contents.facts() {
            model.facts.insert((object, name.to_string()), value.to_vec());
        }
        model
    }

    /// A commit that fits.
    pub fn random_commit(&self, rng: &mut Rng) -> Commit {
        let mut commit = Commit { time: self.time + 1 + rng.below(3) as i64, ..Commit::default() };
        let mut ids: Vec<u64> = self.objects.keys().copied().collect();
        if !ids.is_empty() && rng.chance(8) {
            commit.removed.push(ids.swap_remove(rng.below(ids.len())));
        }
        if ids.is_empty() || rng.chance(15) {
            let id = self.id_max + 1 + rng.below(2) as u64;
            commit.created.push(Created { id, text: format!("CREATE TABLE t{id} (a bigint, b text)") });
            ids.push(id);
        }
        for _ in 0..rng.below(4) {
            let id = ids[rng.below(ids.len())];
            commit.rows.push((id, self.random_rows(id, rng)));
        }
        if rng.chance(30) {
            let object = if rng.chance(30) { 0 } else { ids[rng.below(ids.len())] };
            let value = rng.chance(80).then(|| rng.bits().to_le_bytes()[..rng.below(8)].to_vec());
            commit.facts.push(Fact { object, name: format!("fact {}", rng.below(3)), value });
        }
        commit
    }

    fn random_rows(&self, id: u64, rng: &mut Rng) -> Batch {
        let n_rows = if rng.chance(5) { 2000 } else { 1 + rng.below(20) };
        let mut rows: Vec<(i64, String, i64)> = Vec::new();
        let there = self.objects.get(&id).map(|(_, rows)| rows);
        for _ in 0..n_rows {
            match there.and_then(|rows| rows.iter().nth(rng.below(rows.len().max(1)))) {
                Some(((a, b), count)) if *count > 0 && rng.chance(20) => rows.push((*a, b.clone(), -1)),
                _ => rows.push((rng.below(50) as i64, format!("text number {}", rng.below(100)), 1)),
            }
        }
        let a: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
        let b: ArrayRef = Arc::new(StringViewArray::from_iter_values(rows.iter().map(|row| row.1.as_str())));
        let diffs = Diffs::Column(rows.iter().map(|row| row.2).collect()).simplify();
        Batch::new(vec![a, b], Times::Constant(5), diffs)
    }
}

fn add_rows(rows: &mut BTreeMap<(i64, String), i64>, batch: &Batch) {
    let (a, b) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string_view());
    for row in 0..batch.len() {
        let key = (a.value(row), b.value(row).to_string());
        let count = rows.entry(key.clone()).or_default();
        *count += batch.diffs().get(row);
        if *count == 0 {
            rows.remove(&key);
        }
    }
}

/// Small segments, and nothing beside.
pub fn small() -> StoreOptions {
    StoreOptions { segment_bytes: 4096, snapshot_bytes: 16_384, threads: Threads::None, ..StoreOptions::default() }
}
