//! PostgreSQL's protocol and HTTP in front of a database.
//!
//! Law: a client sees what a [`Connection`](anabranch_engine::Connection) sees, in the order in
//! which it asked. Whatever bytes a client sends, or fails to send or to read, harms that client
//! alone.
//!
//! Cost: a thread and some tens of kilobytes for each client; nothing here holds the engine while a
//! client is slow. The choice of threads, and of a protocol of our own, is in decision 0038.
//!
//! Reading order: [`config`], [`users`] and `scram` (who may come), `tls`, [`server`] (the
//! listener, and the end), `peers` (who is there), `wire/` (messages and values), `session/` (one
//! client), `http/`, `metrics`, [`logs`], `pages`.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod config;
mod error;
mod http;
pub mod logs;
mod metrics;
mod pages;
mod peers;
pub mod run;
mod scram;
pub mod server;
mod session;
mod shared;
mod tls;
mod turns;
pub mod users;
mod wire;

pub use config::{Config, Limits};
pub use error::ServerError;
pub use run::run;
pub use server::Server;
pub use users::{User, Users};
