//! Properties: whatever a guest runs, and whatever the files hold that the plugin is given, it neither stops nor grows
//! without bounds. PROPTEST_CASES says how many cases are tried.

use crate::block::Blocks;
use crate::counter::Counter;
use crate::decode::{Access, Exit, Facts, RepBytes, decode};
use crate::frontend::Frontend;
use crate::geometry::{Geometry, SMALL};
use crate::hardware::{Hardware, Place};
use crate::limits::{Room, Thing};
use crate::options::Options;
use crate::pipeline::Pipeline;
use crate::predictor::Predictor;
use crate::record;
use crate::symbols::Symbols;
use proptest::collection::vec;
use proptest::prelude::*;

/// Where the functions of KERNEL are, and the ends of the address space.
const PLACES: [u64; 10] =
    [0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x5000, 0, 0xffff_ffff_ffff_fff0, 0xffff_ffff_8100_0000];
const KERNEL: &str = "\
1000 100 syscall entry_SYSCALL_64
2000 100 - work
2100 100 - callee
3000 100 exception asm_exc_page_fault
3100 1000 interrupt irq_entries_start
4200 100 switch __switch_to_asm
5000 100 fork ret_from_fork_asm
ffffffff81000000 7effffff - rest
";

fn address() -> impl Strategy<Value = u64> {
    let near = (prop::sample::select(&PLACES[..]), 0..40u64).prop_map(|(place, offset)| place.wrapping_add(offset));
    prop_oneof![4 => near, 1 => any::<u64>()]
}

/// Return instructions that matter here, among others.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let some: Vec<Vec<u8>> = [
        "90",
        "c3",
        "48cf",
        "f348a5",
        "f3a6",
        "ffd0",
        "ffe0",
        "0f05",
        "0fae f0",
        "f0ff07",
        "48f7f1",
        "48890424",
        "7500",
        "e800000000",
        "eb10",
        "e8fbefffff",
        "0f2000",
        "488b01",
        "48a5",
        "c20800",
        "0f22d8",
        "4881cf00100000 0f22df",
        "0f0138",
    ]
    .iter()
    .map(|hex| bytes(hex))
    .collect();
    let instruction = prop_oneof![8 => prop::sample::select(some), 1 => vec(any::<u8>(), 1..16)];
    vec(instruction, 1..8).prop_map(|parts| parts.concat())
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

const OPTION: &str = "(out|scope|events|symbols|image|geometry)=(|user|kernel|all|edges|trace|[0-9a-f]{64})";

/// What QEMU may call the plugin for.
#[derive(Debug, Clone)]
enum Call {
    Block(u64, Vec<u8>),
    /// One of the blocks before, again.
    Again(usize),
    User(u64, Vec<u8>),
    Switch(u64, bool),
    Access(u64, Access, bool, bool),
    UserAccess(u64, u64, bool),
    Announce(u16, u16),
    Open,
    Close,
}

fn call() -> impl Strategy<Value = Call> {
    let rep = prop::sample::select(vec![None, Some(RepBytes::Stores), Some(RepBytes::Loads)]);
    let access = (0..20u16, rep).prop_map(|(place, rep)| Access { place, rep });
    prop_oneof![
        20 => (address(), code()).prop_map(|(start, code)| Call::Block(start, code)),
        20 => (0..100usize).prop_map(Call::Again),
        5 => (address(), code()).prop_map(|(start, code)| Call::User(start, code)),
        3 => (0..5u64, any::<bool>()).prop_map(|(task, is_store)| Call::Switch(task, is_store)),
        5 => (address(), access, any::<bool>(), any::<bool>())
            .prop_map(|(address, access, is_store, is_device)| Call::Access(address, access, is_store, is_device)),
        5 => (address(), address(), any::<bool>())
            .prop_map(|(address, physical, is_store)| Call::UserAccess(address, physical, is_store)),
        3 => (0..4u16, prop_oneof![0..4u16, Just(u16::MAX)]).prop_map(|(benchmark, iteration)| Call::Announce(benchmark, iteration)),
        6 => Just(Call::Open),
        2 => Just(Call::Close),
    ]
}

/// Do what the callbacks of QEMU do (plugin.rs).
fn carry_out(counter: &mut Counter, calls: &[Call]) {
    let mut blocks = Vec::new();
    for call in calls {
        match call {
            Call::Block(start, code) => blocks.extend(counter.intern(*start, code)),
            Call::User(start, code) => {
                let addresses: Vec<u64> =
                    (0..code.len() as u64).step_by(3).map(|offset| start.wrapping_add(offset)).collect();
                let block = counter.intern_user(&addresses, code);
                if let Some(block) = block.filter(|_| counter.active) {
                    // SAFETY: user blocks are never freed.
                    counter.user_block(unsafe { &*block });
                }
            }
            Call::Switch(task, is_store) if counter.active => counter.switch(*task, *is_store),
            Call::Access(address, access, is_store, is_device) if counter.active => {
                let place = || if *is_device { Place::Device } else { Place::Memory(*address) };
                // SAFETY: the block that runs was interned.
                unsafe { counter.access(*access, *address, 8, *is_store, place) };
            }
            Call::UserAccess(address, physical, is_store) if counter.active => {
                counter.user_access(*address, *is_store, || Place::Memory(*physical));
            }
            Call::Announce(benchmark, iteration) => {
                let word = kdyno_marker::word(*benchmark, *iteration);
                (0..32).rev().for_each(|bit| counter.announce(word >> bit & 1));
            }
            Call::Open => counter.open(),
            Call::Close => counter.close(),
            Call::Again(_) | Call::Switch(..) | Call::Access(..) | Call::UserAccess(..) => {}
        }
        let next = match call {
            Call::Block(..) => blocks.last(),
            Call::Again(number) => blocks.get(number % blocks.len().max(1)),
            _ => None,
        };
        if let Some(block) = next {
            // SAFETY: interned above.
            unsafe { if counter.active { counter.block(*block) } else { counter.unmeasured(*block) } };
        }
    }
}

proptest! {
    #[test]
    fn no_order_of_events_in_a_guest_stops_the_plugin_or_makes_it_keep_more_than_it_may(
        is_detailed in any::<bool>(),
        is_traced in any::<bool>(),
        sees_user in any::<bool>(),
        narrow in prop::option::of((prop::sample::select(Thing::ALL), 1..20usize)),
        calls in vec(call(), 0..300),
    ) {
        let geometry = Geometry::parse(SMALL).unwrap();
        let blocks = Blocks::new(Symbols::parse(KERNEL).unwrap(), is_detailed);
        let geometry = is_detailed.then_some(&geometry);
        let mut counter = Counter::new(blocks, geometry, is_detailed && is_traced, is_detailed && sees_user);
        if let Some((thing, limit)) = narrow {
            counter.blocks.room.set_limit(thing, limit);
        }
        carry_out(&mut counter, &calls);
        let finished = counter.finish();
        if let Some(excess) = finished.gave_up {
            prop_assert_eq!(excess.limit, narrow.unwrap().1);
        }
        let (body, gave_up) = record::body(&finished, record::events(is_detailed, sees_user), &mut Room::new());
        prop_assert_eq!(gave_up, finished.gave_up);
        prop_assert!(body.len() == 3 || gave_up.is_none());
    }

    #[test]
    fn any_bytes_are_a_block_or_none(start in address(), code in prop_oneof![code(), vec(any::<u8>(), 0..64)]) {
        if let Some(facts) = decode(start, &code, true) {
            prop_assert!(!facts.instructions.is_empty() && facts.instructions.len() <= code.len());
            prop_assert_eq!(facts.ops.len(), facts.instructions.len());
            prop_assert_eq!(facts.end, start.wrapping_add(code.len() as u64));
            prop_assert_eq!(facts.last, facts.instructions.last().unwrap().address);
            for facts in &facts.instructions {
                prop_assert!(facts.address.wrapping_sub(start) < code.len() as u64);
                prop_assert_eq!(Access::unpacked(facts.access.packed()), facts.access);
            }
        }
    }

    #[test]
    fn any_text_is_a_list_of_symbols_or_refused(
        text in prop_oneof![any::<String>(), "([0-9a-f]{1,17} [0-9a-f]{1,17} (-|fork|switch|boss) [a-z ]{0,4}\n){0,5}"],
        addresses in vec(any::<u64>(), 0..10),
    ) {
        if let Ok(symbols) = Symbols::parse(&text) {
            for address in addresses {
                let number = symbols.find(address);
                let function = symbols.get(number);
                prop_assert!(number == 0 || address.wrapping_sub(function.start) < function.size);
            }
        }
    }

    #[test]
    fn any_words_are_options_or_refused(
        words in vec(prop_oneof![any::<String>(), OPTION], 0..8),
    ) {
        if let Ok(options) = Options::parse(words.iter().map(String::as_str)) {
            prop_assert!(!options.record.as_os_str().is_empty());
        }
    }

    #[test]
    fn any_geometry_that_is_taken_can_be_emulated(
        changes in vec((0..40usize, prop_oneof![0..200u64, Just(1 << 20), Just(u64::MAX >> 1)]), 0..3),
        addresses in vec(address(), 0..20),
    ) {
        let numbers: Vec<(usize, &str)> = SMALL.match_indices("= ").filter_map(|(at, _)| {
            let rest = &SMALL[at + 2..];
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            (digits > 0).then(|| (at + 2, &rest[..digits]))
        }).collect();
        let mut text = SMALL.to_owned();
        for (which, value) in &changes {
            let (at, digits) = numbers[which % numbers.len()];
            if text[at..].starts_with(digits) {
                text.replace_range(at..at + digits.len(), &format!("{value:>width$}", width = digits.len()));
                break; // what follows has moved
            }
        }
        if let Ok(geometry) = Geometry::parse(&text) {
            let mut counts = [0; crate::events::EVENTS];
            let (mut hardware, mut pipeline) = (Hardware::new(&geometry), Pipeline::new(&geometry));
            let mut frontend = Frontend::new(&geometry);
            let mut predictor = Predictor::new(&geometry.predictor);
            for address in addresses {
                hardware.access(address, &mut counts, || Place::Memory(address));
                let block = Facts { exit: Exit::IndirectJump, end: address.wrapping_add(70), ..Facts::unknown(address) };
                frontend.taken(&block.fetched(), &mut counts);
                pipeline.record_fetch(frontend.fetch(&block.fetched(), pipeline.dispatch_time(), &mut hardware, &mut counts));
                predictor.call(address);
                predictor.indirect(address, !address);
            }
        }
    }
}
