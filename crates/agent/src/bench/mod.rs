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

use crate::general;
use crate::nearest::nearest;
use crate::test::Test;

/// Every test there is, in the order in which `all` runs them: those of LMBench, then the loads to train with.
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
    &general::build::TEST,
    &general::files::TEST,
    &general::ipc::TEST,
    &general::memory::TEST,
    &general::net::TEST,
    &general::shell::TEST,
    &general::system::TEST,
];

/// Stands for every test.
const ALL: &str = "all";

/// Return the test of that name, or a message with the nearest one.
pub fn find(name: &str) -> Result<&'static Test, String> {
    let names = TESTS.iter().map(|test| test.name);
    TESTS.iter().find(|test| test.name == name).copied().ok_or_else(|| no_test(name, names))
}

/// Return the tests that a word represents: all, those of a suite, or the one of that name.
pub fn named(word: &str) -> Result<Vec<&'static Test>, String> {
    let suite = |test: &Test| test.suite.map(|suite| suite.to_string()).unwrap_or_default();
    let is_meant = |test: &&Test| word == ALL || word == test.name || word == suite(test);
    let tests: Vec<_> = TESTS.iter().copied().filter(is_meant).collect();
    if tests.is_empty() {
        let suites: Vec<_> = TESTS.iter().map(|test| suite(test)).collect();
        let words = TESTS.iter().map(|test| test.name).chain([ALL]).chain(suites.iter().map(String::as_str));
        return Err(no_test(word, words));
    }
    Ok(tests)
}

fn no_test<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = nearest(name, known).expect("there are tests");
    format!("there is no test '{name}': did you mean '{near}'? 'kdyno-agent list' shows all")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kdyno_proto::{Lane, Suite};
    use std::collections::BTreeSet;

    #[test]
    fn a_suites_name_stands_for_its_tests_and_all_for_every_test() {
        let general = named("general").unwrap();
        assert!(general.iter().all(|test| test.suite == Some(Suite::General) && test.name.starts_with("general_")));
        assert_eq!(general.len() + named("lmbench").unwrap().len(), TESTS.len());
        let lmbench = named("lmbench").unwrap();
        assert!(lmbench.len() == 19 && lmbench.iter().all(|test| test.suite == Some(Suite::Lmbench)));
        assert_eq!(named("all").unwrap().len(), TESTS.len());
        assert_eq!(named("lat_pipe").unwrap()[0].name, "lat_pipe");
        assert!(named("lmbnch").unwrap_err().contains("did you mean 'lmbench'?"));
    }

    #[test]
    fn a_suites_tests_are_sorted_and_no_test_has_a_name_that_stands_for_several() {
        let names: Vec<_> = TESTS.iter().map(|test| test.name).collect();
        for suite in [Suite::Lmbench, Suite::General].map(|suite| suite.to_string()) {
            assert!(named(&suite).unwrap().is_sorted_by(|a, b| a.name < b.name));
            assert!(!names.contains(&suite.as_str()));
        }
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(!names.contains(&ALL));
    }

    #[test]
    fn a_test_has_metrics_with_names_of_their_own_and_sane_defaults() {
        for test in TESTS {
            let suffixes: BTreeSet<_> = test.metrics.iter().map(|metric| metric.suffix).collect();
            assert!(!suffixes.is_empty() && suffixes.len() == test.metrics.len(), "{}", test.name);
            assert!(test.metrics.len() == 1 || !suffixes.contains(""), "{}", test.name);
            for param in test.params {
                let in_range = |value: u64| (param.min..=param.max).contains(&value);
                let mut defaults = Lane::all().map(|lane| param.default(lane));
                assert!(defaults.all(in_range), "{}.{}", test.name, param.name);
            }
        }
    }

    #[test]
    fn a_mistyped_test_is_refused_with_the_nearest_name() {
        assert!(find("lat_syscal").unwrap_err().contains("did you mean 'lat_syscall'?"));
    }
}
