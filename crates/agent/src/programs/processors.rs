//! What all processors of the machine did: a server is no child of the step that asks it, so no time of a step has it.

use std::fs;

/// Nanoseconds of all processors together. Most kernels ask once in a tick what a processor is doing.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Busy {
    pub user: u64,
    /// In the kernel, interrupts included.
    pub system: u64,
}

impl Busy {
    /// Since the machine started; 0 where /proc isn't mounted.
    pub fn now() -> Busy {
        // SAFETY: no pointers.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        u64::try_from(ticks)
            .ok()
            .filter(|ticks| *ticks > 0)
            .and_then(|ticks| Busy::read(&stat, ticks))
            .unwrap_or_default()
    }

    /// What was done since an earlier look.
    pub fn since(self, earlier: Busy) -> Busy {
        Busy { user: self.user.saturating_sub(earlier.user), system: self.system.saturating_sub(earlier.system) }
    }

    /// `cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ ...`, in so many parts of a second.
    fn read(stat: &str, ticks: u64) -> Option<Busy> {
        let mut words = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let mut nanoseconds = || Some(words.next()?.parse::<u64>().ok()?.saturating_mul(1_000_000_000 / ticks));
        let [user, nice, system, _idle, _iowait, irq, softirq] = [(); 7].map(|()| nanoseconds());
        Some(Busy { user: user?.saturating_add(nice?), system: system?.saturating_add(irq?).saturating_add(softirq?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nice_is_user_time_and_interrupts_are_system_time() {
        let stat = "cpu  1000 50 300 8000 400 20 80 7 0 0\ncpu0 500 25 150 4000 200 10 40 3 0 0\nintr 5 1 2\n";
        assert_eq!(Busy::read(stat, 100), Some(Busy { user: 10_500_000_000, system: 4_000_000_000 }));
    }

    #[test]
    fn a_text_that_is_no_stat_is_none() {
        for text in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 5 x 7 8", "intr 1 2 3 4 5 6 7 8"] {
            assert_eq!(Busy::read(text, 100), None, "{text}");
        }
    }

    #[test]
    fn this_machine_says_what_its_processors_do() {
        let now = Busy::now();
        assert!(now.user > 0 && now.system > 0);
        assert_eq!(now.since(now), Busy::default());
    }
}
