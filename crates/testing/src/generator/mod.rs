//! Random relations, their histories, and plans over them.
//!
//! Reading order: [`values`] (one value), [`history`] (what happens to relations over time),
//! [`expressions`] and [`plans`], [`patterns`] and [`windows`] (what is asked).

pub mod expressions;
pub mod history;
pub mod patterns;
pub mod plans;
pub mod recursive;
pub mod values;
pub mod windows;
