//! Record marking (RFC 5531, section 11): how messages are delimited in a byte stream. A record is one or more
//! fragments, each after a word with its length and, in the top bit, whether it is the last.

use super::message::LONGEST;
use crate::sys::{Failure, fd};
use std::os::fd::RawFd;

const LAST: u32 = 1 << 31;

/// Bytes of a fragment's header.
const HEADER: usize = 4;

/// Bytes of the longest record that is read, headers of its fragments included.
const ROOM: usize = 1024;

/// Write `message` as one record of one fragment, in one call.
pub fn write(call: &'static str, stream: RawFd, message: &[u8]) -> Result<(), Failure> {
    let mut record = [0; HEADER + LONGEST];
    record[..HEADER].copy_from_slice(&(LAST | message.len() as u32).to_be_bytes());
    record[HEADER..HEADER + message.len()].copy_from_slice(message);
    fd::write_all(call, stream, &record[..HEADER + message.len()])
}

/// What was read of a record: as libtirpc does, whatever is there is read at once, header and all.
pub struct Reader {
    bytes: [u8; ROOM],
}

impl Reader {
    pub fn new() -> Reader {
        Reader { bytes: [0; ROOM] }
    }

    /// Read one record, however it was cut, and return its message. `wait` is called before each read.
    ///
    /// Whoever calls waits for the answer, so nothing may follow a record; that, and one longer than ROOM, fails.
    pub fn read(
        &mut self,
        call: &'static str,
        stream: RawFd,
        wait: impl Fn() -> Result<(), Failure>,
    ) -> Result<&[u8], Failure> {
        let mut filled = 0;
        loop {
            wait()?;
            let rest = &mut self.bytes[filled..];
            // SAFETY: `rest` is writable for its length.
            let got = unsafe { libc::read(stream, rest.as_mut_ptr().cast(), rest.len()) };
            if got <= 0 {
                return Err(Failure::transfer(call, HEADER, got));
            }
            filled += got as usize;
            match joined(&mut self.bytes[..filled]) {
                Joined::Whole { length, end } if end == filled => return Ok(&self.bytes[..length]),
                Joined::Whole { end, .. } => return Err(Failure::Short { call, wanted: filled, got: end }),
                Joined::Needs(wanted) if wanted > ROOM => return Err(Failure::Short { call, wanted, got: ROOM }),
                Joined::Needs(_) => {}
            }
        }
    }
}

enum Joined {
    /// The message is in front now, `length` bytes of it; the record ended at `end`.
    Whole { length: usize, end: usize },
    /// So many bytes at least from the record's start.
    Needs(usize),
}

/// Put the fragments of a record behind each other, if all of them are there.
fn joined(bytes: &mut [u8]) -> Joined {
    let mut place = 0;
    let end = loop {
        let Some(header) = bytes.get(place..).and_then(<[u8]>::first_chunk) else {
            return Joined::Needs(place + HEADER);
        };
        let header = u32::from_be_bytes(*header);
        place += HEADER + (header & !LAST) as usize;
        if place > bytes.len() {
            return Joined::Needs(place);
        }
        if header & LAST != 0 {
            break place;
        }
    };
    let (mut from, mut to) = (0, 0);
    while from < end {
        let header: [u8; HEADER] = *bytes[from..].first_chunk().expect("seen above");
        let fragment = (u32::from_be_bytes(header) & !LAST) as usize;
        bytes.copy_within(from + HEADER..from + HEADER + fragment, to);
        (from, to) = (from + HEADER + fragment, to + fragment);
    }
    Joined::Whole { length: to, end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn read_back(written: &[u8]) -> Result<Vec<u8>, Failure> {
        let (out, into) = fd::pipe().unwrap();
        fd::write_all("write", into.as_raw_fd(), written).unwrap();
        drop(into);
        Reader::new().read("read", out.as_raw_fd(), || Ok(())).map(<[u8]>::to_vec)
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let (out, into) = fd::pipe().unwrap();
        write("write", into.as_raw_fd(), b"null").unwrap();
        assert_eq!(Reader::new().read("read", out.as_raw_fd(), || Ok(())), Ok(&b"null"[..]));
    }

    #[test]
    fn fragments_are_joined() {
        assert_eq!(read_back(b"\0\0\0\x02nu\0\0\0\0\x80\0\0\x02ll").unwrap(), b"null");
    }

    #[test]
    fn a_record_that_comes_in_pieces_is_read_until_it_is_whole() {
        let (out, into) = fd::pipe().unwrap();
        let mut pieces = [&b"\0\0"[..], b"\0\x02n", b"u\x80\0\0", b"\x02ll"].into_iter();
        let next = std::cell::RefCell::new(|| fd::write_all("write", into.as_raw_fd(), pieces.next().unwrap()));
        let mut reader = Reader::new();
        assert_eq!(reader.read("read", out.as_raw_fd(), || next.borrow_mut()()), Ok(&b"null"[..]));
    }

    #[test]
    fn a_record_too_long_cut_off_or_followed_is_refused() {
        let failure = |bytes| read_back(bytes).unwrap_err();
        assert_eq!(failure(b"\x80\0\x04\0"), Failure::Short { call: "read", wanted: 1028, got: ROOM });
        assert_eq!(failure(b"\x80\0\0\x04nu"), Failure::Short { call: "read", wanted: HEADER, got: 0 });
        assert_eq!(failure(b"\x80\0\0\x01na"), Failure::Short { call: "read", wanted: 6, got: 5 });
    }
}
