//! What a person at a terminal sees.

use std::process::{Command, Output};

fn agent(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kdyno-agent")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_run_without_json_prints_a_table() {
    let output = agent(&["run", "lat_pipe", "lat_sig", "--iterations", "1"]);
    assert!(output.status.success());
    let stdout = text(&output.stdout);
    let first: Vec<_> = stdout.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(first, ["benchmark", "lat_pipe", "lat_sig.install", "lat_sig.deliver"]);
}

#[test]
fn a_user_error_is_one_line_on_stderr_and_exit_code_1() {
    let output = agent(&["run", "lat_pip"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""));
    assert_eq!(
        text(&output.stderr),
        "kdyno-agent: there is no test 'lat_pip': did you mean 'lat_pipe'? 'kdyno-agent list' shows all\n"
    );
}

#[test]
fn help_version_and_list_go_to_stdout() {
    for (argument, expected) in [("--help", "usage:"), ("--version", "kdyno-agent 0."), ("list", "lat_rpc")] {
        let output = agent(&[argument]);
        assert!(output.status.success() && text(&output.stdout).contains(expected), "{argument}");
    }
}

#[test]
fn the_speed_of_the_time_stamp_counter_is_a_number_of_khz() {
    let khz: u64 = text(&agent(&["tsc"]).stdout).trim().parse().unwrap();
    assert!((100_000..20_000_000).contains(&khz), "{khz}");
}

#[test]
fn nothing_is_left_in_the_temporary_directory() {
    let directory = std::env::temp_dir().join(format!("kdyno-agent-test.{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let run = ["run", "lat_fs", "--iterations", "1"];
    let output = Command::new(env!("CARGO_BIN_EXE_kdyno-agent")).args(run).env("TMPDIR", &directory).output().unwrap();
    assert!(output.status.success());
    // remove_dir refuses a directory that isn't empty.
    std::fs::remove_dir(&directory).unwrap();
}
