//! Record marking (RFC 5531, section 11): how messages are told apart in a byte stream. A record is one or more
//! fragments, each after a word with its length and, in the top bit, whether it is the last.

use super::message::LONGEST;
use crate::sys::{Failure, fd};
use std::os::fd::RawFd;

const LAST: u32 = 1 << 31;

/// Writes `message` as one record of one fragment, in one call.
pub fn write(call: &'static str, stream: RawFd, message: &[u8]) -> Result<(), Failure> {
    let mut record = [0; 4 + LONGEST];
    record[..4].copy_from_slice(&(LAST | message.len() as u32).to_be_bytes());
    record[4..4 + message.len()].copy_from_slice(message);
    fd::write_all(call, stream, &record[..4 + message.len()])
}

/// Reads one record, however it was cut into fragments, and returns its length. One that is longer than `buffer` fails.
pub fn read(call: &'static str, stream: RawFd, buffer: &mut [u8]) -> Result<usize, Failure> {
    let mut length = 0;
    loop {
        let mut header = [0; 4];
        fd::read_exact(call, stream, &mut header)?;
        let header = u32::from_be_bytes(header);
        let fragment = (header & !LAST) as usize;
        let room = buffer.len() - length;
        if fragment > room {
            return Err(Failure::Short { call, wanted: fragment, got: room });
        }
        fd::read_exact(call, stream, &mut buffer[length..length + fragment])?;
        length += fragment;
        if header & LAST != 0 {
            return Ok(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn read_back(written: &[u8], buffer: &mut [u8]) -> Result<usize, Failure> {
        let (out, into) = fd::pipe().unwrap();
        fd::write_all("write", into.as_raw_fd(), written).unwrap();
        drop(into);
        read("read", out.as_raw_fd(), buffer)
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        let (out, into) = fd::pipe().unwrap();
        write("write", into.as_raw_fd(), b"null").unwrap();
        let mut buffer = [0; 8];
        assert_eq!(read("read", out.as_raw_fd(), &mut buffer), Ok(4));
        assert_eq!(&buffer[..4], b"null");
    }

    #[test]
    fn fragments_are_joined() {
        let mut buffer = [0; 8];
        assert_eq!(read_back(b"\0\0\0\x02nu\0\0\0\0\x80\0\0\x02ll", &mut buffer), Ok(4));
        assert_eq!(&buffer[..4], b"null");
    }

    #[test]
    fn a_record_too_long_or_cut_off_is_refused() {
        let mut buffer = [0; 8];
        let too_long = read_back(b"\x80\0\0\x09", &mut buffer).unwrap_err();
        assert_eq!(too_long, Failure::Short { call: "read", wanted: 9, got: 8 });
        let cut = read_back(b"\x80\0\0\x04nu", &mut buffer).unwrap_err();
        assert_eq!(cut, Failure::Short { call: "read", wanted: 2, got: 0 });
    }
}
