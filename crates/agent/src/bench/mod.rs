//! The kernel tests of LMBench, one file each, written from their published definitions.
//!
//! McVoy & Staelin, "lmbench: Portable Tools for Performance Analysis", USENIX 1996, and the manual pages of lmbench 3.
//! Each file says where it differs. Unless it says otherwise nothing is subtracted: a value holds the cost of the loop
//! and of the user half of the system calls, which is the same on every kernel.

mod round_trip;
mod rpc;
mod stream;

mod bw_file_rd;
mod bw_mmap_rd;
mod bw_pipe;
mod bw_tcp;
mod bw_unix;
mod lat_connect;
mod lat_ctx;
mod lat_fs;
mod lat_mmap;
mod lat_pagefault;
mod lat_pipe;
mod lat_proc;
mod lat_rpc;
mod lat_select;
mod lat_sig;
mod lat_syscall;
mod lat_tcp;
mod lat_udp;
mod lat_unix;

use crate::nearest::nearest;
use crate::test::Test;

/// Every test there is, in the order in which `all` runs them.
pub static TESTS: &[&Test] = &[
    &bw_file_rd::TEST,
    &bw_mmap_rd::TEST,
    &bw_pipe::TEST,
    &bw_tcp::TEST,
    &bw_unix::TEST,
    &lat_connect::TEST,
    &lat_ctx::TEST,
    &lat_fs::TEST,
    &lat_mmap::TEST,
    &lat_pagefault::TEST,
    &lat_pipe::TEST,
    &lat_proc::TEST,
    &lat_rpc::TEST,
    &lat_select::TEST,
    &lat_sig::TEST,
    &lat_syscall::TEST,
    &lat_tcp::TEST,
    &lat_udp::TEST,
    &lat_unix::TEST,
];

/// The test of that name, or a message with the nearest one.
pub fn find(name: &str) -> Result<&'static Test, String> {
    TESTS.iter().find(|test| test.name == name).copied().ok_or_else(|| {
        let near = nearest(name, TESTS.iter().map(|test| test.name)).expect("there are tests");
        format!("there is no test '{name}': did you mean '{near}'? 'kdyno-agent list' shows all")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_nineteen_kernel_tests_are_all_there_sorted_and_once() {
        let names: Vec<_> = TESTS.iter().map(|test| test.name).collect();
        assert_eq!(names.len(), 19);
        assert!(names.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_test_has_metrics_with_names_of_their_own_and_sane_defaults() {
        for test in TESTS {
            let suffixes: BTreeSet<_> = test.metrics.iter().map(|metric| metric.suffix).collect();
            assert!(!suffixes.is_empty() && suffixes.len() == test.metrics.len(), "{}", test.name);
            assert!(test.metrics.len() == 1 || !suffixes.contains(""), "{}", test.name);
            for param in test.params {
                let range = param.min..=param.max;
                assert!(range.contains(&param.model) && range.contains(&param.wall), "{}.{}", test.name, param.name);
            }
        }
    }

    #[test]
    fn a_mistyped_test_is_refused_with_the_nearest_name() {
        assert!(find("lat_syscal").unwrap_err().contains("did you mean 'lat_syscall'?"));
    }
}
