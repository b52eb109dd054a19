//! What can be said on the command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{ArgAction, ArgMatches, Args, Parser, Subcommand};

use crate::output::Format;

/// One text to run.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    /// SQL from the command line.
    Command(String),
    /// SQL from a file; `-` is standard input.
    File(PathBuf),
}

/// Standing queries: questions that stay asked while the data changes.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, about, args_conflicts_with_subcommands = true)]
#[command(after_help = "Without -c, -f or a pipe, anabranch is a shell: type .help there.\n\
Exit codes: 0 all went well, 1 a statement failed, 2 wrong command line, 130 interrupted.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Folder of the database, made if it is not there; without one the database is in memory
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Use the server at this address: postgresql://user@host:port/database (PGPASSWORD is its
    /// password)
    #[arg(long, value_name = "URL", conflicts_with = "folder")]
    pub connect: Option<String>,
    /// Where snapshots of the database go: s3://bucket/prefix, file:///folder, or folder for that
    /// of the database [default: where the last one went]
    #[arg(long, value_name = "PLACE", requires = "folder")]
    pub snapshots: Option<String>,
    /// Run this SQL; may be repeated, and mixed with -f in any order
    #[arg(short = 'c', long = "command", value_name = "SQL", action = ArgAction::Append, allow_hyphen_values = true)]
    commands: Vec<String>,
    /// Run the statements of this file (- is standard input); may be repeated
    #[arg(short = 'f', long = "file", value_name = "FILE", action = ArgAction::Append)]
    files: Vec<PathBuf>,
    /// Open the shell after -c and -f
    #[arg(short = 'i', long)]
    pub interactive: bool,
    /// How answers are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// Same as --format csv
    #[arg(long, group = "short_format", conflicts_with = "format")]
    csv: bool,
    /// Same as --format json
    #[arg(long, group = "short_format", conflicts_with = "format")]
    json: bool,
    /// Same as --format jsonl
    #[arg(long, group = "short_format", conflicts_with = "format")]
    jsonl: bool,
    /// Same as --format markdown
    #[arg(long, group = "short_format", conflicts_with = "format")]
    markdown: bool,
    /// Worker threads; 0 does all work on one thread [default: one a core]
    #[arg(long, value_name = "N", global = true, value_parser = parse_workers)]
    workers: Option<usize>,
    /// Tell how long each statement took
    #[arg(long)]
    pub timer: bool,
    /// Do not print what statements without rows did (CREATE VIEW, INSERT 0 3)
    #[arg(short, long)]
    pub quiet: bool,
    /// After each statement of a pipe, a line of JSON tells how it ended: {"done": ..} or {"error":
    /// ..}
    #[arg(long)]
    pub ends: bool,
    /// Go on after a statement of -c or -f failed; the exit code is still 1
    #[arg(long)]
    pub keep_going: bool,
}

/// What else anabranch can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch standing queries stay current over the flights of New York 2013
    Demo(Demo),
    /// Read every byte of a database and say whether it is sound; nothing is changed
    Check(Check),
    /// Write a database as a script of SQL that makes it again: anabranch NEW -f SCRIPT
    Dump(Dump),
    /// Make a database of the newest snapshot in a place, where its folder is lost
    Restore(Restore),
    /// Serve clients of PostgreSQL's protocol, and HTTP
    Serve(Serve),
    /// Run a sharded program, as EXPLAIN (FORMAT python) writes it, over a database
    Plan(PlanFile),
    /// Run a Datalog program (in Souffle's syntax) over files of facts
    Datalog(Datalog),
    /// Run the Linear Road benchmark, and watch tolls, accidents and response times
    LinearRoad(LinearRoad),
    /// Make the entry of a user: asks for a password, or reads it from a pipe
    Password(Password),
}

/// Which sharded program is run, and over which database.
#[derive(Args, Debug)]
pub(crate) struct PlanFile {
    /// File of the program; - is standard input
    #[arg(value_name = "FILE")]
    pub program: PathBuf,
    /// Folder of the database; without one it is in memory, and made by -f and -c
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Run the statements of this file before; may be repeated
    #[arg(short = 'f', long = "file", value_name = "FILE", action = ArgAction::Append)]
    pub files: Vec<PathBuf>,
    /// Run this SQL before, behind the files; may be repeated
    #[arg(short = 'c', long = "command", value_name = "SQL", action = ArgAction::Append, allow_hyphen_values = true)]
    pub commands: Vec<String>,
    /// Shards, each a thread [default: one a core]; PxN: in P locations, as "local" and "global"
    /// movements tell apart, of N shards each
    #[arg(long, value_name = "N", value_parser = shards)]
    pub shards: Option<ShardCounts>,
    /// Show where rows lie after each step, and run nothing
    #[arg(long)]
    pub explain: bool,
    /// Run a program whose result may depend on the number of shards
    #[arg(long)]
    pub unchecked: bool,
    /// Tell the rows that each step has hashed and moved
    #[arg(long)]
    pub moved: bool,
    /// Tell what each step has done in each shard: rows, batches, bytes, CPU time
    #[arg(long)]
    pub profile: bool,
    /// How the answer is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

/// Which program is run, and over which facts.
#[derive(Args, Debug)]
pub(crate) struct Datalog {
    /// File of the program
    #[arg(value_name = "FILE")]
    pub program: PathBuf,
    /// Folder of the files of facts
    #[arg(short = 'F', long, value_name = "FOLDER", default_value = ".")]
    pub facts: PathBuf,
    /// Folder of the answers; - prints them
    #[arg(short = 'D', long, value_name = "FOLDER", default_value = ".")]
    pub output: PathBuf,
    /// Print the answers of a query instead of the outputs: 'path("a", x)'; may be repeated
    #[arg(short = 'q', long = "query", value_name = "ATOM", action = ArgAction::Append)]
    pub queries: Vec<String>,
}

/// Which traffic runs, and how fast.
#[derive(Args, Debug)]
pub(crate) struct LinearRoad {
    /// Expressways, in steps of a half (one direction)
    #[arg(long = "expressways", value_name = "L", default_value = "1", value_parser = parse_expressways)]
    pub half_expressways: u32,
    /// Minutes of traffic
    #[arg(long, value_name = "N", default_value_t = 180, value_parser = clap::value_parser!(u32).range(1..=10_080))]
    pub minutes: u32,
    /// Everything random in the traffic follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Traffic in which all happens often, for short runs
    #[arg(long, conflicts_with = "input")]
    pub dense: bool,
    /// Seconds of traffic that pass unseen before
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 0,
        value_parser = parse_skipped,
        allow_negative_numbers = true,
        conflicts_with = "input"
    )]
    pub skip: u32,
    /// real, N times real time, or max: each second when the one before has answered
    #[arg(long, value_name = "real|N|max", default_value = "max", value_parser = parse_speed)]
    pub speed: Speed,
    /// Where balances are kept: one account a vehicle, or one a vehicle and expressway (as SCSQ)
    #[arg(long, value_enum, default_value_t)]
    pub keep: Keep,
    /// Compare the answers with those of the plainest reading of the rules, at the end
    #[arg(long)]
    pub check: bool,
    /// Rows of this file (fifteen integers a line) instead of generated ones
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// The historical table: vid,day,xway,toll a line
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Write the answers here
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the generated rows here, fifteen integers a line
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    pub write_rows: Option<PathBuf>,
    /// Write the generated historical table here
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input", "history"])]
    pub write_history: Option<PathBuf>,
    /// Hold the answers of this file against the rules; nothing is run
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["check", "output", "write_rows", "write_history", "speed", "keep"]
    )]
    pub judge: Option<PathBuf>,
    /// Hold them against the answers of this file instead
    #[arg(
        long,
        value_name = "FILE",
        requires = "judge",
        conflicts_with_all = ["input", "history", "half_expressways", "minutes", "seed", "dense", "skip"]
    )]
    pub against: Option<PathBuf>,
    /// Columns of answers, written or judged: official (2004) or retail (2016)
    #[arg(long, value_name = "FORM", default_value = "official")]
    pub form: anabranch_linear_road::answer::AnswerForm,
}

/// As many seconds as `--minutes` may have.
fn parse_skipped(text: &str) -> Result<u32, String> {
    let most = 10_080 * 60;
    let seconds = text.parse::<u32>().ok().filter(|seconds| *seconds <= most);
    seconds.ok_or_else(|| format!("a whole number of seconds from 0 to {most}"))
}

/// How fast seconds of traffic follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Speed {
    /// Each when the one before has answered.
    Replay,
    /// So many a second of the clock.
    Times(f64),
}

/// Where balances are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Keep {
    /// One account a vehicle
    #[default]
    Vehicle,
    /// One account a vehicle and expressway; queries go to all
    Expressway,
}

impl From<Keep> for anabranch_linear_road::program::KeptRows {
    fn from(keep: Keep) -> Self {
        match keep {
            Keep::Vehicle => Self::ByVehicle,
            Keep::Expressway => Self::ByExpressway,
        }
    }
}

fn parse_expressways(text: &str) -> Result<u32, String> {
    match text.parse::<f64>().map(|whole| whole * 2.0) {
        Ok(halves) if (1.0..=4096.0).contains(&halves) && halves.fract() == 0.0 => Ok(halves as u32),
        _ => Err("a number from 0.5 to 2048, in steps of 0.5".into()),
    }
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    match text.parse::<f64>() {
        Ok(speed) if (1e-3..=1e6).contains(&speed) => Ok(Speed::Times(speed)),
        _ if text == "max" => Ok(Speed::Replay),
        _ if text == "real" => Ok(Speed::Times(1.0)),
        _ => Err("real, max, or how many times real time: from 0.001 to 1000000".into()),
    }
}

/// Which database is checked.
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Folder of the database
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Which database is dumped, and how.
#[derive(Args, Debug)]
pub(crate) struct Dump {
    /// Folder of the database
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write sources as tables with the rows that they have given; else they read again
    #[arg(long)]
    pub sources_as_tables: bool,
}

/// Which database is restored, and where.
#[derive(Args, Debug)]
pub(crate) struct Restore {
    /// Where its snapshots lie, as --snapshots named it: s3://bucket/prefix, file:///folder
    #[arg(value_name = "PLACE")]
    pub place: String,
    /// Folder of the restored database, empty or not there
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Name of the database in the place, where there are several
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// Number of the snapshot [default: the newest]
    #[arg(long, value_name = "N")]
    pub snapshot: Option<u64>,
}

/// How a server is set up; what is not said here stands in the configuration.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Configuration (TOML)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where clients connect [default: 127.0.0.1:5432]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Where HTTP is served: /metrics, /healthz, /readyz, /query, /subscribe
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<SocketAddr>,
    /// Folder that holds the database [default: it is kept in memory]
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Where its snapshots go: s3://bucket/prefix, file:///folder, or folder for that of the
    /// database [default: where the last one went]
    #[arg(long, value_name = "PLACE")]
    pub snapshots: Option<String>,
    /// File of users (TOML)
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// Certificate of TLS (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Log objects of JSON
    #[arg(long)]
    pub log_json: bool,
    /// What is logged: error, warn, info, debug [default: info]
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
}

/// Whose entry is made.
#[derive(Args, Debug)]
pub(crate) struct Password {
    /// The user's name
    #[arg(long, value_name = "NAME", default_value = "anabranch")]
    pub user: String,
    /// Whether the user may only read
    #[arg(long)]
    pub read_only: bool,
}

/// The demo's own choices.
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Folder with the Parquet files
    #[arg(long, value_name = "FOLDER", default_value = "examples/data")]
    pub data: PathBuf,
    /// Script with the sources and the standing queries [default: flights.sql beside the folder]
    #[arg(long, value_name = "FILE")]
    pub sql: Option<PathBuf>,
    /// Rows per second to stream, or max [default: 25000 on a terminal, else max]
    #[arg(long, value_name = "N|max", value_parser = parse_rate)]
    pub rate: Option<String>,
}

/// A machine with more cores gains nothing from more threads of one session.
const WORKERS_MAX: usize = 256;

fn parse_workers(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(workers) if workers <= WORKERS_MAX => Ok(workers),
        _ => Err(format!("a number of threads from 0 to {WORKERS_MAX}; one a core is the default")),
    }
}

fn parse_rate(text: &str) -> Result<String, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(text.to_string()),
        _ if text == "max" => Ok(text.to_string()),
        _ => Err("a number of rows per second, or max".into()),
    }
}

impl Arguments {
    pub(crate) fn format(&self) -> Format {
        match self {
            Arguments { csv: true, .. } => Format::Csv,
            Arguments { json: true, .. } => Format::Json,
            Arguments { jsonl: true, .. } => Format::Jsonl,
            Arguments { markdown: true, .. } => Format::Markdown,
            _ => self.format,
        }
    }

    /// The number of threads, if one was given.
    pub(crate) fn workers_given(&self) -> Option<usize> {
        self.workers
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// The texts of `-c` and `-f` in the order they were given.
pub(crate) fn texts(matches: &ArgMatches) -> Vec<Text> {
    let mut texts: Vec<(usize, Text)> = Vec::new();
    if let (Some(places), Some(values)) = (matches.indices_of("commands"), matches.get_many::<String>("commands")) {
        texts.extend(places.zip(values.cloned().map(Text::Command)));
    }
    if let (Some(places), Some(values)) = (matches.indices_of("files"), matches.get_many::<PathBuf>("files")) {
        texts.extend(places.zip(values.cloned().map(Text::File)));
    }
    texts.sort_by_key(|(place, _)| *place);
    texts.into_iter().map(|(_, text)| text).collect()
}

/// Locations, and the shards of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardCounts {
    pub locations: u16,
    pub of_each: u16,
}

/// Shards of a program, at most.
const SHARDS_MAX: u16 = 1024;

/// `4` shards, or `2x4`: two locations of four.
fn shards(text: &str) -> Result<ShardCounts, String> {
    let (locations, of_each) = text.split_once(['x', 'X']).unwrap_or(("1", text));
    let number = |text: &str| text.trim().parse::<u16>().ok().filter(|number| *number > 0);
    let counts = number(locations).zip(number(of_each));
    let counts = counts.filter(|(locations, of_each)| locations.checked_mul(*of_each).is_some_and(|n| n <= SHARDS_MAX));
    let (locations, of_each) = counts.ok_or_else(|| {
        format!("it is a number of shards from 1 to {SHARDS_MAX}, or locations and the shards of each, as in 2x4")
    })?;
    Ok(ShardCounts { locations, of_each })
}
