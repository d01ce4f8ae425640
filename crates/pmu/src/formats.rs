//! What the host must have alike, kept in formats.json.

use crate::limits::{Excess, MOST, NAMES, TRACE_STEPS};
use crate::options::{KEYS, OptionError, Options};
use crate::record::{Header, MAGIC, Unclosed, VERSION};
use crate::region::BranchKind;
use crate::stacks::Kind;
use crate::symbols::{LONGEST_NAME, NEEDED, ROLES, Symbols, UNKNOWN};
use kdyno_formats::{compare, keys};
use serde_json::{Map, json};

#[test]
fn the_formats_are_those_that_are_kept() {
    let branches = [
        BranchKind::Conditional,
        BranchKind::Jump,
        BranchKind::Call,
        BranchKind::Return,
        BranchKind::IndirectJump,
        BranchKind::IndirectCall,
    ];
    let frames = [Kind::Call, Kind::Exception, Kind::Interrupt, Kind::Entry];
    let limits: Map<_, _> = NAMES.iter().zip(MOST).map(|(name, limit)| (name.to_string(), limit.into())).collect();
    let excess = Excess { thing: NAMES[0], limit: 0 };
    let formats = json!({
        "version": VERSION,
        "magic": MAGIC,
        "options": KEYS,
        "scopes": allowed(&["scope=none"]),
        "events": allowed(&["scope=user", "events=none"]),
        "roles": ROLES.map(|(name, _)| name),
        "needed_roles": NEEDED.map(|(_, name)| name),
        "unknown": Symbols::none().get(UNKNOWN).name,
        "longest_name": LONGEST_NAME,
        "limits": limits,
        "trace_steps": TRACE_STEPS,
        "fields": { "Header": keys(&header()), "Unclosed": keys(&unclosed()), "Excess": keys(&excess) },
        "branch_kinds": branches.map(|kind| (format!("{kind:?}"), kind as u8)),
        "frame_kinds": frames.map(|kind| (format!("{kind:?}"), kind as u8)),
    });
    compare(env!("CARGO_MANIFEST_DIR"), &formats);
}

fn header() -> Header<'static> {
    Header {
        plugin: "",
        qemu_api: 0,
        scope: "",
        events: "",
        image: &None,
        family: &None,
        event_names: &[],
        bytes: 0,
        unclosed: None,
        opened: 0,
        unmeasured: true,
        gave_up: None,
    }
}

fn unclosed() -> Unclosed {
    Unclosed { benchmark: 0, iteration: 0 }
}

/// Return the values of the last option, as its error lists them.
fn allowed(words: &[&str]) -> Vec<&'static str> {
    match Options::parse(words.iter().copied()) {
        Err(OptionError::BadValue { allowed, .. }) => allowed.split(", ").collect(),
        other => panic!("{other:?}"),
    }
}
