//! A server in this process, and clients of another hand.
#![allow(missing_docs, clippy::unwrap_used)]

mod hostile;
mod pipelines;
mod protocol;
mod records;
mod support;
