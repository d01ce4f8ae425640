//! What snapshots there are, for people and for programs.

use crate::failure::Failure;
use crate::listing::{Listing, Run};
use crate::store::Store;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub fn status(directory: &Path, json: bool) -> Result<String, Failure> {
    let listing = Listing::read(&Store::open(directory)?, directory)?;
    if json {
        return Ok(serde_json::to_string(&listing).expect("strings and numbers") + "\n");
    }
    Ok(text(&listing, SystemTime::now()))
}

fn text(listing: &Listing, now: SystemTime) -> String {
    let state = if listing.running { "takes snapshots" } else { "no kdyno-pgod runs" };
    let mut text = format!("{}: {state}, {}\n", listing.directory, megabytes(listing.bytes));
    if !listing.runs.is_empty() {
        let _ = writeln!(
            text,
            "{:<9} {:>3} {:<24} {:>9} {:>12} {:>7} {:>9}",
            "boot", "run", "kernel", "snapshots", "last", "objects", "counters"
        );
    }
    for run in &listing.runs {
        let Run { boot, run, kernel, snapshots, time, objects, counter_bytes, .. } = run;
        let last = ago(now, UNIX_EPOCH + Duration::from_secs(*time));
        let counters = megabytes(*counter_bytes);
        let _ = writeln!(
            text,
            "{:<9} {run:>3} {:<24} {snapshots:>9} {last:>12} {objects:>7} {counters:>9}",
            &boot[..8],
            kernel.release
        );
    }
    for name in &listing.unreadable {
        let _ = writeln!(text, "{name}: no snapshot that this version can read");
    }
    text
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn ago(now: SystemTime, then: SystemTime) -> String {
    let seconds = now.duration_since(then).unwrap_or_default().as_secs();
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_the_unit_that_fits() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let text = |seconds| ago(now, now - Duration::from_secs(seconds));
        assert_eq!(
            [text(0), text(119), text(120), text(7200), text(172_800)],
            ["0 s ago", "119 s ago", "2 min ago", "2 h ago", "2 days ago"]
        );
        assert_eq!(ago(now, now + Duration::from_secs(9)), "0 s ago", "a clock that was set back");
    }
}
