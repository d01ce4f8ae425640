//! The CPUs that a process may run on.

use super::{Failure, check};

/// A set of CPUs, as sched_setaffinity(2) takes it.
pub struct Cpus(libc::cpu_set_t);

impl Cpus {
    /// Return the CPUs that this process may run on.
    pub fn allowed() -> Result<Cpus, Failure> {
        // SAFETY: all bits 0 is an empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is writable for the size said.
        check("sched_getaffinity()", unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) })?;
        Ok(Cpus(set))
    }

    /// Let this process run on these CPUs only.
    pub fn bind(&self) -> Result<(), Failure> {
        // SAFETY: the set is readable for the size said.
        let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &self.0) };
        check("sched_setaffinity()", result).map(drop)
    }
}

/// Keep this process, and those that it forks, on the CPU that it runs on now; return its number.
pub fn stay() -> Result<u32, Failure> {
    // SAFETY: no pointers.
    let cpu = check("sched_getcpu()", unsafe { libc::sched_getcpu() })? as u32;
    // SAFETY: all bits 0 is an empty set; `cpu` is one that the kernel has just named.
    let one = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        set
    };
    Cpus(one).bind()?;
    Ok(cpu)
}
