//! Pages of a server's memory.
//!
//! The allocator asks for huge pages of 2 MiB, and a client's thread touches a few kilobytes of its
//! own: a client then costs 793 KB of memory instead of some 110 KB. Loads and builds of views are
//! no slower with small pages (`bench/results/serve-pages.md`).

/// Has the system give this process small pages from now on, so that memory that is not touched
/// costs nothing. Child processes are given small pages too.
///
/// A system that cannot do so leaves everything as it is, which costs memory alone.
#[cfg(target_os = "linux")]
pub(crate) fn keep_small() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!("clients cost more memory: small pages are refused: {error}");
    }
}

/// Elsewhere no page is huge unless a program asks for it by name.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_small() {}
