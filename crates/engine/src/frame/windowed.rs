//! The windows that a frame's events lie in, as data.

use std::sync::Arc;

use anabranch_plan::Plan;
use anabranch_plan::temporal::Windows;

/// When the results of windows come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmitWhen {
    /// Once, when the window is over: final answers, from the window's end on.
    OnClose,
    /// At every row, from its time until the window's end: every change.
    Early,
    /// Every so many ticks, of which the period is a multiple.
    Progressive(i64),
}

/// Which end of a window belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Closed {
    /// `[b, b + size)`.
    Left,
    /// `(b - size, b]`.
    Right,
}

/// The windows that a frame's events lie in.
#[derive(Clone, Debug)]
pub(crate) struct Windowed {
    /// As the rows see them: `offset` is some window's start if closed on the left, else some
    /// window's end.
    pub(super) windows: Windows,
    pub(super) closed: Closed,
    pub(super) emit: EmitWhen,
    /// Whether every event lies in the results of one window.
    pub(super) is_single: bool,
    /// What was put in windows, right after that.
    pub(super) before: Option<Arc<Plan>>,
}

impl Windowed {
    /// The same, seen from behind another verb.
    pub(super) fn further(&self) -> Windowed {
        Windowed { before: None, ..self.clone() }
    }
}
