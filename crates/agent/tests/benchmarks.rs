//! Every benchmark runs on this host and measures something; so do the loads to train with.

use kdyno_proto::Record;
use std::collections::BTreeMap;
use std::process::Command;

/// Run the agent and return its records; the stream must be whole.
fn run(arguments: &[&str]) -> Vec<Record> {
    let output = Command::new(env!("CARGO_BIN_EXE_kdyno-agent")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let records: Vec<_> = text.lines().map(|line| Record::from_line(line).unwrap()).collect();
    assert!(matches!(records.first(), Some(Record::Hello { init: false, .. })), "{text}");
    assert_eq!(records.last(), Some(&Record::End { records: records.len() as u64 - 1 }));
    records
}

/// Run one test with small sizes and check that its metrics are `expected`, each with positive samples.
fn measures(test: &str, params: &[&str], expected: &[&str]) {
    let mut arguments = vec!["run", test, "--iterations", "2", "--json"];
    arguments.extend(params.iter().flat_map(|param| ["--param", param]));
    let mut samples = BTreeMap::new();
    for record in run(&arguments) {
        match record {
            Record::Benchmark { name, .. } => assert_eq!(samples.insert(name, 0), None),
            Record::Sample { benchmark, elapsed, work, .. } => {
                assert!(elapsed > 0 && work > 0);
                *samples.get_mut(&benchmark).expect("samples follow their benchmark") += 1;
            }
            Record::Unsupported { .. } | Record::Broken { .. } => panic!("{record:?}"),
            _ => {}
        }
    }
    let expected: BTreeMap<_, _> = expected.iter().map(|metric| (format!("{test}{metric}"), 2)).collect();
    assert_eq!(samples, expected);
}

#[test]
fn a_cached_file_is_read() {
    measures("bw_file_rd", &["size_kb=100"], &[".io_only", ".open2close"]);
}

#[test]
fn a_mapped_file_is_summed() {
    measures("bw_mmap_rd", &["size_kb=100"], &[".open2close"]);
}

#[test]
fn bytes_go_through_a_pipe() {
    measures("bw_pipe", &["size_kb=100"], &[""]);
}

#[test]
fn bytes_go_over_tcp() {
    measures("bw_tcp", &["size_kb=100"], &[""]);
}

#[test]
fn bytes_go_through_a_unix_socket() {
    measures("bw_unix", &["size_kb=100"], &[""]);
}

#[test]
fn connections_are_made_and_dropped() {
    measures("lat_connect", &[], &[""]);
}

#[test]
fn a_token_goes_around_a_ring_of_processes() {
    measures("lat_ctx", &["processes=5", "size_kb=4"], &[""]);
}

#[test]
fn files_are_created_and_deleted() {
    measures("lat_fs", &["files=50"], &[".create_0k", ".delete_0k", ".create_10k", ".delete_10k"]);
}

#[test]
fn a_file_is_mapped_and_unmapped() {
    measures("lat_mmap", &["size_kb=64"], &[""]);
}

#[test]
fn pages_are_faulted_in() {
    measures("lat_pagefault", &["size_kb=256"], &[""]);
}

#[test]
fn a_byte_goes_through_pipes_and_back() {
    measures("lat_pipe", &[], &[""]);
}

#[test]
fn processes_are_made_in_three_ways() {
    measures("lat_proc", &[], &[".fork", ".exec", ".shell"]);
}

#[test]
fn a_null_procedure_is_called_over_udp_and_tcp() {
    measures("lat_rpc", &[], &[".udp", ".tcp"]);
}

#[test]
fn select_looks_at_many_descriptors() {
    measures("lat_select", &["fds=20"], &[".files", ".tcp"]);
}

#[test]
fn signals_are_installed_and_delivered() {
    measures("lat_sig", &[], &[".install", ".deliver"]);
}

#[test]
fn small_system_calls_are_made() {
    measures("lat_syscall", &[], &[".null", ".read", ".write", ".stat", ".fstat", ".open_close"]);
}

#[test]
fn a_message_goes_over_tcp_and_back() {
    measures("lat_tcp", &["bytes=100000"], &[""]);
}

#[test]
fn a_datagram_goes_and_comes_back() {
    measures("lat_udp", &["bytes=65507"], &[""]);
}

#[test]
fn a_message_goes_through_a_unix_socket_and_back() {
    measures("lat_unix", &["bytes=300000"], &[""]);
}

#[test]
fn a_build_is_trained_with() {
    measures("general_build", &[], &[""]);
}

#[test]
fn names_and_contents_of_files_are_trained_with() {
    measures("general_files", &[], &[".names", ".contents"]);
}

#[test]
fn pipes_signals_threads_and_processes_are_trained_with() {
    measures("general_ipc", &[], &[".pipes", ".signals", ".threads", ".processes"]);
}

#[test]
fn private_memory_and_mapped_files_are_trained_with() {
    measures("general_memory", &[], &[".private", ".files"]);
}

#[test]
fn sockets_are_trained_with() {
    measures("general_net", &[], &[".tcp", ".udp", ".unix"]);
}

#[test]
fn a_shell_session_is_trained_with() {
    measures("general_shell", &[], &[""]);
}

#[test]
fn small_system_calls_are_trained_with() {
    measures("general_system", &[], &[".process", ".names", ".bytes", ".ready"]);
}
