//! The allocator of the benchmarks, which counts: bytes alive now, and the most there were.
//!
//! Law: `live` is the sum of the sizes asked for and not given back. Counting is off until
//! [`count`] is called, since it costs two updates of a counter an allocation; it is exact while
//! one thread allocates, which is how the cases that use it run.
//!
//! The one place with unsafe code here: an allocator cannot be written without it. Every call is
//! passed on as it came.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use mimalloc::MiMalloc;

/// Mimalloc, and counters.
pub struct Counting;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

/// Counts from now on.
pub fn count() {
    IS_COUNTING.store(true, Relaxed);
}

/// Bytes alive, of those allocated since [`count`].
pub fn live_bytes() -> f64 {
    LIVE.load(Relaxed) as f64
}

/// The most bytes alive since the last [`reset_peak`].
pub fn peak_bytes() -> f64 {
    PEAK.load(Relaxed) as f64
}

/// Starts measuring the peak anew.
pub fn reset_peak() {
    PEAK.store(LIVE.load(Relaxed), Relaxed);
}

/// Loads and stores instead of one locked instruction: one thread allocates.
#[inline]
fn add(bytes: i64) {
    if IS_COUNTING.load(Relaxed) {
        let live = LIVE.load(Relaxed) + bytes;
        LIVE.store(live, Relaxed);
        if live > PEAK.load(Relaxed) {
            PEAK.store(live, Relaxed);
        }
    }
}

#[allow(unsafe_code)]
// SAFETY: every method passes its arguments on to mimalloc and returns what it returns; the
// counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as i64 - layout.size() as i64);
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}
