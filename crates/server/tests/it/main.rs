//! A server in this process, and clients of another hand.
#![allow(missing_docs, clippy::unwrap_used)]

mod backends;
mod hostile;
mod pipelines;
mod portals;
mod protocol;
mod records;
mod support;
