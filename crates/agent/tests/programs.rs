//! What the agent does with a job's programs, and what it says of them.

use kdyno_proto::{Phase, Record};
use std::fs;
use std::process::Command;

/// Return the records of a job with these programs, carried out on this host.
fn carried_out(name: &str, programs: &str, more: &str) -> Vec<Record> {
    let directory = std::env::temp_dir().join(format!("kdyno-agent-{name}.{}", std::process::id()));
    fs::create_dir(&directory).unwrap();
    let (job, stream) = (directory.join("job.json"), directory.join("stream"));
    let channel = format!(r#"{{"kind":"file","path":"{}"}}"#, stream.display());
    let text = format!(r#"{{"v":1,"lane":"wall","iterations":1,"channel":{channel},"programs":[{programs}]{more}}}"#);
    fs::write(&job, text).unwrap();
    fs::write(&stream, "").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kdyno-agent")).arg("do").arg(&job).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records = fs::read_to_string(&stream).unwrap().lines().map(|line| Record::from_line(line).unwrap()).collect();
    fs::remove_dir_all(&directory).unwrap();
    records
}

fn program(steps: &str) -> String {
    format!(r#"{{"name":"x",{steps}}}"#)
}

/// Return the steps in order: a letter for each step, with its run; `!` after one that failed, `=` for a sample.
fn order(records: &[Record]) -> String {
    let letter = |phase| match phase {
        Phase::SetUp => 'u',
        Phase::Command => 'c',
        Phase::Report => 'r',
        Phase::TearDown => 'd',
    };
    let told = records.iter().map(|record| match record {
        Record::Step { phase, run, .. } => format!(" {}{run}", letter(*phase)),
        Record::Exited { status, .. } if *status != 0 => "!".to_owned(),
        Record::Sample { iteration, .. } => format!(" ={iteration}"),
        _ => String::new(),
    });
    told.collect::<String>().trim_start().to_owned()
}

const MEASURED: &str = r#""measured":{"benchmark":"x.y","description":"","operations":1}"#;

#[test]
fn a_report_comes_after_each_run_that_went_well() {
    let around = r#""set_up":["true"],"tear_down":["true"],"runs":2"#;
    for (steps, expected) in [
        (r#""command":["true"],"report":["true"]"#, "u0 c0 r0 c1 r1 d0"),
        (r#""command":["true"],"report":["false"]"#, "u0 c0 r0! d0"),
        (r#""command":["false"],"report":["true"]"#, "u0 c0! d0"),
    ] {
        assert_eq!(order(&carried_out("order", &program(&format!("{steps},{around}")), "")), expected, "{steps}");
    }
}

#[test]
fn a_report_is_not_measured() {
    let slow = program(&format!(r#""command":["true"],"report":["sleep","0.4"],"runs":2,{MEASURED}"#));
    let records = carried_out("measured", &slow, "");
    assert_eq!(order(&records), "c0 =0 r0 c1 =1 r1");
    for record in records {
        if let Record::Sample { elapsed, .. } = record {
            assert!(elapsed < 400_000_000, "{elapsed}");
        }
    }
}

#[test]
fn the_processors_time_is_that_of_all_programs() {
    let busy = program(r#""set_up":["sh","-c","while :; do :; done &"],"command":["sleep","0.5"]"#);
    let mut of_steps = carried_out("busy", &busy, "").into_iter().filter_map(|record| match record {
        Record::Exited { user, busy_user, .. } => Some((user, busy_user)),
        _ => None,
    });
    let (user, busy_user) = of_steps.next_back().unwrap();
    assert!(user < 100_000_000 && busy_user >= 100_000_000, "{user} {busy_user}");
}

#[test]
fn a_round_of_a_soak_is_the_command_and_its_report() {
    let soak = r#","soak":{"seconds":2,"every":1}"#;
    let last_tally = |records: &[Record]| {
        records.iter().rev().find_map(|record| match record {
            Record::Tally { rounds, failures, longest, .. } => Some((*rounds, *failures, *longest)),
            _ => None,
        })
    };
    let good = carried_out("soak", &program(r#""command":["true"],"report":["sleep","0.6"]"#), soak);
    let (rounds, failures, longest) = last_tally(&good).unwrap();
    assert!((1..=3).contains(&rounds) && failures == 0 && longest < 600_000_000, "{rounds} {failures} {longest}");
    let bad = carried_out("bad-soak", &program(r#""command":["true"],"report":["sh","-c","exit 3"]"#), soak);
    assert!(matches!(last_tally(&bad), Some((0, 1.., 0))));
    let told = |record: &Record| matches!(record, Record::Failed { phase: Phase::Report, round: 0, status: 3, .. });
    assert!(bad.iter().any(told));
}
