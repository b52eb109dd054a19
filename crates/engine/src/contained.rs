//! Computations whose panic is the statement's error, and nothing else's.
//!
//! Law: what is contained only reads what it is given, and hands back what it has made. So what is
//! left behind by an unwind is whole: nothing that outlives the computation was changed. (A lock
//! that it held is poisoned; the engine's locks guard values that are replaced as a whole, and are
//! taken all the same.) What changes a session, such as a commit, is not contained: there a panic
//! still ends the engine.

use std::panic::{AssertUnwindSafe, catch_unwind};

use anabranch_flow::account::panic_message;

use crate::error::Error;

/// What a computation returns; the error of a panic if it panics.
pub(crate) fn contained<T>(doing: &str, compute: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let outcome = catch_unwind(AssertUnwindSafe(compute));
    outcome.unwrap_or_else(|panic| Err(panicked(doing, &panic_message(panic.as_ref()))))
}

/// The error of a computation that has panicked.
pub(crate) fn panicked(doing: &str, message: &str) -> Error {
    Error::internal(format!("{doing} has failed: {message}"))
        .with_detail("Only this statement has failed; nothing was changed.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(contained("counting", || Ok(1)), Ok(1));
        let error = contained("counting", || -> Result<(), Error> { panic!("out of {}", "fingers") }).unwrap_err();
        assert_eq!((error.kind, error.sqlstate()), (ErrorKind::Internal, "XX000"));
        assert_eq!(error.message, "counting has failed: out of fingers");
    }
}
