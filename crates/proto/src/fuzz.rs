//! Properties: whatever a line or a job holds, it is read or refused. PROPTEST_CASES says how many cases are tried.

use crate::{Direction, Job, Lane, Phase, Progress, Record, Stream, hex};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

const WORDS: &[&str] = &[
    "v",
    "type",
    "lane",
    "model",
    "wall",
    "icount_shift",
    "iterations",
    "tests",
    "programs",
    "command",
    "report",
    "runs",
    "measured",
    "operations",
    "channel",
    "kind",
    "tcp",
    "file",
    "name",
    "params",
    "end",
    "records",
    "output",
    "hex",
    "stream",
    "stdout",
    "exited",
    "status",
    "soak",
    "seconds",
    "every",
    "memory",
    "kb",
];

/// Return JSON, or nearly, with the keys and values that mean something.
fn json() -> impl Strategy<Value = String> {
    let word = prop::sample::select(WORDS).prop_map(|word| format!("\"{word}\""));
    let leaf = prop_oneof![
        word.clone(),
        r#"-?[0-9]{1,25}(\.[0-9]{1,3})?(e[0-9]{1,3})?"#.prop_map(|text| text),
        r#"null|true|"[ -~]{0,8}"|"\\u[0-9a-f]{4}""#.prop_map(|text| text),
    ];
    let nested = leaf.prop_recursive(4, 32, 6, move |inner| {
        let pair = (word.clone(), inner.clone()).prop_map(|(key, value)| format!("{key}:{value}"));
        prop_oneof![
            vec(pair, 0..6).prop_map(|pairs| format!("{{{}}}", pairs.join(","))),
            vec(inner, 0..6).prop_map(|values| format!("[{}]", values.join(","))),
        ]
    });
    prop_oneof![3 => nested, 1 => any::<String>(), 1 => (0..10_000usize).prop_map(|depth| "[".repeat(depth))]
}

/// Return a valid text with a byte or two changed.
fn damaged(sound: &'static str) -> impl Strategy<Value = String> {
    vec((0..sound.len(), any::<u8>()), 0..3).prop_map(|changes| {
        let mut bytes = sound.as_bytes().to_vec();
        changes.into_iter().for_each(|(place, byte)| bytes[place] = byte);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

const JOB: &str = r#"{"v":1,"lane":"model","icount_shift":5,"iterations":7,
    "tests":[{"name":"lat_ctx","params":{"processes":2}}],"programs":[{"name":"x","command":["sh"],"runs":2}],
    "channel":{"kind":"tcp","address":"10.0.2.2:7000"}}"#;
const LINE: &str = r#"{"v":1,"type":"sample","benchmark":"lat_pipe","iteration":0,"elapsed":123456,"work":1000}"#;

fn record() -> impl Strategy<Value = Record> {
    let text = any::<String>;
    let lane = prop::sample::select(Lane::all().collect::<Vec<_>>());
    let stream = prop::sample::select(vec![Stream::Stdout, Stream::Stderr]);
    let phase = prop::sample::select(vec![Phase::SetUp, Phase::Command, Phase::Report, Phase::TearDown]);
    prop_oneof![
        (
            text(),
            text(),
            lane,
            any::<Option<u8>>(),
            any::<u32>(),
            any::<bool>(),
            any::<(Option<String>, Option<u32>)>()
        )
            .prop_map(
                |(agent, kernel, lane, icount_shift, cpus, init, (indirect_target_selection, busy_tasks))| {
                    Record::Hello {
                        agent,
                        kernel,
                        lane,
                        icount_shift,
                        cpus,
                        init,
                        indirect_target_selection,
                        busy_tasks,
                    }
                }
            ),
        (text(), text(), text(), text()).prop_map(|(name, test, unit, description)| Record::Benchmark {
            name,
            test,
            unit,
            direction: Direction::Higher,
            description
        }),
        (text(), any::<u32>(), any::<u64>(), any::<u64>())
            .prop_map(|(benchmark, iteration, elapsed, work)| Record::Sample { benchmark, iteration, elapsed, work }),
        (text(), text()).prop_map(|(benchmark, reason)| Record::Broken { benchmark, reason }),
        (stream, any::<Vec<u8>>()).prop_map(|(stream, data)| Record::Output { stream, data }),
        (text(), phase, any::<u32>()).prop_map(|(program, phase, run)| Record::Step { program, phase, run }),
        (any::<u8>(), any::<[u64; 5]>()).prop_map(|(status, [elapsed, user, system, busy_user, busy_system])| {
            Record::Exited { status, elapsed, user, system, busy_user, busy_system }
        }),
        (text(), any::<u32>()).prop_map(|(program, processes)| Record::Left { program, processes }),
        (text(), any::<u64>(), any::<u8>(), any::<u64>(), any::<Vec<u8>>()).prop_map(
            |(program, round, status, elapsed, tail)| Record::Failed {
                program,
                phase: Phase::SetUp,
                round,
                status,
                elapsed,
                tail
            }
        ),
        (text(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()).prop_map(
            |(program, rounds, failures, elapsed, longest)| Record::Tally {
                program,
                rounds,
                failures,
                elapsed,
                longest,
                progress: Progress::Lost
            }
        ),
        (any::<u64>(), any::<bool>(), btree_map(text(), any::<u64>(), 0..4), any::<Option<u64>>()).prop_map(
            |(elapsed, at_rest, kb, tasks)| Record::Memory { elapsed, at_rest, kb, tasks, files: tasks, tainted: None }
        ),
        any::<u64>().prop_map(|records| Record::End { records }),
    ]
}

proptest! {
    #[test]
    fn any_text_is_a_job_or_refused(text in prop_oneof![json(), damaged(JOB)]) {
        match Job::parse(&text) {
            Ok(job) => {
                prop_assert!(job.v == 1 && job.iterations > 0 && job.icount_shift.is_none_or(|shift| shift <= 10));
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_line_is_a_record_or_refused(line in prop_oneof![json(), damaged(LINE)]) {
        match Record::from_line(&line) {
            Ok(record) => prop_assert_eq!(Record::from_line(&record.to_line()).unwrap(), record),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn every_record_survives_its_line(record in record()) {
        let line = record.to_line();
        prop_assert!(line.is_ascii() && line.ends_with('\n') && !line.trim_end_matches('\n').contains('\n'));
        prop_assert_eq!(Record::from_line(&line).unwrap(), record);
    }

    #[test]
    fn what_is_decoded_is_what_would_be_encoded(text in prop_oneof![any::<String>(), "[0-9a-f]{0,40}"]) {
        if let Some(bytes) = hex::decode(&text) {
            prop_assert_eq!(hex::encode(&bytes), text);
        }
    }
}
