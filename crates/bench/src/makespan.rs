//! Quill's plans of figure 1 on more machines than there are: *modelled*.
//!
//! Law of the model: a program is run whole, as P times n shards on the cores that there are, each
//! on a thread whose CPU time is read; what crosses from one location to another is counted in
//! bytes of the wire form. On P machines of n cores, joined by links of so many bits a second, it
//! would take as long as its busiest core works, or as its busiest link sends, whichever is longer:
//! work and sending go on at once, as batches do not wait for one another. Left out: latency, and
//! what cores of one machine take from each other. No figure of it is a measurement of P machines.
//! Source: Quill 6 (plans of figure 1 over groups), notes of this project on honest scale-out.

use std::collections::BTreeMap;

use anabranch_engine::Error;
use anabranch_shards::Layout;
use serde_json::{Value, json};

use super::shards::{Options, batches, plans_of_figure_1};

/// Bits a second of a link, both ways.
const LINK_BITS: f64 = 10e9;

/// Machines, and cores of each.
const MACHINES: [(usize, usize); 3] = [(2, 2), (4, 4), (8, 4)];

/// The seconds that a plan would take, and of what.
struct Modelled {
    core_s: f64,
    link_s: f64,
    cpu_s: f64,
    far_mb: f64,
}

impl Modelled {
    fn seconds(&self) -> f64 {
        self.core_s.max(self.link_s)
    }

    fn limit(&self) -> &'static str {
        if self.link_s > self.core_s { "link" } else { "core" }
    }
}

/// The plans over numbers of groups and machines, and which of them is the quickest.
pub(super) fn makespans(options: &Options) -> Result<Vec<Value>, Error> {
    let mut lines = Vec::new();
    for groups in [2_000, 20_000, 200_000, options.rows / 4, options.rows] {
        let given = batches(options.rows, options.batch, 2, groups);
        for (machines, cores) in MACHINES {
            let layout = Layout::grid(machines, cores);
            let mut best: Option<(f64, &str)> = None;
            for (plan, program) in plans_of_figure_1(layout) {
                let mut run = program.run()?;
                for (at, batch) in given.iter().enumerate() {
                    run.push("rows", at % layout.shards(), batch.clone())?;
                }
                run.finish()?;
                let modelled = modelled(&run, layout);
                let seconds = modelled.seconds();
                if best.is_none_or(|(least, _)| seconds < least) {
                    best = Some((seconds, plan));
                }
                println!(
                    "modelled: figure 1 {plan}, {groups} groups, {machines} machines of {cores} cores: {:.1} ms by its \
                     {} ({:.1} ms of the busiest core, {:.1} ms of the busiest link)",
                    seconds * 1e3,
                    modelled.limit(),
                    modelled.core_s * 1e3,
                    modelled.link_s * 1e3,
                );
                lines.push(json!({
                    "bench": "shards", "mode": "modelled", "case": format!("figure 1 {plan}"), "groups": groups,
                    "rows": options.rows, "machines": machines, "cores": cores, "link_bits_per_s": LINK_BITS,
                    "seconds": seconds, "limit": modelled.limit(), "core_s": modelled.core_s,
                    "link_s": modelled.link_s, "cpu_s": modelled.cpu_s, "far_mb": modelled.far_mb,
                }));
            }
            if let Some((_, plan)) = best {
                println!("    plan {plan} is the quickest of them");
            }
        }
    }
    Ok(lines)
}

fn modelled(run: &anabranch_shards::ShardRun, layout: Layout) -> Modelled {
    let (mut cores, mut links) = (BTreeMap::new(), BTreeMap::new());
    for step in run.profile() {
        *cores.entry(step.shard).or_insert(0) += step.counts.cpu_nanos;
        *links.entry(layout.process(step.shard)).or_insert(0) += step.counts.moved.bytes_far;
    }
    let busiest = |of: &BTreeMap<usize, u64>| of.values().copied().max().unwrap_or_default() as f64;
    Modelled {
        core_s: busiest(&cores) / 1e9,
        link_s: busiest(&links) * 8.0 / LINK_BITS,
        cpu_s: cores.values().sum::<u64>() as f64 / 1e9,
        far_mb: links.values().sum::<u64>() as f64 / 1e6,
    }
}
