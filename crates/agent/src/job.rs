//! The job, checked against what this agent can do.

use crate::bench;
use crate::measure::Clock;
use crate::runner::Planned;
use crate::settings::Settings;
use kdyno_proto::{Channel, Counters, Job, Program, Soak};

/// A job that can be done.
pub struct Plan {
    pub settings: Settings,
    pub tests: Vec<Planned>,
    pub programs: Vec<Program>,
    pub soak: Option<Soak>,
    pub interactive: bool,
    pub channel: Channel,
    pub counters: Option<Counters>,
}

impl Plan {
    pub fn read(path: &str) -> Result<Plan, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        let job = Job::parse(&text).map_err(|error| format!("{path}: {error}"))?;
        Plan::of(job).map_err(|error| format!("{path}: {error}"))
    }

    /// Return how many benchmarks the tests have.
    pub fn benchmarks(&self) -> u16 {
        self.tests.iter().map(|planned| planned.test.metrics.len() as u16).sum()
    }

    /// Return whether anything is measured, by the clock of the lane.
    pub fn measures(&self) -> bool {
        !self.tests.is_empty() || self.programs.iter().any(|program| program.measured.is_some())
    }

    fn of(job: Job) -> Result<Plan, String> {
        let plan = |asked: &kdyno_proto::JobTest| {
            let test = bench::find(&asked.name)?;
            Ok(Planned { test, params: test.resolve(job.lane, &asked.params)? })
        };
        let timed = job.programs.iter().find(|program| program.measured.is_some());
        if let (true, Some(program)) = (job.lane.uses_core_pmu(), timed) {
            let (lane, name) = (job.lane, &program.name);
            return Err(format!("lane {lane} counts on one CPU, and the runs of {name} are measured on all of them"));
        }
        let tests = job.tests.iter().map(plan).collect::<Result<_, String>>()?;
        let clock = Clock::of(job.lane, job.icount_shift);
        let settings = Settings { lane: job.lane, clock, iterations: job.iterations };
        let Job { programs, soak, interactive, channel, counters, .. } = job;
        Ok(Plan { settings, tests, programs, soak, interactive, channel, counters })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    fn plan(tests: &str) -> Result<Plan, String> {
        let text = format!(r#"{{"v":1,"lane":"model","icount_shift":5,"iterations":7,"tests":{tests}}}"#);
        Plan::of(Job::parse(&text).unwrap())
    }

    proptest! {
        /// PROPTEST_CASES says how many are tried.
        #[test]
        fn any_job_is_planned_or_refused(
            tests in vec(
                ("(lat|bw)_[a-z]{2,7}|lat_ctx|.{0,40}", btree_map("processes|size_kb|[a-z_]{0,9}", any::<u64>(), 0..3)),
                0..4,
            ),
            iterations in any::<u32>(),
        ) {
            let tests = tests.into_iter().map(|(name, params)| kdyno_proto::JobTest { name, params }).collect();
            let mut job = Job::parse(r#"{"v":1,"lane":"model","icount_shift":5,"iterations":7}"#).unwrap();
            (job.tests, job.iterations) = (tests, iterations);
            match Plan::of(job) {
                Ok(plan) => prop_assert_eq!(plan.settings.iterations, iterations),
                Err(message) => prop_assert!(!message.is_empty()),
            }
        }
    }

    #[test]
    fn a_job_is_planned_with_the_defaults_of_its_lane() {
        let plan = plan(r#"[{"name":"bw_file_rd"},{"name":"lat_ctx","params":{"processes":8}}]"#).unwrap();
        assert_eq!(plan.tests[0].params.get("size_kb"), 128);
        assert_eq!(plan.tests[1].params.get("processes"), 8);
        assert_eq!(plan.settings.icount_shift(), Some(5));
    }

    #[test]
    fn a_program_that_is_measured_on_all_cpus_is_refused_in_a_lane_that_counts_on_one() {
        let measured = r#""measured":{"benchmark":"x.y","description":"","operations":1}"#;
        for (lane, rest, is_refused) in
            [("pmu", measured, true), ("wall", measured, false), ("pmu", r#""runs":1"#, false)]
        {
            let program = format!(r#"{{"name":"x","command":["true"],"seconds":1,{rest}}}"#);
            let text = format!(r#"{{"v":1,"lane":"{lane}","iterations":1,"programs":[{program}]}}"#);
            let error = Plan::of(Job::parse(&text).unwrap()).err();
            assert_eq!(error.is_some(), is_refused, "{lane}: {error:?}");
            assert!(error.is_none_or(|error| error.contains("counts on one CPU, and the runs of x")));
        }
    }

    #[test]
    fn a_job_with_a_test_or_parameter_we_do_not_have_is_refused() {
        assert!(plan(r#"[{"name":"lat_pip"}]"#).err().unwrap().contains("did you mean 'lat_pipe'?"));
        assert!(plan(r#"[{"name":"lat_ctx","params":{"size":1}}]"#).err().unwrap().contains("'size_kb'?"));
    }
}
