//! Bytes that the tests' process has asked for, of all threads.
//!
//! The one place with unsafe code here: an allocator cannot be written without it.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The system's allocator, and a counter.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ASKED: AtomicU64 = AtomicU64::new(0);

/// Bytes asked for so far, given back or not.
pub fn asked_bytes() -> u64 {
    ASKED.load(Relaxed)
}

// SAFETY: every method passes its arguments on to the system's allocator and returns what it
// returns; the counter allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(layout.size() as u64, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(layout.size() as u64, Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ASKED.fetch_add(size.saturating_sub(layout.size()) as u64, Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}
