//! What the rows of a table obey beside types, NOT NULL and the key, in a form that is ready to be
//! used.
//!
//! Counters are those of [`sequence`](super::sequence).

use std::sync::Arc;

use anabranch_plan::Plan;
use anabranch_sql::statement::{Made, Rules};
use arrow::datatypes::DataType;

use super::sequence::Counter;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct TableRules {
    /// As they were declared.
    pub declared: Rules,
    /// A column for each CHECK: whether a row passes.
    pub passes: Option<Arc<Plan>>,
    /// A column for each computed column: its value.
    pub values: Option<Arc<Plan>>,
    /// Columns that number rows, in order.
    pub counters: Vec<Counted>,
}

/// A column that numbers rows.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    /// Its place.
    pub column: usize,
    pub counter: Arc<Counter>,
}

impl TableRules {
    /// Rules whose plans are still to be made.
    pub fn new(declared: Rules) -> TableRules {
        let counted = |(column, made): (usize, &Made)| match made {
            Made::Numbered(numbering) => Some(Counted { column, counter: Arc::new(Counter::of_column(*numbering)) }),
            _ => None,
        };
        let counters = declared.made.iter().enumerate().filter_map(counted).collect();
        TableRules { declared, counters, ..TableRules::default() }
    }

    /// Places of computed columns.
    pub fn computed(&self) -> Vec<usize> {
        let made = self.declared.made.iter().enumerate();
        made.filter(|(_, made)| matches!(made, Made::Computed(_))).map(|(column, _)| column).collect()
    }

    /// Where the counters stand, as it is recorded.
    pub fn counters_value(&self) -> Vec<u8> {
        let next: Vec<String> = self.counters.iter().map(|counted| counted.counter.peek().to_string()).collect();
        next.join(",").into_bytes()
    }

    /// Sets the counters to what was recorded; `None` when that is malformed.
    pub fn restore_counters(&self, value: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(value).ok()?;
        let next = text.split(',').map(|number| number.parse().ok()).collect::<Option<Vec<i64>>>()?;
        if next.len() != self.counters.len() {
            return None;
        }
        self.counters.iter().zip(next).for_each(|(counted, next)| counted.counter.set(next));
        Some(())
    }
}

/// The greatest number of a column's type.
pub(crate) fn number_max(data_type: &DataType) -> i64 {
    match data_type {
        DataType::Int16 => i16::MAX.into(),
        DataType::Int32 => i32::MAX.into(),
        _ => i64::MAX,
    }
}
