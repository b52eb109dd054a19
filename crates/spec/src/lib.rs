//! What plans ask of operators, said once: plain data that both sides read.
//!
//! A plan carries these values between SQL, frames and render; operators compute what they say.
//! Neither knows the other: a plan has expressions of the planner, which operators never see, and
//! operators have states, which plans never see. So what both need stands here, below both.
//!
//! Law: a value of this crate means the same wherever it stands. Columns are positions in the rows
//! that the operator takes in. Values are comparable and hashable: plans are shared by equality.
//!
//! Reading order: [`order`] (how rows compare), [`top_k`], [`foreign`], [`aggregate`], [`frame`]
//! and [`window`] (what is computed of rows together), [`asof`], [`session`], [`recognize`] and
//! [`pattern`] (what follows what), [`lifetime`], and [`limits`] of loops.

pub mod aggregate;
pub mod asof;
pub mod foreign;
pub mod frame;
pub mod lifetime;
pub mod limits;
pub mod order;
pub mod pattern;
pub mod recognize;
pub mod session;
pub mod top_k;
pub mod window;
