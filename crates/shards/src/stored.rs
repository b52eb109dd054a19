//! Datasets in folders: the result of a program in files, the beginning of others.
//!
//! ```text
//! folder/shard-0000.rows ..   a stream for each shard
//!        dataset.json         columns' key, shards, where rows lie; written last
//! ```
//!
//! Law: a program over a stored dataset means what it would mean over the program whose result was
//! stored. A folder without `dataset.json` is no dataset: the run that wrote it did not come to its
//! end. Rows are read when a program runs, and no sooner. Source: Quill, 3.4 (`ToStorage`).

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_batch::{Batch, END};
use anabranch_engine::Error;
use serde_json::{Value, json};

use crate::dataset::{Dataset, DatasetRows};
use crate::datasets::dataset_of;
use crate::layout::{Layout, ShardGroup, To};
use crate::placement::{Placement, Spread};
use crate::program::Shards;
use crate::run::ShardRun;
use crate::stream::{BinaryReader, BinaryWriter, Streamed};

/// What the file says that tells a dataset.
const MANIFEST: &str = "dataset.json";

/// The version of this form.
const VERSION: u64 = 1;

impl ShardRun {
    /// Ends all sources, and stores the result in a folder that is new or empty.
    ///
    /// # Errors
    /// As for [`Datasets::keep`](crate::Datasets::keep); `Invalid` when the folder holds anything;
    /// `Unavailable` when it cannot be written.
    pub fn to_store(mut self, program: &Shards, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        let name = folder.display().to_string();
        self.check_untaken(&name)?;
        let failed = |error: std::io::Error| unavailable(folder, &error);
        fs::create_dir_all(folder).map_err(failed)?;
        if fs::read_dir(folder).map_err(failed)?.next().is_some() {
            return Err(Error::invalid(format!("the folder \"{name}\" is not empty"))
                .with_hint("Datasets do not change: store this one in a new folder."));
        }
        let result = self.finish()?;
        let dataset = dataset_of(&name, program, result)?;
        let DatasetRows::Memory(shards) = &dataset.rows else { return Err(Error::internal("a result is in memory")) };
        for (shard, batches) in shards.iter().enumerate() {
            let file = File::create_new(folder.join(file_name(shard))).map_err(failed)?;
            let mut stream = BinaryWriter::new(BufWriter::new(file), &dataset.schema)?;
            batches.iter().try_for_each(|batch| stream.rows(batch))?;
            stream.frontier(END)?;
            stream.into_inner().into_inner().map_err(|error| failed(error.into()))?.sync_all().map_err(failed)?;
        }
        let manifest = manifest(&dataset).to_string();
        let half = folder.join("dataset.json.new");
        fs::write(&half, manifest).and_then(|()| fs::rename(&half, folder.join(MANIFEST))).map_err(failed)
    }
}

impl Shards {
    /// The dataset in a folder as the beginning of a program: its rows stay in their shards.
    ///
    /// # Errors
    /// Those of the program that is built: `Invalid` when the folder holds no dataset, `Data` when
    /// what it says cannot be read.
    pub fn stored(folder: impl AsRef<Path>) -> Shards {
        match read(folder.as_ref()) {
            Ok(dataset) => Shards::of_dataset(Arc::new(dataset)),
            Err(error) => Shards::failed(error),
        }
    }
}

/// The stream of a shard.
fn open(folder: &Path, shard: usize) -> Result<BinaryReader<BufReader<File>>, Error> {
    let path = folder.join(file_name(shard));
    let file = File::open(&path).map_err(|error| unavailable(&path, &error))?;
    BinaryReader::new(BufReader::new(file))
}

fn file_name(shard: usize) -> String {
    format!("shard-{shard:04}.rows")
}

fn manifest(dataset: &Dataset) -> Value {
    json!({
        "version": VERSION,
        "processes": dataset.layout.shards() / dataset.layout.threads(),
        "threads": dataset.layout.threads(),
        "key": dataset.key,
        "across": spread(&dataset.placement.across),
        "within": spread(&dataset.placement.within),
        "events": dataset.events(),
    })
}

fn spread(spread: &Spread) -> Value {
    match spread {
        Spread::Arbitrary => json!({"lies": "arbitrary"}),
        Spread::ByKey(columns, To::Same) => json!({"lies": "by key", "columns": columns}),
        Spread::ByKey(columns, To::Shards(n)) => json!({"lies": "by key", "columns": columns, "shards": n}),
        Spread::ByKey(columns, To::Group(group)) => {
            json!({"lies": "by key", "columns": columns, "group": group.name(), "in": group.shards()})
        }
        Spread::ByNumber(column) => json!({"lies": "by number", "columns": [column]}),
        Spread::Placed { column, shards } => json!({"lies": "placed", "columns": [column], "in": shards}),
        Spread::Packed { source, column } => json!({"lies": "packed", "columns": [column], "source": source}),
        Spread::Replicated => json!({"lies": "replicated"}),
        Spread::One => json!({"lies": "in one shard"}),
    }
}

fn read(folder: &Path) -> Result<Dataset, Error> {
    let path = folder.join(MANIFEST);
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::invalid(format!("there is no dataset in \"{}\"", folder.display()))
            .with_hint("Store the result of a run with ShardRun::to_store; a run that did not end leaves none."),
        _ => unavailable(&path, &error),
    })?;
    let said: Value = serde_json::from_str(&text).map_err(|error| damaged(&path, &error.to_string()))?;
    if said["version"].as_u64() != Some(VERSION) {
        return Err(damaged(&path, "it is of another version"));
    }
    let number = |name: &str| said[name].as_u64().map(|n| n as usize);
    let known = || {
        let layout = match (number("processes")?, number("threads")?) {
            (1, threads) if threads > 0 => Layout::flat(threads),
            (processes, threads) if processes > 0 && threads > 0 => Layout::grid(processes, threads),
            _ => return None,
        };
        let placement = Placement { across: spread_of(&said["across"])?, within: spread_of(&said["within"])? };
        Some((layout, placement, texts(&said["key"])?, number("events")?))
    };
    let (layout, placement, key, events) = known().ok_or_else(|| damaged(&path, "it does not tell a dataset"))?;
    let schema = open(folder, 0)?.schema().clone();
    for column in &key {
        schema.index_of(column).map_err(|_| damaged(&path, &format!("there is no column \"{column}\"")))?;
    }
    let place = PathBuf::from(folder);
    let read = move |shard: usize, give: &mut dyn FnMut(Batch) -> Result<(), Error>| {
        let mut stream = open(&place, shard)?;
        while let Streamed::Rows(batch) = stream.read()? {
            give(batch)?;
        }
        Ok(())
    };
    let rows = DatasetRows::Files { read: Box::new(read), events };
    Ok(Dataset { name: folder.display().to_string(), schema, key, layout, placement, rows })
}

fn spread_of(said: &Value) -> Option<Spread> {
    let columns = || texts(&said["columns"]);
    let column = || columns()?.into_iter().next();
    Some(match said["lies"].as_str()? {
        "arbitrary" => Spread::Arbitrary,
        "by key" => {
            let to = match (said["group"].as_str(), said["shards"].as_u64()) {
                (Some(name), _) => To::Group(ShardGroup::new(name, numbers(&said["in"])?)),
                (None, Some(shards)) => To::Shards(shards as usize),
                (None, None) => To::Same,
            };
            Spread::ByKey(columns()?, to)
        }
        "by number" => Spread::ByNumber(column()?),
        "placed" => Spread::Placed { column: column()?, shards: numbers(&said["in"])? },
        "packed" => Spread::Packed { source: said["source"].as_str()?.to_owned(), column: column()? },
        "replicated" => Spread::Replicated,
        "in one shard" => Spread::One,
        _ => return None,
    })
}

fn numbers(said: &Value) -> Option<Vec<usize>> {
    said.as_array()?.iter().map(|number| Some(number.as_u64()? as usize)).collect()
}

fn texts(said: &Value) -> Option<Vec<String>> {
    said.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn unavailable(path: &Path, error: &std::io::Error) -> Error {
    Error::unavailable(format!("\"{}\" cannot be used for a dataset: {error}", path.display()))
}

fn damaged(path: &Path, detail: &str) -> Error {
    Error::data(format!("\"{}\" is damaged: {detail}", path.display())).with_hint("Store the dataset again.")
}
