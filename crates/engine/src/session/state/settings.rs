//! What a session lets its user choose.

use crate::session::state::options::Options;
use crate::sharing::Sharing;

/// A session's settings.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Rows read from one source in one turn, at most.
    pub batch_rows_max: usize,
    /// How far queries share arrangements.
    pub sharing: Sharing,
    /// How long, before the last commit, what relations held can still be read.
    pub retain_history_micros: i64,
}

impl Settings {
    pub fn new(options: &Options) -> Settings {
        Settings {
            batch_rows_max: options.batch_rows_max.max(1),
            sharing: options.sharing,
            retain_history_micros: i64::try_from(options.retain_history.as_micros()).unwrap_or(i64::MAX),
        }
    }
}
