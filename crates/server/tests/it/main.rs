//! A server in this process, and clients of another hand.
#![allow(missing_docs)]

mod hostile;
mod protocol;
mod support;
