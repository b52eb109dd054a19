//! The store against a model, on disks that fail from a seed.

mod crashes;
mod damage;
mod faults;
mod files;
mod model;
