//! What the kernel says of its own memory, and of what has happened to it.

use kdyno_proto::Record;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Fields of /proc/meminfo; a kernel may lack some.
pub const FIELDS: &[&str] = &[
    "MemFree",
    "MemAvailable",
    "Cached",
    "Shmem",
    "AnonPages",
    "Slab",
    "SReclaimable",
    "SUnreclaim",
    "KernelStack",
    "PageTables",
    "VmallocUsed",
    "Percpu",
];

pub fn look(elapsed: Duration, at_rest: bool) -> Record {
    let first_number = |path: &str| {
        let text = fs::read_to_string(path).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    Record::Memory {
        elapsed: elapsed.as_nanos() as u64,
        at_rest,
        kb: fs::read_to_string("/proc/meminfo").map(|text| fields(&text)).unwrap_or_default(),
        tasks: fs::read_to_string("/proc/loadavg").ok().and_then(|text| tasks(&text)),
        files: first_number("/proc/sys/fs/file-nr"),
        tainted: first_number("/proc/sys/kernel/tainted"),
    }
}

/// Ask a guest's kernel to give back the caches that it can do without.
pub fn give_caches_back() {
    // SAFETY: no pointers.
    unsafe { libc::sync() };
    // A kernel without it keeps its caches; the host sees how much memory they take.
    let _ = fs::write("/proc/sys/vm/drop_caches", "3");
}

fn fields(meminfo: &str) -> BTreeMap<String, u64> {
    let field = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let kb = rest.trim().strip_suffix(" kB")?.parse().ok()?;
        FIELDS.contains(&name).then(|| (name.to_owned(), kb))
    };
    meminfo.lines().filter_map(field).collect()
}

/// Return ALL in the fourth word of /proc/loadavg, `RUNNING/ALL`.
fn tasks(loadavg: &str) -> Option<u64> {
    loadavg.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_fields_of_meminfo_are_read_and_others_left_out() {
        let text =
            "MemTotal:       16 kB\nSlab:            8120 kB\nPercpu:  440 kB\nHugePages_Total:   0\nSlab: x kB\n";
        assert_eq!(fields(text), [("Slab".into(), 8120), ("Percpu".into(), 440)].into());
    }

    #[test]
    fn all_tasks_are_counted_not_those_that_run() {
        assert_eq!(tasks("0.20 0.18 0.12 1/80 11206\n"), Some(80));
        assert_eq!(tasks(""), None);
    }
}
