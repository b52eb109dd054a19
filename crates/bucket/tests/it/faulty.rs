//! A store in memory whose requests fail from a number on.

use std::fmt::{Display, Formatter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::FutureExt;
use futures::stream::{BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

/// See the [module](self). Clones are the same store.
#[derive(Clone, Debug)]
pub struct Faulty {
    store: Arc<InMemory>,
    fault: Arc<Fault>,
}

#[derive(Debug, Default)]
struct Fault {
    n_requests: AtomicU64,
    fails_at: AtomicU64,
    n_failures: AtomicU64,
}

impl Fault {
    fn request(&self) -> Result<()> {
        let request = self.n_requests.fetch_add(1, Ordering::SeqCst);
        let (from, n) = (self.fails_at.load(Ordering::SeqCst), self.n_failures.load(Ordering::SeqCst));
        match request >= from && request < from.saturating_add(n) {
            true => Err(Error::Generic { store: "test", source: "the store is out of order".into() }),
            false => Ok(()),
        }
    }
}

impl Faulty {
    pub fn new() -> Faulty {
        Faulty::on(InMemory::new())
    }

    pub fn on(store: InMemory) -> Faulty {
        Faulty { store: Arc::new(store), fault: Arc::default() }
    }

    /// Lets so many requests fail after the next `after`.
    pub fn fail(&self, after: u64, n_failures: u64) {
        self.fault.n_requests.store(0, Ordering::SeqCst);
        self.fault.fails_at.store(after, Ordering::SeqCst);
        self.fault.n_failures.store(n_failures, Ordering::SeqCst);
    }

    /// Objects and their bytes.
    pub fn sizes(&self) -> Vec<(String, u64)> {
        let listed = self.store.list(None).collect::<Vec<_>>().now_or_never().unwrap();
        listed.into_iter().flatten().map(|object| (object.location.to_string(), object.size)).collect()
    }
}

impl Display for Faulty {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("a store that fails")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.fault.request()?;
        self.store.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.fault.request()?;
        let upload = self.store.put_multipart_opts(location, options).await?;
        Ok(Box::new(FaultyUpload { upload, fault: self.fault.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.fault.request()?;
        self.store.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.fault.request() {
            Ok(()) => self.store.delete_stream(locations),
            Err(error) => futures::stream::iter([Err(error)]).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.fault.request() {
            Ok(()) => self.store.list(prefix),
            Err(error) => futures::stream::iter([Err(error)]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.fault.request()?;
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.fault.request()?;
        self.store.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct FaultyUpload {
    upload: Box<dyn MultipartUpload>,
    fault: Arc<Fault>,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        match self.fault.request() {
            Ok(()) => self.upload.put_part(data),
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.fault.request()?;
        self.upload.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.fault.request()?;
        self.upload.abort().await
    }
}
