//! What all processors of the machine did, from /proc/stat: servers and kernel threads work for a process that isn't
//! their parent, and no process's own time has that.

use std::fs;
use std::time::Duration;

/// Since the machine started, of all processors together. Most kernels ask once in a tick what a processor is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processors {
    pub user: Duration,
    /// The time in the kernel, interrupts included.
    pub system: Duration,
    /// Without work, whether or not something waits for a disk. A tickless kernel measures that.
    pub idle: Duration,
    /// Taken by a host for others.
    pub stolen: Duration,
    pub count: u32,
}

impl Processors {
    /// Return the current times; None where /proc isn't mounted.
    pub fn now() -> Option<Processors> {
        // SAFETY: no pointers.
        let ticks = u32::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|ticks| *ticks > 0)?;
        Processors::read(&fs::read_to_string("/proc/stat").ok()?, Duration::from_secs(1) / ticks)
    }

    /// Read `cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...` in ticks, then a line for each processor.
    fn read(stat: &str, tick: Duration) -> Option<Processors> {
        let mut lines = stat.lines();
        let mut words = lines.next()?.strip_prefix("cpu ")?.split_whitespace();
        let mut time = || Some(ticks(words.next()?.parse().ok()?, tick));
        let [user, nice, system, idle, iowait, irq, softirq, stolen] = [(); 8].map(|()| time());
        Some(Processors {
            user: user?.saturating_add(nice?),
            system: system?.saturating_add(irq?).saturating_add(softirq?),
            idle: idle?.saturating_add(iowait?),
            stolen: stolen?,
            count: u32::try_from(lines.take_while(|line| line.starts_with("cpu")).count()).ok()?,
        })
    }

    /// Return what was done since an earlier look; nothing goes backwards.
    pub fn since(self, earlier: Processors) -> Processors {
        Processors {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            idle: self.idle.saturating_sub(earlier.idle),
            stolen: self.stolen.saturating_sub(earlier.stolen),
            count: self.count,
        }
    }

    /// Return how long a processor worked, user code included, where these are the figures of so long a time.
    pub fn busy(&self, elapsed: Duration) -> Duration {
        elapsed.saturating_mul(self.count).saturating_sub(self.idle.saturating_add(self.stolen))
    }
}

/// Return the time of so many ticks; the longest time of all where that is more than a Duration holds.
fn ticks(number: u64, tick: Duration) -> Duration {
    let nanoseconds = u128::from(number) * tick.as_nanos();
    let seconds = u64::try_from(nanoseconds / 1_000_000_000).unwrap_or(u64::MAX);
    Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(10);
    const STAT: &str = "\
cpu  1000 50 300 8000 400 20 80 7 0 0
cpu0 500 25 150 4000 200 10 40 3 0 0
cpu1 500 25 150 4000 200 10 40 4 0 0
intr 5 1 2
";

    fn milliseconds(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn nice_is_user_time_interrupts_are_system_time_and_waiting_is_idle() {
        let expected = Processors {
            user: milliseconds(10_500),
            system: milliseconds(4_000),
            idle: milliseconds(84_000),
            stolen: milliseconds(70),
            count: 2,
        };
        assert_eq!(Processors::read(STAT, TICK), Some(expected));
    }

    #[test]
    fn what_is_neither_idle_nor_stolen_is_work() {
        let before = Processors::read(STAT, TICK).unwrap();
        let after =
            Processors { idle: before.idle + milliseconds(1_500), stolen: before.stolen + milliseconds(100), ..before };
        let since = after.since(before);
        assert_eq!(since.busy(milliseconds(2_000)), milliseconds(2_400));
        assert_eq!(since.busy(milliseconds(500)), Duration::ZERO);
        assert_eq!(before.since(after), Processors { count: 2, ..Processors::default() });
    }

    #[test]
    fn a_text_that_is_no_stat_is_none() {
        for text in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 x 6 7 8", "cpu  1 2 3 4 5 6 7", "intr 1 2 3 4 5 6 7 8"] {
            assert_eq!(Processors::read(text, TICK), None, "{text}");
        }
    }

    #[test]
    fn figures_that_no_time_can_hold_are_the_longest_time_and_no_panic() {
        let most = u64::MAX;
        let stat = format!("cpu  {most} {most} {most} {most} {most} {most} {most} {most}\ncpu0 1\n");
        let read = Processors::read(&stat, Duration::from_secs(1)).unwrap();
        assert_eq!(read.user, Duration::MAX);
        assert_eq!(read.busy(Duration::MAX), Duration::ZERO);
    }

    #[test]
    fn this_machine_says_what_its_processors_do() {
        let now = Processors::now().unwrap();
        assert!(now.count > 0 && now.user > Duration::ZERO && now.system > Duration::ZERO);
    }
}
