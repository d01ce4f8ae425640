//! The way on which records leave the guest.

use super::port;
use kdyno_proto::{Channel, PORT};
use std::fs::OpenOptions;
use std::net::TcpStream;
use std::os::fd::OwnedFd;

/// Open the channel. A user at a shell needs no records, so without a port they go to /dev/null when `optional`.
pub fn open(channel: &Channel, optional: bool) -> Result<OwnedFd, String> {
    match channel {
        Channel::VirtioPort => port::open(PORT, optional),
        Channel::Tcp { address } => {
            TcpStream::connect(address).map(OwnedFd::from).map_err(|error| format!("{address}: {error}"))
        }
        Channel::File { path } => OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map(OwnedFd::from)
            .map_err(|error| format!("{path}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn write_record(channel: &Channel) {
        File::from(open(channel, false).unwrap()).write_all(b"record\n").unwrap();
    }

    #[test]
    fn records_may_go_to_a_host_that_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        write_record(&Channel::Tcp { address: listener.local_addr().unwrap().to_string() });
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        assert_eq!(text, "record\n");
    }

    #[test]
    fn records_may_go_to_a_file_and_are_appended() {
        let path = std::env::temp_dir().join(format!("kdyno-channel-{}", std::process::id()));
        let channel = Channel::File { path: path.to_str().unwrap().into() };
        write_record(&channel);
        write_record(&channel);
        assert_eq!(fs::read_to_string(&path).unwrap(), "record\nrecord\n");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_host_that_does_not_listen_is_named() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let message = open(&Channel::Tcp { address: address.clone() }, false).unwrap_err();
        assert!(message.starts_with(&address), "{message}");
    }
}
