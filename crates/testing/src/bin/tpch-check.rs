//! Loads TPC-H into a session, keeps the 22 queries as materialized views, and writes what they
//! contain to a folder.
//!
//! `tests/compare/tpch.py` runs it and compares with DuckDB's answers over the same rows and the
//! same changes:
//!
//! ```text
//! tpch-check --out DIR [--scale 0.01] [--batch 1000] [--workers 0] [--mode together|alone|late] [--queries 1,2,..]
//! tpch-check --out DIR --scale 0.01 --mode tables        only the rows, for the peer
//! ```
//!
//! together: all views and the shared indexes are made first, then rows stream in. alone: a session
//! a query. late: the rows come first, then one view after the other is made, read and dropped.
//!
//! Writes `tables/NAME.parquet` (mode tables), `PHASE/qNN.parquet` and `manifest.json` (phases,
//! their statements, the query texts).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anabranch_engine::{Options, Rows, Session};
use anabranch_testing::tpch::changes::PHASES;
use anabranch_testing::tpch::{INDEXES, Interleaved, TABLES, Table, queries};
use parquet::arrow::ArrowWriter;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments = Arguments::read()?;
    fs::create_dir_all(&arguments.out)?;
    match arguments.mode.as_str() {
        "tables" => write_tables(&arguments)?,
        "together" => together(&arguments)?,
        "alone" => alone(&arguments)?,
        "late" => late(&arguments)?,
        other => return Err(format!("unknown mode '{other}': tables, together, alone or late").into()),
    }
    write_manifest(&arguments)
}

struct Arguments {
    out: PathBuf,
    scale: f64,
    batch_rows: usize,
    workers: usize,
    mode: String,
    queries: Vec<usize>,
}

impl Arguments {
    fn read() -> Result<Arguments, Failure> {
        let mut read = Arguments {
            out: PathBuf::new(),
            scale: 0.01,
            batch_rows: 1000,
            workers: 0,
            mode: "together".to_string(),
            queries: (1..=22).collect(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--out" => read.out = value.into(),
                "--scale" => read.scale = value.parse()?,
                "--batch" => read.batch_rows = value.parse()?,
                "--workers" => read.workers = value.parse()?,
                "--mode" => read.mode = value,
                "--queries" => read.queries = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
                _ => return Err(format!("unknown option {name}").into()),
            }
        }
        if read.out.as_os_str().is_empty() {
            return Err("--out DIR is needed: where results go".into());
        }
        Ok(read)
    }

    fn session(&self) -> Result<Session, Failure> {
        Ok(Session::new(Options { workers: self.workers, ..Options::default() })?)
    }

    /// Loads the tables, interleaved.
    fn load(&self, session: &mut Session, tables: &[&'static Table]) -> Result<(), Failure> {
        let start = Instant::now();
        let mut rows = 0;
        for (table, batch) in Interleaved::new(tables, self.scale, self.batch_rows, self.batch_rows as u64) {
            session.insert(table.name, &batch)?;
            session.step()?;
            rows += batch.num_rows();
        }
        let seconds = start.elapsed().as_secs_f64();
        eprintln!("loaded {rows} rows in {seconds:.1} s ({:.0} rows/s)", rows as f64 / seconds);
        Ok(())
    }

    fn result_path(&self, phase: &str, query: usize) -> PathBuf {
        self.out.join(phase).join(format!("q{query:02}.parquet"))
    }
}

fn together(arguments: &Arguments) -> Result<(), Failure> {
    let mut session = arguments.session()?;
    let tables: Vec<&'static Table> = TABLES.iter().collect();
    create_tables(&mut session, &tables)?;
    for index in INDEXES {
        session.execute(index)?;
    }
    for &query in &arguments.queries {
        create_view(&mut session, query, arguments.scale)?;
    }
    arguments.load(&mut session, &tables)?;
    for phase in PHASES {
        change(&mut session, phase.statements)?;
        for &query in &arguments.queries {
            write_view(&mut session, query, &arguments.result_path(phase.name, query))?;
        }
    }
    Ok(())
}

fn alone(arguments: &Arguments) -> Result<(), Failure> {
    for &query in &arguments.queries {
        let mut session = arguments.session()?;
        let tables = queries::tables(query);
        create_tables(&mut session, &tables)?;
        create_view(&mut session, query, arguments.scale)?;
        eprint!("query {query}: ");
        arguments.load(&mut session, &tables)?;
        for phase in PHASES {
            let concerned =
                |statement: &&&str| tables.iter().any(|table| statement.contains(&format!(" {} ", table.name)));
            let statements: Vec<&str> = phase.statements.iter().filter(concerned).copied().collect();
            change(&mut session, &statements)?;
            write_view(&mut session, query, &arguments.result_path(phase.name, query))?;
        }
    }
    Ok(())
}

fn late(arguments: &Arguments) -> Result<(), Failure> {
    let mut session = arguments.session()?;
    let tables: Vec<&'static Table> = TABLES.iter().collect();
    create_tables(&mut session, &tables)?;
    arguments.load(&mut session, &tables)?;
    for phase in PHASES {
        change(&mut session, phase.statements)?;
        for &query in &arguments.queries {
            create_view(&mut session, query, arguments.scale)?;
            write_view(&mut session, query, &arguments.result_path(phase.name, query))?;
            session.execute(&format!("drop materialized view q{query:02}"))?;
        }
    }
    Ok(())
}

fn create_tables(session: &mut Session, tables: &[&Table]) -> Result<(), Failure> {
    for table in tables {
        session.execute(table.create)?;
    }
    Ok(())
}

fn create_view(session: &mut Session, query: usize, scale: f64) -> Result<(), Failure> {
    let text = queries::query(query, scale);
    let made = session.execute(&format!("create materialized view q{query:02} as {text}"));
    made.map_err(|error| format!("query {query}: {error:?}"))?;
    Ok(())
}

fn change(session: &mut Session, statements: &[&str]) -> Result<(), Failure> {
    for statement in statements {
        session.execute(statement).map_err(|error| format!("{statement}: {error:?}"))?;
    }
    Ok(())
}

fn write_view(session: &mut Session, query: usize, path: &Path) -> Result<(), Failure> {
    let rows =
        session.query(&format!("select * from q{query:02}")).map_err(|error| format!("query {query}: {error:?}"))?;
    write_rows(&rows, path)
}

fn write_rows(rows: &Rows, path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path.parent().ok_or("a result lies in a folder")?)?;
    let mut writer = ArrowWriter::try_new(File::create(path)?, rows.schema.clone(), None)?;
    for batch in &rows.batches {
        writer.write(batch)?;
    }
    writer.close()?;
    Ok(())
}

fn write_tables(arguments: &Arguments) -> Result<(), Failure> {
    let folder = arguments.out.join("tables");
    fs::create_dir_all(&folder)?;
    for table in &TABLES {
        let mut batches = table.batches(arguments.scale, 8192).peekable();
        let schema = batches.peek().ok_or("every table has rows")?.schema();
        let path = folder.join(format!("{}.parquet", table.name));
        let mut writer = ArrowWriter::try_new(File::create(path)?, schema, None)?;
        for batch in batches {
            writer.write(&batch)?;
        }
        writer.close()?;
    }
    Ok(())
}

/// What the peer has to do to give the expected answers.
fn write_manifest(arguments: &Arguments) -> Result<(), Failure> {
    let phases: Vec<_> =
        PHASES.iter().map(|phase| serde_json::json!({ "name": phase.name, "statements": phase.statements })).collect();
    let queries: serde_json::Map<String, serde_json::Value> =
        arguments.queries.iter().map(|&n| (format!("q{n:02}"), queries::query(n, arguments.scale).into())).collect();
    let manifest = serde_json::json!({ "scale": arguments.scale, "phases": phases, "queries": queries });
    fs::write(arguments.out.join("manifest.json"), serde_json::to_string_pretty(&manifest)?)?;
    Ok(())
}
