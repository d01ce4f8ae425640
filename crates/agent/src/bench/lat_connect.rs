//! lat_connect: make and drop a TCP connection on loopback.
//!
//! As in LMBench the client closes first, and the peer, who waits for that, then; the client's side is left in TIME_WAIT.
//! The last message of an iteration is the peer's, who has then closed all, so that its work is always inside. Where time
//! passes the client resets the connection instead: its iterations make thousands, and would run out of ports.

use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::peer::Peer;
use crate::sys::{Stop, fd, inet};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::os::fd::AsRawFd;

pub static TEST: Test = Test {
    name: "lat_connect",
    suite: Some(Suite::Lmbench),
    description: "make and drop a TCP connection on loopback",
    params: &[],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Latency,
        description: "socket, connect, close; accept and close in another process",
        model_operations: 3,
        run,
    }],
};

fn run(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let (listener, address) = inet::listener()?;
    inet::reuse_address(listener.as_raw_fd())?;
    let resets = !recorder.settings.lane.is_icount();
    let (request_out, request_in) = fd::pipe()?;
    let (done_out, done_in) = fd::pipe()?;
    let _peer = Peer::spawn(move || {
        loop {
            let connections = fd::read_u64("read(request)", request_out.as_raw_fd())?;
            for _ in 0..connections {
                let socket = inet::accept(listener.as_raw_fd())?;
                if !resets {
                    fd::read_end("read(tcp)", socket.as_raw_fd())?;
                }
            }
            fd::write_u64("write(done)", done_in.as_raw_fd(), connections)?;
        }
    })?;
    recorder.measure(|connections| {
        fd::write_u64("write(request)", request_in.as_raw_fd(), connections)?;
        for _ in 0..connections {
            let socket = inet::tcp()?;
            inet::reuse_address(socket.as_raw_fd())?;
            if resets {
                inet::reset_on_close(socket.as_raw_fd())?;
            }
            inet::connect(socket.as_raw_fd(), &address)?;
        }
        fd::read_u64("read(done)", done_out.as_raw_fd())?;
        Ok(connections)
    })
}
