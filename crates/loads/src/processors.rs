//! What all processors of the machine did: kernel threads work for a process, and no process's own time has that.

use nix::unistd::{SysconfVar, sysconf};
use std::fs;

/// Seconds since the machine started, of all processors together, from /proc/stat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processors {
    /// In the kernel, interrupts included. Most kernels ask once in a tick what a processor is doing.
    pub system: f64,
    /// Without work, whether or not something waits for a disk. A tickless kernel measures that.
    pub idle: f64,
    /// Taken by a host for others.
    pub stolen: f64,
    pub count: usize,
}

impl Processors {
    /// None where /proc isn't mounted.
    pub fn now() -> Option<Processors> {
        let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten().filter(|ticks| *ticks > 0)?;
        Processors::read(&fs::read_to_string("/proc/stat").ok()?, ticks as f64)
    }

    /// `cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...` in so many parts of a second, then a line for each.
    fn read(stat: &str, ticks: f64) -> Option<Processors> {
        let mut lines = stat.lines();
        let all = lines.next()?.strip_prefix("cpu ")?;
        let seconds: Vec<f64> = all
            .split_whitespace()
            .map(|number| Some(number.parse::<u64>().ok()? as f64 / ticks))
            .collect::<Option<_>>()?;
        let [_, _, system, idle, iowait, irq, softirq, stolen] = *seconds.get(..8)? else { return None };
        let count = lines.take_while(|line| line.starts_with("cpu")).count();
        Some(Processors { system: system + irq + softirq, idle: idle + iowait, stolen, count })
    }

    /// Seconds in which a processor worked, user code included, since an earlier look, `elapsed` seconds ago.
    pub fn busy_since(&self, earlier: &Processors, elapsed: f64) -> f64 {
        let without_work = self.idle - earlier.idle + self.stolen - earlier.stolen;
        (elapsed * self.count as f64 - without_work).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "\
cpu  1000 50 300 8000 400 20 80 7 0 0
cpu0 500 25 150 4000 200 10 40 3 0 0
cpu1 500 25 150 4000 200 10 40 4 0 0
intr 5 1 2
";

    #[test]
    fn interrupts_are_system_time_and_waiting_is_idle() {
        let read = Processors::read(STAT, 100.0).unwrap();
        assert_eq!(read, Processors { system: 4.0, idle: 84.0, stolen: 0.07, count: 2 });
    }

    #[test]
    fn what_is_not_idle_is_work() {
        let before = Processors::read(STAT, 100.0).unwrap();
        let after = Processors { idle: 85.5, stolen: 0.17, ..before };
        assert!((after.busy_since(&before, 2.0) - 2.4).abs() < 1e-9);
        assert_eq!(after.busy_since(&before, 0.5), 0.0);
    }

    #[test]
    fn a_text_that_is_no_stat_is_none() {
        for text in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 x 6 7 8", "intr 1 2 3 4 5 6 7 8"] {
            assert_eq!(Processors::read(text, 100.0), None, "{text}");
        }
    }

    #[test]
    fn this_machine_says_what_its_processors_do() {
        let now = Processors::now().unwrap();
        assert!(now.count > 0 && now.system > 0.0);
    }
}
