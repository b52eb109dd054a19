//! The benchmark as a sharded program: expressways are branches, accounts are keyed by vehicle.
//!
//! ```text
//!     rows ── reports ── split by expressway ── Roads ──┬── notifications ──────────────┐
//!       │                                               └── charges ── by vehicle ──┐   │
//!       ├── balance queries ── by vehicle ──────────────────────────────── Accounts ┼───┼── answers
//!       └── expenditure queries ── by (vehicle, day, expressway) ── join history ───┘   │
//! ```
//!
//! Law: the answers are a function of the rows of each second. The number of shards, the shard that
//! a row is pushed into, the order of rows within a second and the two ways to keep accounts change
//! none of them.
//!
//! Relies on the input: a vehicle that changes its expressway has been silent for more than 60 s.
//! (The state of a vehicle on the road lies with its expressway.)
//!
//! Cost: what is local to an expressway never moves between shards. A crossing moves one row of two
//! columns ([`KeptRows::ByVehicle`]), or a balance query moves to all expressways
//! ([`KeptRows::ByExpressway`], SCSQ's plan). Source: Zeitler's thesis (Uppsala 2011), papers IV
//! and V.
//!
//! Reading order: [`columns`] (rows and answers as batches), `road` (one expressway), `accounts`.

pub mod columns;

mod accounts;
mod hasher;
mod road;

use anabranch_engine::Error;
use anabranch_engine::frame::{Frame, How, col, lit, max, sum};
use anabranch_shards::{Branches, Layout, Move, Shards, SplitPlan};

use crate::row::RowKind;
use accounts::Accounts;
use columns::{ANSWER, CHARGE, PART};
use road::Roads;

/// The source of rows: see [`columns::batch`].
pub const ROWS: &str = "rows";

/// The source of the historical table: see [`columns::history_batch`].
pub(crate) const HISTORY: &str = "history";

/// Where the balances of vehicles are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeptRows {
    /// One account a vehicle, in the shard of its hash: charges move there.
    #[default]
    ByVehicle,
    /// An account a vehicle and expressway: balance queries move to all expressways, whose parts
    /// are added.
    ByExpressway,
}

/// The program for so many expressways.
pub fn program(expressways: u32, keep: KeptRows, layout: Layout) -> Shards {
    let rows = Shards::source(ROWS, columns::row_schema(), layout);
    let answers = match keep {
        KeptRows::ByVehicle => by_vehicle(&rows, expressways),
        KeptRows::ByExpressway => by_expressway(&rows, expressways),
    };
    answers.union(&expenditures(&rows, layout))
}

fn is(kind: i32) -> anabranch_engine::frame::Expr {
    col("kind").eq(lit(kind))
}

fn of_kind(kind: RowKind) -> anabranch_engine::frame::Expr {
    is(i32::from(kind.number()))
}

fn answer_columns(rows: Frame) -> Frame {
    rows.select(ANSWER.map(col))
}

/// Expressways as branches, each with its own operator.
fn roads(branches: &Branches, keep: KeptRows) -> Branches {
    match branches.column_names() {
        Ok(names) => branches.operator(Roads::new(&names, keep)),
        // (The error stays with the branches.)
        Err(_) => branches.clone(),
    }
}

fn by_vehicle(rows: &Shards, expressways: u32) -> Shards {
    let reports = rows.query(|rows| rows.filter(of_kind(RowKind::Report)));
    let branches = reports.split(expressways, col("xway"), None, SplitPlan::Flat);
    let given = roads(&branches, KeptRows::ByVehicle).merge();
    let notifications = given.query(|rows| answer_columns(rows.filter(col("kind").lt(lit(CHARGE)))));
    let charges = given.query(|rows| rows.filter(is(CHARGE)).select([col("vid"), col("second")]));
    let asked = rows.query(|rows| rows.filter(of_kind(RowKind::Balance)).select([col("vid"), col("query")]));
    let by_vid = |rows: &Shards| rows.rekey(["vid"]).redistribute(Move::FLAT);
    let balances = by_vid(&charges).operator_with(&by_vid(&asked), Accounts);
    notifications.union(&balances)
}

fn by_expressway(rows: &Shards, expressways: u32) -> Shards {
    let wanted = rows.query(|rows| rows.filter(of_kind(RowKind::Report).or(of_kind(RowKind::Balance))));
    let broadcast = Some(of_kind(RowKind::Balance));
    let branches = wanted.split(expressways, col("xway"), broadcast, SplitPlan::Flat);
    let given = roads(&branches, KeptRows::ByExpressway);
    let notifications = given.merge().query(|rows| answer_columns(rows.filter(col("kind").lt(lit(CHARGE)))));
    // (The time of a query stands in `xway`: it is the result's time where no expressway knows the
    // vehicle.)
    let parts = given.map(|rows| rows.filter(is(PART)));
    let combine = [max(col("first")).alias("last"), sum(col("second")).alias("total")];
    let balances = parts.merge_by(["query", "vid", "xway"], combine).rekey([]).query(|rows| {
        rows.select([
            lit(i32::from(RowKind::Balance.number())).alias("kind"),
            col("vid"),
            col("query"),
            columns::whole(columns::either(col("last"), col("xway"))).alias("first"),
            columns::whole(col("total")).alias("second"),
            lit(0i32).alias("xway"),
            lit(0i32).alias("direction"),
        ])
    });
    notifications.union(&balances)
}

/// What vehicles spent on a day on an expressway; nothing where history has no row.
fn expenditures(rows: &Shards, layout: Layout) -> Shards {
    let key = ["vid", "day", "xway"];
    let asked = ["vid", "day", "xway", "query"].map(col);
    let asked = rows.query(|rows| rows.filter(of_kind(RowKind::Expenditure)).select(asked));
    let history = Shards::source(HISTORY, columns::history_schema(), layout);
    let by_key = |rows: &Shards| rows.rekey(key).redistribute(Move::FLAT);
    let found = by_key(&asked).query_with(&by_key(&history), |asked, past| asked.join(&past, [], [], How::Inner));
    found.rekey([]).query(|rows| {
        rows.select([
            lit(i32::from(RowKind::Expenditure.number())).alias("kind"),
            col("vid"),
            col("query"),
            lit(0i32).alias("first"),
            col("toll").alias("second"),
            lit(0i32).alias("xway"),
            lit(0i32).alias("direction"),
        ])
    })
}

/// Whether the program says the same for every number of shards.
///
/// # Errors
/// That of [`Shards::check`].
pub fn check(expressways: u32, keep: KeptRows) -> Result<(), Error> {
    program(expressways, keep, Layout::flat(2)).check()
}
