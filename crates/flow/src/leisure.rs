//! Whether this worker has time to spare.
//!
//! Law: what is done in spare time changes no answer. A worker has none while one of its dataflows is behind its inputs: whoever waits for that would wait
//! for the spare work too. Who drives the worker says so; operators ask before they merge what nothing asks for yet.

use std::cell::Cell;

thread_local! {
    static IS_BEHIND: Cell<bool> = const { Cell::new(false) };
}

/// Says whether a dataflow of this thread's worker is behind its inputs.
pub fn set_behind(is_behind: bool) {
    IS_BEHIND.set(is_behind);
}

/// Whether none is behind.
pub fn is_leisure() -> bool {
    !IS_BEHIND.get()
}
