//! Whether a guest is at rest: a kernel may work on after its start, in threads of its own, beside what is measured.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(10);
/// How often to look, with a pause after each: five seconds of the guest's time in all.
const LOOKS: u32 = 500;

/// Wait until no other task runs or could, and return how many still do in the end; None if there are none, or the
/// kernel doesn't tell.
pub fn wait() -> Option<u32> {
    let mut others = None;
    for _ in 0..LOOKS {
        others = fs::read_to_string("/proc/loadavg").ok().and_then(|text| others_in(&text));
        if others.is_none() {
            break;
        }
        sleep(PAUSE);
    }
    others
}

/// Return RUNNING in the fourth word of /proc/loadavg, `RUNNING/ALL`, without the task that reads it; None if that is 0.
fn others_in(loadavg: &str) -> Option<u32> {
    let running: u32 = loadavg.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()?;
    running.checked_sub(1).filter(|others| *others > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_that_looks_is_not_among_the_others() {
        assert_eq!(others_in("1.77 0.43 0.14 5/62 95\n"), Some(4));
        assert_eq!(others_in("0.00 0.00 0.00 1/62 95\n"), None);
        assert_eq!(others_in("0.00 0.00 0.00 0/62 95\n"), None);
        assert_eq!(others_in("not a loadavg"), None);
    }
}
