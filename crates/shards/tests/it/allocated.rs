//! Bytes that the tests' process has asked for: of all threads, and of those that are watched.
//!
//! The one place with unsafe code here: an allocator cannot be written without it.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The system's allocator, and a counter.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ASKED: AtomicU64 = AtomicU64::new(0);

/// Bytes that watched threads have asked for.
static ASKED_BY_WATCHED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// Watches this thread from now on.
pub fn watch_thread() {
    IS_WATCHED.set(true);
}

/// Bytes that watched threads have asked for so far, given back or not.
pub fn asked_bytes_of_watched() -> u64 {
    ASKED_BY_WATCHED.load(Relaxed)
}

fn count(bytes: usize) {
    ASKED.fetch_add(bytes as u64, Relaxed);
    // (A thread that is ending has no cell any more.)
    if IS_WATCHED.try_with(Cell::get).unwrap_or(false) {
        ASKED_BY_WATCHED.fetch_add(bytes as u64, Relaxed);
    }
}

/// Bytes asked for so far, given back or not.
pub fn asked_bytes() -> u64 {
    ASKED.load(Relaxed)
}

// SAFETY: every method passes its arguments on to the system's allocator and returns what it
// returns; the counters allocate nothing: the cell is constant and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        unsafe { System.realloc(pointer, layout, size) }
    }
}
