//! Version 3 of PostgreSQL's protocol: messages, and values within them.
//!
//! Law: no message that comes makes more memory than its own length, and no length is believed
//! before its bytes are there. Messages are written into one buffer that goes out when it is large,
//! or when the server would wait.
//!
//! The source is PostgreSQL's documentation, part VII, "Frontend/Backend Protocol".
//!
//! Reading order: [`frames`] (bytes, and their limits), [`message`] (what clients send), [`reply`]
//! (what they hear), [`rows`] (values out), [`parameters`] (values in).

pub(crate) mod frames;
#[cfg(test)]
mod fuzz;
pub(crate) mod message;
pub(crate) mod parameters;
pub(crate) mod reply;
pub(crate) mod rows;
