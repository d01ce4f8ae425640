//! The PMU record: the file that the plugin leaves. Its format is in docs/profiles.md.

use crate::decode::Range;
use crate::events::{Counts, EDGE_EVENTS, KERNEL_EVENTS, NAMES};
use crate::frontend::Fetched;
use crate::limits::{Excess, Room, Thing};
use crate::options::Scope;
use crate::region::{Executed, Finished, Region};
use crate::stacks::Node;
use crate::trace::Trace;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How a record begins, before the version.
pub const MAGIC: &str = "kdyno-pmu ";
pub const VERSION: u32 = 2;

/// What the record says of itself, beyond what was counted.
pub struct About {
    pub qemu_api: i32,
    pub scope: Scope,
    /// The events as the option names them.
    pub events: &'static str,
    pub image: Option<String>,
    pub family: Option<String>,
}

#[derive(Serialize)]
pub struct Header<'a> {
    pub plugin: &'static str,
    pub qemu_api: i32,
    pub scope: &'static str,
    pub events: &'static str,
    pub image: &'a Option<String>,
    pub family: &'a Option<String>,
    pub event_names: &'a [&'static str],
    pub bytes: usize,
    pub unclosed: Option<Unclosed>,
    pub opened: u64,
    /// The body ends with what was executed outside of all regions.
    pub unmeasured: bool,
    pub gave_up: Option<Excess>,
}

#[derive(Serialize)]
pub struct Unclosed {
    pub benchmark: u16,
    pub iteration: u16,
}

/// Write the record beside its place, then move it there: what is there is whole.
pub fn write(path: &Path, about: &About, finished: &Finished) -> io::Result<()> {
    let events = events(about.events != "edges", about.scope == Scope::All);
    let (body, gave_up) = body(finished, events, &mut Room::new());
    let header = Header {
        plugin: env!("CARGO_PKG_VERSION"),
        qemu_api: about.qemu_api,
        scope: about.scope.name(),
        events: about.events,
        image: &about.image,
        family: &about.family,
        event_names: &NAMES[..events],
        bytes: body.len(),
        unclosed: finished
            .unclosed
            .map(|identity| Unclosed { benchmark: identity.benchmark, iteration: identity.iteration }),
        opened: finished.regions_opened,
        unmeasured: true,
        gave_up,
    };
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let mut file = File::create(&partial)?;
    writeln!(file, "{MAGIC}{VERSION}\n{}", serde_json::to_string(&header)?)?;
    let mut encoder = ZlibEncoder::new(file, Compression::fast());
    encoder.write_all(&body)?;
    encoder.finish()?.sync_all()?;
    std::fs::rename(partial, path)
}

/// Return how many events are counted.
pub fn events(is_detailed: bool, with_user_code: bool) -> usize {
    match (is_detailed, with_user_code) {
        (false, _) => EDGE_EVENTS,
        (true, false) => KERNEL_EVENTS,
        (true, true) => NAMES.len(),
    }
}

/// Return the counts, or, if there was too much of something, none, and why.
pub fn body(finished: &Finished, events: usize, room: &mut Room) -> (Vec<u8>, Option<Excess>) {
    let whole = if finished.gave_up.is_none() { Body::encode(finished, events) } else { Vec::new() };
    match finished.gave_up {
        None if room.holds(Thing::body_bytes, whole.len()) => (whole, None),
        why => (EMPTY.into(), why.or(room.excess())),
    }
}

/// No functions, no regions, and nothing outside of them.
const EMPTY: [u8; 3] = [0, 0, 0];

/// Numbers, seven bits to a byte (LEB128).
struct Body {
    bytes: Vec<u8>,
    events: usize,
}

impl Body {
    fn encode(finished: &Finished, events: usize) -> Vec<u8> {
        let regions = finished.regions.by_benchmark.values();
        // Without detail calls are not followed, and the trees are of entries alone.
        let stacks_of = |region: &Region| if events > EDGE_EVENTS { preorder(region.root) } else { Vec::new() };
        let stacks: Vec<_> = regions.map(stacks_of).collect();
        let mut body = Body { bytes: Vec::new(), events };
        let indices = body.functions(finished, &stacks);
        body.number(finished.regions.by_benchmark.len() as u64);
        for ((benchmark, region), stacks) in finished.regions.by_benchmark.iter().zip(&stacks) {
            body.number(u64::from(*benchmark));
            body.region(region, &indices);
            body.stacks(stacks, &indices);
            if let Some(trace) = &region.trace {
                body.trace(trace);
            }
        }
        body.blocks(&finished.unmeasured);
        body.bytes
    }

    /// List the functions that occur; return where each is in their list.
    fn functions(&mut self, finished: &Finished, stacks: &[Vec<Placed>]) -> BTreeMap<u32, u64> {
        let executed = finished.regions.by_benchmark.values().flat_map(|region| &region.contexts);
        let counted = executed.flat_map(|context| context.functions.keys().copied());
        let stacked = stacks.iter().flatten().map(|placed| placed.function);
        let numbers: std::collections::BTreeSet<u32> = counted.chain(stacked).collect();
        self.number(numbers.len() as u64);
        let mut previous = 0;
        for number in &numbers {
            let function = finished.symbols.get(*number);
            self.number(function.start - previous);
            self.number(function.size);
            self.number(function.name.len() as u64);
            self.bytes.extend_from_slice(function.name.as_bytes());
            previous = function.start;
        }
        numbers.into_iter().zip(0..).collect()
    }

    fn region(&mut self, region: &Region, indices: &BTreeMap<u32, u64>) {
        self.number(region.iterations.len() as u64);
        for (iteration, contexts) in &region.iterations {
            self.number(u64::from(*iteration));
            for counts in contexts {
                self.counts(counts);
            }
        }
        for executed in &region.contexts {
            self.executed(executed, indices);
        }
    }

    fn blocks(&mut self, blocks: &BTreeMap<Range, u64>) {
        let blocks: Vec<_> = blocks.iter().filter(|(_, count)| **count > 0).collect();
        self.number(blocks.len() as u64);
        let mut previous = 0;
        for (range, count) in blocks {
            self.difference(range.start, previous);
            self.number(u64::from(range.instructions));
            self.number(range.last.wrapping_sub(range.start));
            self.number(range.end.wrapping_sub(range.start));
            self.number(*count);
            previous = range.start;
        }
    }

    fn executed(&mut self, executed: &Executed, indices: &BTreeMap<u32, u64>) {
        self.blocks(&executed.blocks);
        self.number(executed.branches.len() as u64);
        let mut previous = 0;
        for (branch, count) in &executed.branches {
            self.difference(branch.source, previous);
            self.difference(branch.target, branch.source);
            self.number(branch.kind as u64);
            self.number(*count);
            previous = branch.source;
        }
        self.number(executed.functions.len() as u64);
        let mut previous = 0;
        for (function, counts) in &executed.functions {
            let place = indices[function];
            self.number(place - previous);
            self.counts(counts);
            previous = place;
        }
    }

    fn stacks(&mut self, stacks: &[Placed], indices: &BTreeMap<u32, u64>) {
        self.number(stacks.len() as u64);
        for placed in stacks {
            self.number(placed.parent);
            self.number(indices[&placed.function]);
            self.number(placed.kind);
            self.number(placed.instructions);
        }
    }

    fn trace(&mut self, trace: &Trace) {
        let mut blocks: Vec<TracedBlock> = Vec::new();
        let mut indices = FxHashMap::default();
        for step in &trace.steps {
            let place = *indices.entry(step.block).or_insert(blocks.len());
            if place == blocks.len() {
                // SAFETY: blocks are never freed.
                blocks.push(TracedBlock { code: unsafe { (*step.block).facts.fetched() }, place, steps: 0, time: 0 });
            }
            blocks[place].steps += 1;
            blocks[place].time += u64::from(step.time);
        }
        blocks.sort_by_key(|block| (block.code.start, block.code.end, block.place));
        let mut ids = vec![0; blocks.len()];
        self.number(blocks.len() as u64);
        let mut previous = 0;
        for (id, block) in blocks.iter().enumerate() {
            ids[block.place] = id as u64;
            self.difference(block.code.start, previous);
            self.number(block.code.last.wrapping_sub(block.code.start));
            self.number(block.code.end.wrapping_sub(block.code.start));
            let (is_call, is_branch) = (u64::from(block.code.is_call), u64::from(block.code.is_branch));
            self.number(u64::from(block.code.ops) << 2 | is_call << 1 | is_branch);
            self.number(block.time / block.steps);
            previous = block.code.start;
        }
        self.number(trace.steps.len() as u64);
        for step in &trace.steps {
            self.number(ids[indices[&step.block]] << 2 | step.way as u64);
        }
        self.number(trace.left_out);
    }

    fn counts(&mut self, counts: &Counts) {
        for count in &counts[..self.events] {
            self.number(*count);
        }
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Write a signed difference: the sign goes to the lowest bit.
    fn difference(&mut self, value: u64, base: u64) {
        let difference = value.wrapping_sub(base) as i64;
        self.number((difference << 1 ^ difference >> 63) as u64);
    }
}

/// A block of a trace.
struct TracedBlock {
    code: Fetched,
    /// Where it came first among the blocks of the trace.
    place: usize,
    steps: u64,
    /// The time of all steps.
    time: u64,
}

/// A node of the tree of stacks, in the order in which they are written.
struct Placed {
    /// 0: the root; else the place of an earlier node, counted from 1.
    parent: u64,
    function: u32,
    kind: u64,
    instructions: u64,
}

/// Return all nodes but the root, parents first; children by function, so that two equal trees are written alike.
fn preorder(root: *const Node) -> Vec<Placed> {
    let mut placed = Vec::new();
    let mut waiting = vec![(root, 0)];
    while let Some((node, place)) = waiting.pop() {
        // SAFETY: nodes are never freed.
        let node = unsafe { &*node };
        let place = if node.parent.is_null() {
            0
        } else {
            let instructions = node.instructions;
            placed.push(Placed { parent: place, function: node.function, kind: node.kind as u64, instructions });
            placed.len() as u64
        };
        let mut children = node.children.clone();
        // SAFETY: as above.
        children.sort_by_key(|child| unsafe { std::cmp::Reverse(((**child).function, (**child).kind as u8)) });
        waiting.extend(children.into_iter().map(|child| (child as *const Node, place)));
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Blocks;
    use crate::counter::Counter;
    use crate::symbols::Symbols;

    #[test]
    fn a_body_that_is_too_large_is_left_out_and_said() {
        let mut counter = Counter::new(Blocks::new(Symbols::none(), false), None, false, false);
        counter.open();
        counter.close();
        let finished = counter.finish();
        let (whole, none) = body(&finished, EDGE_EVENTS, &mut Room::new());
        assert!(whole.len() > 3 * EDGE_EVENTS && none.is_none());
        let mut room = Room::new();
        room.set_limit(Thing::body_bytes, whole.len());
        assert_eq!(body(&finished, EDGE_EVENTS, &mut room), (whole.clone(), None));
        room.set_limit(Thing::body_bytes, whole.len() - 1);
        let excess = Excess { thing: "body_bytes", limit: whole.len() - 1 };
        assert_eq!(body(&finished, EDGE_EVENTS, &mut room), (EMPTY.into(), Some(excess)));
    }
}
