//! The allocator of the benchmarks, which counts: bytes alive now, and the most there were.
//!
//! Law: `live` is the sum of the sizes asked for and not given back, by all threads. Counting is
//! off until [`count`] is called. Each thread has a counter of its own, so threads that allocate do
//! not wait for each other: with one counter for all, two workers were measured as slow as one. The
//! peak is that of the thread which asks.
//!
//! The one place with unsafe code here: an allocator cannot be written without it. Every call is
//! passed on as it came.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::Relaxed};

use mimalloc::MiMalloc;

/// Mimalloc, and counters.
pub struct Counting;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);

/// Counters, one a thread; threads beyond have those of others, and count less exactly.
static COUNTERS: [Counter; 64] = [const { Counter { live: AtomicI64::new(0), peak: AtomicI64::new(0) } }; 64];

/// Threads that have a counter.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// A counter, in cache lines of its own.
#[repr(align(128))]
struct Counter {
    live: AtomicI64,
    peak: AtomicI64,
}

thread_local! {
    /// The thread's counter, once it has one. (Neither allocates nor is dropped.)
    static OWN: Cell<Option<&'static Counter>> = const { Cell::new(None) };
}

/// Counts from now on.
pub fn count() {
    IS_COUNTING.store(true, Relaxed);
}

/// Bytes alive, of those allocated since [`count`].
pub fn live_bytes() -> f64 {
    COUNTERS.iter().map(|counter| counter.live.load(Relaxed)).sum::<i64>() as f64
}

/// Bytes alive, of those that this thread allocated since [`count`].
pub fn own_bytes() -> f64 {
    own().live.load(Relaxed) as f64
}

/// The most bytes alive of this thread since the last [`reset_peak`].
pub fn peak_bytes() -> f64 {
    own().peak.load(Relaxed) as f64
}

/// Starts measuring the thread's peak anew.
pub fn reset_peak() {
    own().peak.store(own().live.load(Relaxed), Relaxed);
}

fn own() -> &'static Counter {
    OWN.with(|own| match own.get() {
        Some(counter) => counter,
        None => {
            let counter = &COUNTERS[THREADS.fetch_add(1, Relaxed) % COUNTERS.len()];
            own.set(Some(counter));
            counter
        }
    })
}

/// Loads and stores instead of one locked instruction: the counter is the thread's own.
#[inline]
fn add(bytes: i64) {
    if IS_COUNTING.load(Relaxed) {
        let counter = own();
        let live = counter.live.load(Relaxed) + bytes;
        counter.live.store(live, Relaxed);
        if live > counter.peak.load(Relaxed) {
            counter.peak.store(live, Relaxed);
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
