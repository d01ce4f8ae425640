//! What the program is asked: the code of a kernel, what was recorded of it, and orders to try. Written by
//! src/kdyno/profile/order_job.py: a line with the format, a line of JSON, and numbers of 64 bits, little-endian.

use crate::replay::{Step, Way};
use kdyno_model::frontend::Fetched;
use kdyno_model::geometry::Geometry;
use serde::Deserialize;

pub const MAGIC: &str = "kdyno-layout 1";
/// No address and no sum of sizes reaches so far in a kernel's text.
const MOST_SIZE: u64 = 1 << 30;
const MOST_ALIGN: u64 = 1 << 16;
/// QEMU ends a block sooner.
const MOST_BLOCK: u64 = 1 << 16;
/// Parts of a cycle; more would only be a block that waited for a disk.
const LONGEST: u64 = 1 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// TOML of each CPU family.
    pub families: Vec<String>,
    /// Weights of each family: cycles of a starved cycle and of a miss of the first cache.
    pub weights: Vec<[f64; 2]>,
    /// Where the first ordered function goes.
    pub base: u64,
    pub units: usize,
    pub traces: Vec<TraceHeader>,
    /// Orders to be tried, of units; the first is where the search starts.
    pub orders: Vec<Vec<u32>>,
    /// Most that a benchmark may lose against the layout that was recorded, as a fraction.
    pub guard: Option<f64>,
    /// Moves that the search tries.
    pub moves: u32,
    pub seed: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceHeader {
    /// Which boot it is of.
    pub boot: usize,
    pub blocks: usize,
    pub steps: usize,
    /// Modelled cycles of what was recorded, by family.
    pub cycles: Vec<f64>,
}

/// Where a unit goes when functions before it move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It can be ordered.
    Movable,
    /// It is among those that can, and stays there.
    Staying,
    /// It is behind them.
    Behind,
    /// It has an address that nothing changes.
    Fixed,
}

/// A function with what belongs to it, or a part of one.
#[derive(Debug, Clone, Copy)]
pub struct Unit {
    pub start: u64,
    pub size: u64,
    pub align: u64,
    pub kind: Kind,
}

/// A block as it was recorded, and the unit that it is in.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    pub unit: Option<u32>,
    pub code: Fetched,
    pub time: u32,
}

#[derive(Debug)]
pub struct Trace {
    pub boot: usize,
    pub cycles: Vec<f64>,
    pub blocks: Vec<Block>,
    pub steps: Vec<Step>,
}

pub struct Job {
    pub families: Vec<Geometry>,
    pub weights: Vec<[f64; 2]>,
    pub base: u64,
    pub units: Vec<Unit>,
    pub traces: Vec<Trace>,
    pub orders: Vec<Vec<u32>>,
    pub guard: Option<f64>,
    pub moves: u32,
    pub seed: u64,
}

impl Job {
    pub fn read(data: &[u8]) -> Result<Job, String> {
        let mut lines = data.splitn(3, |byte| *byte == b'\n');
        if lines.next() != Some(MAGIC.as_bytes()) {
            return Err(format!("it does not begin with {MAGIC}"));
        }
        let header = lines.next().unwrap_or_default();
        let header: Header = serde_json::from_slice(header).map_err(|error| error.to_string())?;
        let mut numbers = Numbers(lines.next().unwrap_or_default());
        let families: Result<Vec<_>, _> = header.families.iter().map(|text| Geometry::parse(text)).collect();
        let families = families?;
        if families.is_empty() || header.weights.len() != families.len() {
            return Err("weights are not those of its families".to_owned());
        }
        let units = numbers.rows(header.units)?.map(unit).collect::<Result<Vec<_>, _>>()?;
        let mut traces = Vec::new();
        for trace in header.traces {
            traces.push(read_trace(trace, &mut numbers, &units, families.len())?);
        }
        if !numbers.0.is_empty() {
            return Err("more follows its end".to_owned());
        }
        if header.orders.is_empty() {
            return Err("it has no order".to_owned());
        }
        for order in &header.orders {
            let mut is_placed = vec![false; units.len()];
            for unit in order {
                let is_movable = units.get(*unit as usize).is_some_and(|unit| unit.kind == Kind::Movable);
                if !is_movable || std::mem::replace(&mut is_placed[*unit as usize], true) {
                    return Err(format!("unit {unit} can't be ordered, or comes twice"));
                }
            }
        }
        let Header { weights, base, orders, guard, moves, seed, .. } = header;
        Ok(Job { families, weights, base, units, traces, orders, guard, moves, seed })
    }
}

fn unit([start, size, align, kind]: [u64; 4]) -> Result<Unit, String> {
    if size > MOST_SIZE || !align.is_power_of_two() || align > MOST_ALIGN {
        return Err(format!("a unit of {size} bytes, aligned to {align}"));
    }
    let kinds = [Kind::Movable, Kind::Staying, Kind::Behind, Kind::Fixed];
    let kind = *kinds.get(kind as usize).ok_or_else(|| format!("{kind} is not a kind of unit"))?;
    Ok(Unit { start, size, align, kind })
}

fn read_trace(header: TraceHeader, numbers: &mut Numbers, units: &[Unit], families: usize) -> Result<Trace, String> {
    if header.cycles.len() != families || header.cycles.iter().any(|cycles| !cycles.is_finite()) {
        return Err("cycles are not those of its families".to_owned());
    }
    let mut blocks = Vec::new();
    for [unit, start, last, end, ops, time] in numbers.rows(header.blocks)? {
        let unit = unit.checked_sub(1);
        let within = unit.is_none_or(|unit| {
            units.get(unit as usize).is_some_and(|unit| start.wrapping_sub(unit.start) < unit.size.max(1))
        });
        let length = end.wrapping_sub(start);
        if !within || length > MOST_BLOCK || last.wrapping_sub(start) > length {
            return Err(format!("a block at {start:#x} is not in its unit"));
        }
        let (is_branch, is_call, ops) = (ops & 1 == 1, ops & 2 == 2, (ops >> 2).min(LONGEST) as u32);
        let code = Fetched { start, last, end, ops, is_branch, is_call };
        blocks.push(Block { unit: unit.map(|unit| unit as u32), code, time: time.min(LONGEST) as u32 });
    }
    let mut steps: Vec<Step> = Vec::new();
    for [number] in numbers.rows(header.steps)? {
        let (place, way) = (number >> 2, Way::of(number));
        let Some(block) = blocks.get(place as usize) else {
            return Err(format!("there is no block {place}"));
        };
        let before = steps.last().map(|step| blocks[step.block as usize]);
        let is_taken = way != Way::Entered && before.is_some_and(|before| before.code.end != block.code.start);
        steps.push(Step { block: place as u32, way, is_taken });
    }
    let TraceHeader { boot, cycles, .. } = header;
    Ok(Trace { boot, cycles, blocks, steps })
}

struct Numbers<'a>(&'a [u8]);

impl<'a> Numbers<'a> {
    fn rows<const N: usize>(&mut self, rows: usize) -> Result<impl Iterator<Item = [u64; N]> + use<'a, N>, String> {
        let bytes = rows.checked_mul(8 * N).filter(|bytes| *bytes <= self.0.len()).ok_or("it is cut short")?;
        let (numbers, rest) = self.0.split_at(bytes);
        self.0 = rest;
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        Ok(numbers.chunks_exact(8 * N).map(move |row| std::array::from_fn(|at| number(&row[8 * at..8 * at + 8]))))
    }
}
