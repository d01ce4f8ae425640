//! The virtio-serial ports on which records, and counters, leave the guest.

use super::mounts::make_node_from_sysfs;
use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::Duration;

const PORTS: &str = "/sys/class/virtio-ports";

/// The host announces ports after the driver has come up, so the name may be late: 100 times 20 ms.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Open the port of this name. A user at a shell needs no records, so without a port they go to /dev/null when
/// `optional`.
pub fn open(name: &str, optional: bool) -> Result<OwnedFd, String> {
    let path = match find(name) {
        Some(path) => path,
        None if optional => "/dev/null".into(),
        // What the kernel lacks depends on the platform, which the host knows.
        None => return Err(no_port(name)),
    };
    let port = OpenOptions::new().write(true).open(&path).map_err(|error| format!("{path}: {error}"))?;
    Ok(port.into())
}

/// Return the message of a guest that lacks the port.
pub fn no_port(name: &str) -> String {
    format!("no virtio port {name}")
}

/// Return the device of the port. Doesn't wait when the driver is not there at all.
fn find(wanted: &str) -> Option<String> {
    for attempt in 0..TRIES {
        if attempt > 0 {
            sleep(PAUSE);
        }
        let ports = fs::read_dir(PORTS).ok()?;
        // One port has our name, so the order of a directory doesn't matter.
        for port in ports.flatten() {
            if fs::read_to_string(port.path().join("name")).is_ok_and(|name| name.trim_end() == wanted) {
                let path = format!("/dev/{}", port.file_name().to_str()?);
                if let Ok(numbers) = fs::read_to_string(port.path().join("dev")) {
                    make_node_from_sysfs(&CString::new(path.as_str()).ok()?, &numbers);
                }
                return Some(path);
            }
        }
    }
    None
}
