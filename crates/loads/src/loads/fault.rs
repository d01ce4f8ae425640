//! The price of memory: page faults, copies on write after fork, unmapping, and what large pages waste.

use crate::area::{Advice, Area};
use crate::clock::{Timing, measure, time_work};
use crate::failure::{self, Failure};
use crate::fork;
use crate::load::{Load, Program, any_values};
use crate::memory::Memory;
use crate::outcome::{Facts, Reading, Repetition};
use crate::parameters::{ADVISE, Kind, Parameters, Setting};
use crate::scramble::scramble;
use nix::unistd::{SysconfVar, sysconf};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};

pub const FAULT: Program = Program {
    name: "fault",
    summary: "touches each page of --bytes of new memory, half of them again in a child; faults/s, seconds",
    settings: &[
        Setting { name: "bytes", kind: Kind::Bytes { least: 1 << 16, most: 1 << 40 }, default: Some("256M") },
        ADVISE,
    ],
    check: any_values,
    prepare,
};

/// What a large page holds on x86.
const LARGE_PAGE: usize = 2 << 20;

struct Fault {
    bytes: usize,
    page: usize,
    advice: Advice,
    /// While all was touched.
    memory: Option<Memory>,
    facts: Facts,
}

fn prepare(parameters: &Parameters) -> Result<Box<dyn Load>, Failure> {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().map_or(4096, |bytes| bytes as usize);
    let (bytes, advice) = (parameters.number("bytes"), parameters.advice());
    Ok(Box::new(Fault { bytes, page, advice, memory: None, facts: Facts::new() }))
}

/// Return what is written into a page the first time; never 0.
fn mark(page: usize) -> u8 {
    scramble(page as u64) as u8 | 1
}

/// Write into the first byte of each page; `change` turns the mark into what is written.
fn touch(area: &mut [u8], page: usize, change: fn(u8) -> u8) {
    area.iter_mut().step_by(page).enumerate().for_each(|(number, byte)| *byte = change(mark(number)));
}

fn is_touched(area: &[u8], page: usize, change: fn(u8) -> u8) -> bool {
    area.iter().step_by(page).enumerate().all(|(number, byte)| *byte == change(mark(number)))
}

/// Touch half of the pages in a child, and return what fork took here, and touching there.
fn copy_on_write(area: &mut [u8], page: usize) -> Result<(Timing, Timing), Failure> {
    let half = area.len() / 2 / page * page;
    let (reader, writer) = pipe().map_err(|error| failure::io_failure("make a pipe", &error))?;
    let (child, forking) = time_work(fork::split);
    let Some(child) = child? else {
        drop(reader);
        std::process::exit(i32::from(be_child(area, half, page, writer).is_err()))
    };
    drop(writer);
    let answer = hear(reader);
    fork::wait(child)?;
    let touching = answer?.ok_or_else(|| failure::wrong_result("a child did not see what its parent had written"))?;
    match is_touched(area, page, |mark| mark) {
        true => Ok((forking, touching)),
        false => Err(failure::wrong_result("what a child wrote is seen by its parent")),
    }
}

/// Send how long touching took, or nothing where the pages aren't the parent's.
fn be_child(area: &mut [u8], half: usize, page: usize, mut writer: PipeWriter) -> std::io::Result<()> {
    let mut is_right = is_touched(area, page, |mark| mark);
    let ((), timing) = time_work(|| touch(&mut area[..half], page, |mark| !mark));
    is_right &= is_touched(&area[..half], page, |mark| !mark);
    serde_json::to_writer(&mut writer, &is_right.then_some(timing))?;
    writer.flush()
}

fn hear(mut reader: PipeReader) -> Result<Option<Timing>, Failure> {
    let mut text = String::new();
    reader.read_to_string(&mut text).map_err(|error| failure::io_failure("hear of a child", &error))?;
    serde_json::from_str(&text).map_err(|_| Failure::of_surroundings("a child process ended without a report", ""))
}

/// Return what of so much new memory is resident when one byte of each large page's worth is touched; None as in
/// `Memory::now`.
fn sparse(bytes: usize, advice: Advice) -> Result<Option<u64>, Failure> {
    let first = Memory::read();
    let mut area: Area<u8> = Area::new(bytes, advice)?;
    area.iter_mut().step_by(LARGE_PAGE).for_each(|byte| *byte = 1);
    let last = Memory::read();
    // To the kernel the area is used up to here.
    match area.iter().step_by(LARGE_PAGE).all(|byte| *byte == 1) {
        true => Ok(first.zip(last).map(|(first, last)| last.anonymous.saturating_sub(first.anonymous))),
        false => Err(failure::wrong_result("a byte is not what was written")),
    }
}

impl Load for Fault {
    fn run(&mut self) -> Result<Repetition, Failure> {
        let Fault { bytes, page, advice, .. } = *self;
        let (area, timing) = measure(|| {
            let mut area = Area::new(bytes, advice)?;
            touch(&mut area, page, |mark| mark);
            Ok(area)
        });
        let mut area: Area<u8> = area?;
        self.memory = Memory::read();
        if !is_touched(&area, page, |mark| mark) {
            return Err(failure::wrong_result("a page does not hold what was written"));
        }
        if self.memory.is_some_and(|memory| (memory.anonymous as usize) < bytes) {
            return Err(failure::wrong_result("less is resident than was touched"));
        }
        let (forking, touching) = copy_on_write(&mut area, page)?;
        let ((), unmapping) = time_work(|| drop(area));
        let pages = bytes.div_ceil(page) as f64;
        let mut readings = vec![
            Reading::lower("seconds", timing.seconds(), "s"),
            Reading::lower("user_seconds", timing.user, "s"),
            Reading::lower("system_seconds", timing.system, "s"),
            Reading::higher("page_rate", pages / timing.seconds(), "pages/s"),
            Reading::higher("fault_rate", timing.faults.minor as f64 / timing.seconds(), "faults/s"),
            Reading::lower("faults", timing.faults.minor as f64, "faults"),
            Reading::lower("fork_seconds", forking.seconds(), "s"),
            Reading::lower("copy_seconds", touching.seconds(), "s"),
            Reading::lower("copy_faults", touching.faults.minor as f64, "faults"),
            Reading::lower("unmap_seconds", unmapping.seconds(), "s"),
        ];
        if let Some(resident) = sparse(bytes, advice)? {
            readings.push(Reading::lower("sparse_resident", resident as f64, "B"));
        }
        self.facts =
            [("pages".into(), (pages as u64).into()), ("page_bytes".into(), page.into())].into_iter().collect();
        Ok(Repetition { readings, timing })
    }

    fn memory(&self) -> Option<Memory> {
        self.memory
    }

    /// Return the facts; all of it was verified as it went, since nothing is left now.
    fn verify(&mut self) -> Result<Facts, Failure> {
        Ok(self.facts.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_not_written_or_lost_its_mark_is_found() {
        let mut area: Area<u8> = Area::new(10 * 4096, Advice::Nothing).unwrap();
        assert!(!is_touched(&area, 4096, |mark| mark));
        touch(&mut area, 4096, |mark| mark);
        assert!(is_touched(&area, 4096, |mark| mark));
        touch(&mut area[..4096], 4096, |mark| !mark);
        assert!(!is_touched(&area, 4096, |mark| mark));
    }

    #[test]
    fn sparse_memory_is_a_page_for_each_byte_without_large_pages() {
        let resident = sparse(64 << 20, Advice::NoHugePages).unwrap();
        // Other tests run beside this one, in the same memory.
        assert!(resident.is_none_or(|resident| resident < 32 << 20), "{resident:?}");
    }
}
