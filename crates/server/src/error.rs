//! What keeps a server from starting, or from going on.

/// An error of the server as a whole; errors of single clients are told to them.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ServerError {
    /// What happened, in one line.
    pub message: String,
    /// What to do instead.
    pub hint: Option<String>,
}

impl ServerError {
    /// An error with a message only.
    pub fn new(message: impl Into<String>) -> ServerError {
        ServerError { message: message.into(), hint: None }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> ServerError {
        self.hint = Some(hint.into());
        self
    }
}

impl From<anabranch_engine::Error> for ServerError {
    fn from(error: anabranch_engine::Error) -> ServerError {
        ServerError { message: error.message, hint: error.hint }
    }
}
