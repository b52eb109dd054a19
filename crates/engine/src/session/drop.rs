//! DROP, alone or with all that depends on it.
//!
//! Law: nothing is dropped unless all can be. Dependents are the views that read a relation, theirs
//! in turn, and its indexes; without CASCADE, views refuse, and indexes go with their relation.

use std::collections::BTreeSet;

use anabranch_sql::statement::{Alter, AlterAction, Drop, ObjectKind};

use super::outcome::Outcome;
use super::state::Session;
use crate::catalog::{ObjectId, Watermark, kind_name};
use crate::error::Error;

impl Session {
    pub(super) fn drop_objects(&mut self, drop: &Drop) -> Result<Outcome, Error> {
        let tag = format!("DROP {}", kind_name(drop.kind).to_uppercase());
        let mut missing = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for name in &drop.names {
            match self.catalog.kind_of(name) {
                None if drop.if_exists => missing.push(format!("\"{name}\"")),
                None => return Err(self.catalog.unknown_kind(drop.kind, name)),
                Some(kind) if kind == drop.kind => {
                    if !names.contains(name) {
                        names.push(name.clone());
                    }
                }
                Some(kind) => {
                    return Err(Error::invalid(format!(
                        "\"{name}\" is a {}, not a {}",
                        kind_name(kind),
                        kind_name(drop.kind)
                    ))
                    .with_hint(format!("Use DROP {} {name}.", kind_name(kind).to_uppercase())));
                }
            }
        }
        match drop.kind {
            ObjectKind::Sequence => self.drop_sequences(&names, drop.cascade)?,
            ObjectKind::Index => {
                let going = self.catalog.indexes().filter(|index| names.contains(&index.name));
                let mut ids = Vec::new();
                for index in going {
                    if index.is_unique {
                        let what = format!("index \"{}\"", index.name);
                        self.check_not_referred(&index.relation, Some(&index.key), &what)?;
                    }
                    ids.push(index.id);
                }
                self.record_removal(ids)?;
                names.iter().for_each(|name| self.drop_index(name));
            }
            _ => {
                let order = self.drop_order(drop, &names)?;
                self.drop_references_left(drop, &order)?;
                let relations = self.catalog.objects().filter(|object| order.contains(&object.name));
                let indexes = order.iter().flat_map(|name| self.catalog.indexes_on(name));
                let ids = relations.map(|object| object.id).chain(indexes.map(|index| index.id));
                self.record_removal(ids.collect())?;
                let owned = self.owned_sequences(&order);
                order.iter().for_each(|name| self.drop_relation(name));
                self.drop_sequences(&owned, true)?;
            }
        }
        self.allow_compaction();
        Ok(match missing.is_empty() {
            true => Outcome::done(tag),
            false => Outcome::done_with(tag, format!("{} did not exist.", missing.join(", "))),
        })
    }

    /// Drops foreign keys of tables that stay, to tables that go.
    ///
    /// # Errors
    /// Without CASCADE, when there are any.
    pub(super) fn drop_references_left(&mut self, drop: &Drop, order: &[String]) -> Result<(), Error> {
        let left = self.references_left(order);
        if left.is_empty() {
            return Ok(());
        }
        if !drop.cascade {
            let list: Vec<String> =
                left.iter().map(|(child, name)| format!("constraint \"{name}\" on table \"{child}\"")).collect();
            let name = drop.names.join("\", \"");
            return Err(Error::invalid(format!("table \"{name}\" cannot be dropped because others depend on it"))
                .with_sqlstate("2BP01")
                .with_detail(format!("Dependent: {}.", list.join(", ")))
                .with_hint("Use DROP .. CASCADE to drop them too."));
        }
        for (child, name) in left {
            let actions = vec![AlterAction::DropConstraint { name, if_exists: true }];
            self.alter(&Alter { kind: ObjectKind::Table, name: child, if_exists: false, actions })?;
        }
        Ok(())
    }

    /// Records that objects go, if any do, before they do.
    pub(super) fn record_removal(&mut self, mut removed: Vec<ObjectId>) -> Result<(), Error> {
        removed.sort_unstable();
        if removed.is_empty() { Ok(()) } else { self.record_definition(removed, vec![], vec![]) }
    }

    /// All that goes, readers before what they read.
    ///
    /// # Errors
    /// Without CASCADE, when a view outside of `names` depends on one of them.
    pub(super) fn drop_order(&self, drop: &Drop, names: &[String]) -> Result<Vec<String>, Error> {
        let mut order: Vec<String> = Vec::new();
        for name in names {
            let of_watermark = self.catalog.dependents(&Watermark::relation_of(name));
            for dependent in self.catalog.dependents(name).into_iter().chain(of_watermark).chain([name.clone()]) {
                if !order.contains(&dependent) {
                    order.push(dependent);
                }
            }
        }
        let others: BTreeSet<&String> = order.iter().filter(|name| !names.contains(name)).collect();
        if drop.cascade || others.is_empty() {
            return Ok(order);
        }
        let list: Vec<String> = others
            .iter()
            .map(|name| format!("{} \"{name}\"", self.catalog.kind_of(name).map_or("relation", kind_name)))
            .collect();
        let kind = kind_name(drop.kind);
        let name = names.join("\", \"");
        Err(Error::invalid(format!("{kind} \"{name}\" cannot be dropped because others depend on it"))
            .with_detail(format!("Dependent: {}.", list.join(", ")))
            .with_hint("Use DROP .. CASCADE to drop them too."))
    }

    /// Drops an object that was just made.
    pub(super) fn drop_created(&mut self, name: &str) {
        match self.catalog.kind_of(name) {
            Some(ObjectKind::Index) => self.drop_index(name),
            _ => self.drop_relation(name),
        }
    }

    /// Drops a relation without readers but subscriptions, which end, with its indexes.
    pub(super) fn drop_relation(&mut self, name: &str) {
        self.subscriptions.end_readers(name, self.timeline.last());
        self.take_down(name);
    }

    /// As [`drop_relation`](Session::drop_relation), where another of the name comes back that
    /// subscriptions go on to read.
    pub(super) fn take_down(&mut self, name: &str) {
        let indexes: Vec<String> = self.catalog.indexes_on(name).map(|index| index.name.clone()).collect();
        for index in indexes {
            self.drop_index(&index);
        }
        let Some(object) = self.catalog.remove(name) else { return };
        self.drop_frame_view(object.id);
        self.pump.remove(name);
        self.publish_progress();
        self.dataflows.registry_mut().forget_relation(name);
        let Some(maintained) = object.maintained else { return };
        for arranged in &maintained.arrangements {
            for _ in &arranged.owners {
                self.release_dataflow(arranged.dataflow);
            }
        }
        if maintained.is_input {
            for earlier in self.earlier_inputs.remove(&maintained.collection).into_iter().flatten() {
                self.cluster.drop_input(earlier);
            }
            self.cluster.drop_input(maintained.collection);
        }
        if object.watermark.is_some() {
            self.take_down(&Watermark::relation_of(name));
        }
    }

    /// Drops an index. Queries that share its arrangement keep it until they go.
    pub(super) fn drop_index(&mut self, name: &str) {
        let Some(index) = self.catalog.remove_index(name) else { return };
        let Some(object) = self.catalog.find_mut(&index.relation) else { return };
        let Some(maintained) = &mut object.maintained else { return };
        let mut released = None;
        for arranged in maintained.arrangements.iter_mut().filter(|a| Some(a.arrangement) == index.arrangement) {
            arranged.owners.remove(name);
            released = Some(arranged.dataflow);
        }
        maintained.arrangements.retain(|arranged| !arranged.owners.is_empty());
        if maintained.arrangements.is_empty() && !maintained.is_input {
            object.maintained = None;
        }
        if let Some(dataflow) = released {
            self.release_dataflow(dataflow);
        }
    }
}
