//! The modelled hardware: the tables of a CPU family's TOML that the plugin simulates. What only the host needs
//! (weights, titles) is passed over; what is simulated must be there, and sane.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub struct Geometry {
    pub name: String,
    /// Instructions per cycle at best.
    pub width: u32,
    /// Instructions that wait for what they read, at most.
    pub scheduler: u32,
    /// Instructions in flight at most.
    pub window: usize,
    pub units: Units,
    pub rep: Reps,
    pub latency: Latency,
    pub l1i: Cache,
    pub l1d: Cache,
    pub l2: Cache,
    pub llc: Cache,
    pub itlb: Tlb,
    pub dtlb: Tlb,
    pub stlb: SecondTlb,
    /// Second-level translations of instructions, where those of data are kept apart from them.
    pub l2_itlb: Option<SecondTlb>,
    pub frontend: Frontend,
    /// Translations of several address spaces at once, distinguished by a number (PCID, in AMD's words too).
    pub pcid: bool,
    pub predictor: Predictor,
    pub prefetcher: Prefetcher,
}

/// Operations of each kind that can start in a cycle.
#[derive(Debug, Deserialize)]
pub struct Units {
    /// Integer arithmetic.
    pub alus: u8,
    /// Among it shifts, rotations, bit tests, and additions of three parts.
    pub shifters: u8,
    /// Among it multiplications.
    pub multipliers: u8,
    /// Among it conditional moves and sets.
    pub conditions: u8,
    pub branches: u8,
    pub loads: u8,
    /// Loads and stores.
    pub accesses: u8,
    /// Loads of what a store has not put into the cache yet.
    pub forwards: u8,
    /// Stores that wait for their turn to be put into the cache.
    pub store_queue: usize,
}

/// How long REP string instructions take.
#[derive(Debug, Deserialize)]
pub struct Reps {
    pub moves: Rep,
    /// Moves of eight bytes at a time.
    pub word_moves: Rep,
    pub stores: Rep,
    /// Stores of four or eight bytes at a time.
    pub word_stores: Rep,
}

/// How long a kind of them takes, in cycles.
#[derive(Debug, Deserialize)]
pub struct Rep {
    /// Up to `short_bytes`.
    pub short: u64,
    pub short_bytes: u64,
    /// Beyond, and for each `bytes` of it a cycle more.
    pub long: u64,
    pub bytes: u64,
}

/// In cycles.
#[derive(Debug, Deserialize)]
pub struct Latency {
    /// From an address to its data, by where they are.
    pub l1: u64,
    pub l2: u64,
    pub llc: u64,
    pub memory: u64,
    /// From stored data to a load of them.
    pub forward: u64,
    /// The same where the load is a plain move of what one store stored: some processors rename it.
    pub renamed: u64,
    /// On top, where the second TLB has the translation.
    pub stlb: u64,
    /// On top, where only the page tables have it.
    pub walk: u64,
    /// From a line's bytes to its first instruction, which the op cache saves.
    pub decode: u64,
    /// From decoding a taken branch that wasn't known to the queue's next block.
    pub resteer: u64,
    /// From a call or a return to what is behind it, even if it is known.
    pub call: u64,
    /// Of an instruction that looks for a set bit.
    pub scan: u64,
    /// From knowing that a branch was mispredicted to what follows it.
    pub mispredicted: u64,
    pub divide: u64,
    /// From one locked instruction to the next.
    pub locked: u64,
    /// From an lfence to what follows it.
    pub fence: u64,
}

/// A set-associative cache with lines of 64 bytes.
#[derive(Debug, Deserialize)]
pub struct Cache {
    /// In bytes.
    pub size: u64,
    pub ways: u64,
}

/// First-level translations: one fully associative table for each size of page.
#[derive(Debug, Deserialize)]
pub struct Tlb {
    pub entries_4k: usize,
    pub entries_2m: usize,
}

/// Second-level translations, of all sizes.
#[derive(Debug, Deserialize)]
pub struct SecondTlb {
    pub entries: u64,
    pub ways: u64,
}

/// What is between the first cache and dispatch.
#[derive(Debug, Deserialize)]
pub struct Frontend {
    /// Blocks that the predictor can be ahead.
    pub queue: usize,
    /// Lines that can be on their way into the first cache.
    pub misses: usize,
    /// Instructions that are decoded in a cycle.
    pub decoders: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Ops that wait for their dispatch, at most.
    pub ops: u64,
    /// Ops that the op cache has, in how many ways, and how many of them it gives in a cycle; 0: there is none.
    pub op_cache: u64,
    pub op_cache_ways: u64,
    pub op_cache_width: u64,
    /// Branches that the branch target buffer has, and in how many ways.
    pub btb: u64,
    pub btb_ways: u64,
}

#[derive(Debug, Deserialize)]
pub struct Predictor {
    #[allow(dead_code)] // there is one kind; another name is refused
    pub kind: PredictorKind,
    /// log2 of the number of two-bit counters; each tagged table has an eighth.
    pub table_bits: u32,
    /// log2 of the number of targets of indirect branches.
    pub btb_bits: u32,
    /// Return addresses that are remembered.
    pub return_stack: usize,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum PredictorKind {
    /// Tagged tables by ever longer histories (Seznec, Michaud, JILP 2006).
    Tage,
}

#[derive(Debug, Deserialize)]
pub struct Prefetcher {
    /// Sequences of lines that are followed at once.
    pub streams: usize,
}

impl Geometry {
    pub fn parse(text: &str) -> Result<Geometry, String> {
        let geometry: Geometry = toml::from_str(text).map_err(|error| error.message().to_string())?;
        geometry.check()?;
        Ok(geometry)
    }

    fn check(&self) -> Result<(), String> {
        for (name, cache) in [("l1i", &self.l1i), ("l1d", &self.l1d), ("l2", &self.l2), ("llc", &self.llc)] {
            if cache.ways == 0 || cache.size / 64 / cache.ways == 0 || cache.size > 1 << 32 {
                return Err(format!("{name}: {} bytes in {} ways are not a cache", cache.size, cache.ways));
            }
        }
        for (name, tlb) in [("stlb", Some(&self.stlb)), ("l2_itlb", self.l2_itlb.as_ref())] {
            if let Some(SecondTlb { entries, ways }) = tlb
                && (*ways == 0 || entries / ways == 0 || *entries > 1 << 20)
            {
                return Err(format!("{name}: {entries} entries in {ways} ways are not a TLB"));
            }
        }
        let Frontend { op_cache, op_cache_ways, op_cache_width, btb, btb_ways, .. } = self.frontend;
        if op_cache > 0 && (op_cache_ways == 0 || op_cache_width == 0 || op_cache / op_cache_width / op_cache_ways == 0)
        {
            return Err(format!(
                "frontend: {op_cache} ops in {op_cache_ways} ways, {op_cache_width} a cycle, are not an op cache"
            ));
        }
        if btb_ways == 0 || btb / btb_ways == 0 {
            return Err(format!("frontend: {btb} branches in {btb_ways} ways are not a branch target buffer"));
        }
        for (name, value, low, high) in self.ranges() {
            if !(low..=high).contains(&value) {
                return Err(format!("{name} = {value} is not from {low} to {high}"));
            }
        }
        Ok(())
    }

    /// Return the names as in the file, the values, and their ranges.
    pub(crate) fn ranges(&self) -> [(&'static str, u64, u64, u64); 61] {
        [
            ("width", u64::from(self.width), 1, 8),
            ("frontend.queue", self.frontend.queue as u64, 1, 1024),
            ("frontend.misses", self.frontend.misses as u64, 1, 256),
            ("frontend.decoders", self.frontend.decoders, 1, 16),
            ("frontend.bytes", self.frontend.bytes, 8, 128),
            ("frontend.ops", self.frontend.ops, 0, 1024),
            ("frontend.op_cache", self.frontend.op_cache, 0, 131_072),
            ("frontend.op_cache_ways", self.frontend.op_cache_ways, 0, 64),
            ("frontend.op_cache_width", self.frontend.op_cache_width, 0, 16),
            ("frontend.btb", self.frontend.btb, 1, 1_048_576),
            ("predictor.table_bits", self.predictor.table_bits.into(), 6, 24),
            ("predictor.btb_bits", self.predictor.btb_bits.into(), 2, 24),
            ("predictor.return_stack", self.predictor.return_stack as u64, 1, 1024),
            ("units.alus", self.units.alus.into(), 1, 16),
            ("units.shifters", self.units.shifters.into(), 1, 16),
            ("units.multipliers", self.units.multipliers.into(), 1, 16),
            ("units.conditions", self.units.conditions.into(), 1, 16),
            ("units.branches", self.units.branches.into(), 1, 16),
            ("units.loads", self.units.loads.into(), 1, 16),
            ("units.accesses", self.units.accesses.into(), 1, 16),
            ("units.forwards", self.units.forwards.into(), 1, 16),
            ("units.store_queue", self.units.store_queue as u64, 1, 1024),
            ("rep.moves.short", self.rep.moves.short, 1, 10_000),
            ("rep.moves.short_bytes", self.rep.moves.short_bytes, 0, 1 << 20),
            ("rep.moves.long", self.rep.moves.long, 1, 10_000),
            ("rep.moves.bytes", self.rep.moves.bytes, 1, 1024),
            ("rep.word_moves.short", self.rep.word_moves.short, 1, 10_000),
            ("rep.word_moves.short_bytes", self.rep.word_moves.short_bytes, 0, 1 << 20),
            ("rep.word_moves.long", self.rep.word_moves.long, 1, 10_000),
            ("rep.word_moves.bytes", self.rep.word_moves.bytes, 1, 1024),
            ("rep.stores.short", self.rep.stores.short, 1, 10_000),
            ("rep.stores.short_bytes", self.rep.stores.short_bytes, 0, 1 << 20),
            ("rep.stores.long", self.rep.stores.long, 1, 10_000),
            ("rep.stores.bytes", self.rep.stores.bytes, 1, 1024),
            ("rep.word_stores.short", self.rep.word_stores.short, 1, 10_000),
            ("rep.word_stores.short_bytes", self.rep.word_stores.short_bytes, 0, 1 << 20),
            ("rep.word_stores.long", self.rep.word_stores.long, 1, 10_000),
            ("rep.word_stores.bytes", self.rep.word_stores.bytes, 1, 1024),
            ("scheduler", u64::from(self.scheduler), 1, 1024),
            ("window", self.window as u64, 8, 4096),
            ("latency.l1", self.latency.l1, 1, 10_000),
            ("latency.l2", self.latency.l2, 0, 10_000),
            ("latency.llc", self.latency.llc, 0, 10_000),
            ("latency.memory", self.latency.memory, 1, 10_000),
            ("latency.forward", self.latency.forward, 0, 10_000),
            ("latency.renamed", self.latency.renamed, 0, 10_000),
            ("latency.call", self.latency.call, 1, 10_000),
            ("latency.scan", self.latency.scan, 1, 100),
            ("latency.stlb", self.latency.stlb, 0, 10_000),
            ("latency.walk", self.latency.walk, 0, 10_000),
            ("latency.decode", self.latency.decode, 0, 10_000),
            ("latency.resteer", self.latency.resteer, 0, 10_000),
            ("latency.mispredicted", self.latency.mispredicted, 0, 10_000),
            ("latency.divide", self.latency.divide, 0, 10_000),
            ("latency.locked", self.latency.locked, 0, 10_000),
            ("latency.fence", self.latency.fence, 0, 10_000),
            ("prefetcher.streams", self.prefetcher.streams as u64, 0, 64),
            ("itlb.entries_4k", self.itlb.entries_4k as u64, 1, 4096),
            ("itlb.entries_2m", self.itlb.entries_2m as u64, 1, 4096),
            ("dtlb.entries_4k", self.dtlb.entries_4k as u64, 1, 4096),
            ("dtlb.entries_2m", self.dtlb.entries_2m as u64, 1, 4096),
        ]
    }
}

/// A processor whose misses can be told beforehand, for tests.
#[cfg(any(test, feature = "specimen"))]
pub const SMALL: &str = r#"
    name = "small"
    title = "not read"
    width = 4
    scheduler = 32
    window = 64
    l1i = { size = 1024, ways = 2 }
    l1d = { size = 1024, ways = 2 }
    l2 = { size = 4096, ways = 4 }
    llc = { size = 16384, ways = 4 }
    itlb = { entries_4k = 2, entries_2m = 2 }
    dtlb = { entries_4k = 2, entries_2m = 2 }
    stlb = { entries = 8, ways = 2 }
    frontend = { queue = 4, misses = 2, decoders = 2, bytes = 16, ops = 16, op_cache = 128, op_cache_ways = 2,
        op_cache_width = 4, btb = 8, btb_ways = 2 }
    pcid = false
    predictor = { kind = "tage", table_bits = 10, btb_bits = 8, return_stack = 4 }
    prefetcher = { streams = 4 }
    units = { alus = 4, shifters = 2, multipliers = 1, conditions = 2, branches = 2, loads = 2, accesses = 3,
        forwards = 1, store_queue = 16 }
    [rep]
    moves = { short = 15, short_bytes = 127, long = 30, bytes = 32 }
    word_moves = { short = 15, short_bytes = 255, long = 30, bytes = 32 }
    stores = { short = 9, short_bytes = 127, long = 20, bytes = 40 }
    word_stores = { short = 16, short_bytes = 127, long = 30, bytes = 40 }
    [latency]
    l1 = 4
    l2 = 14
    llc = 50
    memory = 300
    forward = 7
    renamed = 0
    stlb = 7
    walk = 25
    decode = 4
    resteer = 8
    call = 2
    scan = 3
    mispredicted = 15
    divide = 10
    locked = 8
    fence = 20
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_alone_needs_is_passed_over() {
        assert_eq!(Geometry::parse(SMALL).unwrap().name, "small");
    }

    #[test]
    fn every_family_of_kdynos_own_is_read() {
        let families = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/kdyno/data/families");
        let paths: Vec<_> = std::fs::read_dir(families).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(paths.len() > 5);
        for path in paths {
            let geometry = Geometry::parse(&std::fs::read_to_string(&path).unwrap());
            assert_eq!(Some(geometry.unwrap().name.as_str()), path.file_stem().unwrap().to_str());
        }
    }

    #[test]
    fn hardware_that_can_not_be_is_refused() {
        for (from, to, expected) in [
            ("ways = 2", "ways = 0", "not a cache"),
            (" width = 4", " width = 0", "width = 0"),
            ("tage", "oracle", "oracle"),
            ("streams = 4", "streams = 400", "prefetcher.streams"),
            ("l2 = {", "l3 = {", "l2"),
            ("op_cache_ways = 2", "op_cache_ways = 100", "not an op cache"),
            ("btb = 8", "btb = 1", "not a branch target buffer"),
        ] {
            let error = Geometry::parse(&SMALL.replace(from, to)).unwrap_err();
            assert!(error.contains(expected), "{to}: {error}");
        }
    }
}
