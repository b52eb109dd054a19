//! MERGE: the changes of its parts, computed of the same rows, as one commit.
//!
//! Law: each part sees the table as it was before the statement. No row is changed twice.

use anabranch_batch::Batch;
use anabranch_sql::statement::{Merge, MergePart};

use super::outcome::Outcome;
use super::state::Session;
use super::write::{TableChange, UpdatedRows, n_rows};
use crate::catalog::Object;
use crate::error::Error;

/// What the parts of a MERGE change.
#[derive(Default)]
struct MergedRows {
    old: Vec<Batch>,
    new: Vec<Batch>,
    n_changed: i64,
}

impl Session {
    pub(super) fn merge(&mut self, merge: &Merge) -> Result<Outcome, Error> {
        let object = self.catalog.table(&merge.table)?.clone();
        self.keeping_numbers(&merge.table, |session| {
            let mut rows = MergedRows::default();
            for (n, part) in merge.parts.iter().enumerate() {
                // (Plans are kept for each part by itself.)
                session.bound.part = n + 1;
                let taken = session.merge_part(part, &mut rows);
                session.bound.part = 0;
                taken?;
            }
            session.check_changed_once(&object, &rows.old)?;
            let MergedRows { old, new, n_changed } = rows;
            let tag = format!("MERGE {n_changed}");
            session.write_changed(TableChange {
                table: merge.table.clone(),
                old,
                new,
                are_pairs: false,
                answer: None,
                tag,
            })
        })
    }

    fn merge_part(&mut self, part: &MergePart, rows: &mut MergedRows) -> Result<(), Error> {
        let (old, new) = match part {
            MergePart::Update(update) => {
                let UpdatedRows { old, new, .. } = self.updated_rows(update)?;
                (old, new)
            }
            MergePart::Delete(delete) => (self.rows_to_delete(delete)?, vec![]),
            MergePart::Insert(insert) => {
                let proposed = self.proposed_rows(insert)?;
                (vec![], self.admit_rows(&insert.table, proposed)?)
            }
        };
        // (What is deleted has no new row.)
        rows.n_changed += n_rows(&old).max(n_rows(&new));
        rows.old.extend(old);
        rows.new.extend(new);
        Ok(())
    }

    fn check_changed_once(&mut self, object: &Object, old: &[Batch]) -> Result<(), Error> {
        let Some(twice) = self.changed_twice(object, old)? else { return Ok(()) };
        Err(Error::data("MERGE command cannot affect row a second time")
            .with_sqlstate("21000")
            .with_detail(twice.detail())
            .with_hint("Ensure that not more than one source row matches any one target row."))
    }
}
