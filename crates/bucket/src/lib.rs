//! Snapshots of databases in object stores: `s3://bucket/prefix`.
//!
//! Law: an object is there whole or not at all. A file that is written becomes an object when it is
//! synced; before that no reader finds it. An object that was written is read back as it was.
//!
//! A snapshot is written once, from its first byte to its last, and read in the same order: so a
//! file is sent in parts while it is written, and read in blocks. Nothing else of a [`Disk`] is
//! offered: the log stays in the folder of the database (decision 0115).
//!
//! Cost: [`PART_BYTES`] three times while a snapshot is written, [`BLOCK_BYTES`] while it is read.
//! Reading order: [`Buckets`], `disk` (one place), `errors` (what users hear).
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod disk;
mod errors;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anabranch_store::{Disk, LocalPlaces, SnapshotPlaces};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use tokio::runtime::{Builder, Runtime};

pub use disk::{BLOCK_BYTES, BucketDisk, PART_BYTES};

/// What `SnapshotPlaces` there are: buckets of S3, and folders.
///
/// Credentials, region and endpoint are those of the environment, as for other clients of S3:
/// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`,
/// `AWS_ENDPOINT_URL`, and the roles of containers and machines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buckets;

/// A request is tried again for so long.
const RETRIES_FOR: Duration = Duration::from_secs(30);
const RETRIES_MAX: usize = 5;
/// A store that takes no connection within this time is not reached.
const CONNECT_FOR: Duration = Duration::from_secs(5);
/// A request that carries a part may take so long.
const REQUEST_FOR: Duration = Duration::from_secs(120);

impl SnapshotPlaces for Buckets {
    fn open(&self, url: &str) -> io::Result<Arc<dyn Disk>> {
        match url.starts_with("file://") {
            true => LocalPlaces.open(url),
            false => Ok(Arc::new(bucket(url)?)),
        }
    }

    fn folders(&self, url: &str) -> io::Result<Vec<String>> {
        match url.starts_with("file://") {
            true => LocalPlaces.folders(url),
            false => bucket(url)?.folders(),
        }
    }
}

fn bucket(url: &str) -> io::Result<BucketDisk> {
    let invalid = |detail: String| io::Error::new(io::ErrorKind::InvalidInput, detail);
    let Some(rest) = url.strip_prefix("s3://") else {
        return Err(invalid(
            "places are s3://bucket/prefix, file:///folder, or folder for the folder of the database".into(),
        ));
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(invalid("after s3:// the name of a bucket is wanted, as in s3://backups/shop".into()));
    }
    let prefix = Path::parse(prefix).map_err(|_| invalid("a part of the prefix is empty, . or ..".into()))?;
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(5), ..BackoffConfig::default() };
    let retries = RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: RETRIES_FOR };
    let builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retries);
    let is_plain =
        builder.get_config_value(&AmazonS3ConfigKey::Endpoint).is_some_and(|endpoint| endpoint.starts_with("http://"));
    let client = ClientOptions::new()
        .with_connect_timeout(CONNECT_FOR)
        .with_timeout(REQUEST_FOR)
        .with_allow_http(is_plain)
        .with_http1_only();
    let store = builder.with_client_options(client).build().map_err(|error| errors::of_store(bucket, error))?;
    BucketDisk::new(Arc::new(store), url, bucket, prefix)
}

/// Where requests are driven. It lives as long as the process: files of places that are closed may
/// still be read, on any thread.
pub(crate) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = Builder::new_multi_thread().worker_threads(1).thread_name("anabranch bucket").enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| made))
}

/// A place on any object store, for tests.
///
/// # Errors
/// When the thread of requests cannot be started.
pub fn place_on(store: Arc<dyn ObjectStore>, url: &str) -> io::Result<BucketDisk> {
    BucketDisk::new(store, url, "test", Path::default())
}
