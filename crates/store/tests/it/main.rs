//! The store against a model, on disks that fail from a seed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod crashes;
mod damage;
mod faults;
mod files;
mod model;
mod places;
