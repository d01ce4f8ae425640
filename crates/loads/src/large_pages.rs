//! How often the kernel gave large pages at a fault, and how often it had none: its own statistics, of the whole system.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Pages of 4 kB << order, for orders up to that of 2 MB.
const ORDERS: usize = 10;
const HUGE: usize = ORDERS - 1;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultCounts {
    /// Page faults that were served with a page of this size.
    pub faults: u64,
    /// Page faults that should have been, and got smaller pages: none of this size was free.
    pub fallbacks: u64,
}

/// The counts by order; all zero for sizes that the kernel doesn't have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LargePages([FaultCounts; ORDERS]);

/// What a load says: the sizes of which there were any.
#[derive(Debug, PartialEq, Serialize)]
pub struct SizeCounts {
    pub size_kb: u64,
    pub initialisation: FaultCounts,
    pub timed: FaultCounts,
}

impl LargePages {
    /// Return the large pages since the system started; None where the kernel doesn't count them, or /sys and /proc
    /// aren't mounted.
    pub fn read() -> Option<LargePages> {
        let sizes = Path::new("/sys/kernel/mm/transparent_hugepage");
        LargePages::read_sizes(sizes).or_else(|| LargePages::parse_vmstat(&fs::read_to_string("/proc/vmstat").ok()?))
    }

    /// Return the counts of Linux 6.10 and newer, each size on its own.
    fn read_sizes(directory: &Path) -> Option<LargePages> {
        let mut pages = LargePages::default();
        let mut is_counted = false;
        for (order, counts) in pages.0.iter_mut().enumerate() {
            let statistics = directory.join(format!("hugepages-{}kB/stats", kilobytes(order)));
            let number =
                |name: &str| -> Option<u64> { fs::read_to_string(statistics.join(name)).ok()?.trim().parse().ok() };
            if let (Some(faults), Some(fallbacks)) = (number("anon_fault_alloc"), number("anon_fault_fallback")) {
                *counts = FaultCounts { faults, fallbacks };
                is_counted = true;
            }
        }
        is_counted.then_some(pages)
    }

    /// Return the counts of pages of 2 MB, as all kernels count them.
    fn parse_vmstat(vmstat: &str) -> Option<LargePages> {
        let number = |name: &str| -> Option<u64> {
            vmstat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.parse().ok()
        };
        let mut pages = LargePages::default();
        pages.0[HUGE] = FaultCounts { faults: number("thp_fault_alloc")?, fallbacks: number("thp_fault_fallback")? };
        Some(pages)
    }

    /// Return the pages that came since an earlier time.
    pub fn subtract(self, earlier: LargePages) -> LargePages {
        self.combine(earlier, u64::saturating_sub)
    }

    fn combine(mut self, other: LargePages, operation: fn(u64, u64) -> u64) -> LargePages {
        for (counts, other) in self.0.iter_mut().zip(other.0) {
            *counts = FaultCounts {
                faults: operation(counts.faults, other.faults),
                fallbacks: operation(counts.fallbacks, other.fallbacks),
            };
        }
        self
    }

    /// Return the sizes of which there were any, small ones first.
    pub fn by_size(initialisation: LargePages, timed: LargePages) -> Vec<SizeCounts> {
        let pairs = initialisation.0.into_iter().zip(timed.0).enumerate();
        pairs
            .filter(|(_, counts)| *counts != (FaultCounts::default(), FaultCounts::default()))
            .map(|(order, (initialisation, timed))| SizeCounts { size_kb: kilobytes(order), initialisation, timed })
            .collect()
    }
}

impl std::ops::Add for LargePages {
    type Output = LargePages;

    fn add(self, other: LargePages) -> LargePages {
        self.combine(other, u64::saturating_add)
    }
}

fn kilobytes(order: usize) -> u64 {
    4 << order
}

#[cfg(test)]
mod tests {
    use super::*;

    const VMSTAT: &str = "nr_free_pages 12\nthp_fault_alloc 7\nthp_fault_fallback 2\nthp_fault_fallback_charge 9\n";

    #[test]
    fn a_kernel_without_statistics_by_size_counts_those_of_2_mb() {
        let pages = LargePages::parse_vmstat(VMSTAT).unwrap();
        let sizes = LargePages::by_size(LargePages::default(), pages);
        let timed = FaultCounts { faults: 7, fallbacks: 2 };
        assert_eq!(sizes, [SizeCounts { size_kb: 2048, initialisation: FaultCounts::default(), timed }]);
        assert_eq!(LargePages::parse_vmstat("nr_free_pages 12\n"), None);
    }

    #[test]
    fn each_size_has_statistics_of_its_own() {
        let directory = std::env::temp_dir().join(format!("kdyno-loads-sizes-{}", std::process::id()));
        for (size, faults, fallbacks) in [("64", "5", "1"), ("2048", "3", "0"), ("1024", "x", "0")] {
            let statistics = directory.join(format!("hugepages-{size}kB/stats"));
            fs::create_dir_all(&statistics).unwrap();
            fs::write(statistics.join("anon_fault_alloc"), format!("{faults}\n")).unwrap();
            fs::write(statistics.join("anon_fault_fallback"), format!("{fallbacks}\n")).unwrap();
        }
        let pages = LargePages::read_sizes(&directory);
        let none = LargePages::read_sizes(&directory.join("hugepages-64kB"));
        fs::remove_dir_all(&directory).unwrap();
        let sizes = LargePages::by_size(pages.unwrap(), LargePages::default());
        let faults_by_size: Vec<_> = sizes.iter().map(|size| (size.size_kb, size.initialisation.faults)).collect();
        assert_eq!((faults_by_size, none), (vec![(64, 5), (2048, 3)], None));
    }

    #[test]
    fn a_difference_is_of_each_size() {
        let pages = |faults| {
            let mut pages = LargePages::default();
            pages.0[HUGE] = FaultCounts { faults, fallbacks: 1 };
            pages
        };
        assert_eq!(pages(9).subtract(pages(4)) + pages(1), pages(6));
    }
}
