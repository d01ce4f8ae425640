//! lat_rpc: a remote procedure call to another process over loopback.
//!
//! LMBench uses a library's Sun RPC, today libtirpc's, and passes a byte; here it is the null procedure of RFC 5531,
//! spoken by code of our own on both sides, which makes the same system calls.

use super::rpc::client;
use super::rpc::record_mark::Reader;
use super::rpc::server::Sockets;
use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::peer::Peer;
use crate::sys::{Stop, inet};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::os::fd::AsRawFd;

pub static TEST: Test = Test {
    name: "lat_rpc",
    suite: Some(Suite::Lmbench),
    description: "call the null procedure of an ONC RPC server on loopback",
    params: &[],
    metrics: &[
        Metric {
            suffix: "udp",
            kind: Kind::Latency,
            description: "null procedure over UDP",
            model_operations: 4,
            run: udp,
        },
        Metric {
            suffix: "tcp",
            kind: Kind::Latency,
            description: "null procedure over TCP with record marking",
            model_operations: 4,
            run: tcp,
        },
    ],
};

/// Return a server's sockets, and the address of the one for datagrams.
fn sockets() -> Result<(Sockets, libc::sockaddr_in), Stop> {
    let (listener, _) = inet::listener()?;
    let (udp, address) = inet::udp_server()?;
    Ok((Sockets { udp, listener }, address))
}

fn udp(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let (server, address) = sockets()?;
    let near = inet::udp()?;
    let _peer = Peer::spawn(move || server.serve_udp())?;
    let mut xid = 0_u32;
    recorder.measure(|calls| {
        for _ in 0..calls {
            xid = xid.wrapping_add(1);
            client::call_udp(near.as_raw_fd(), &address, xid)?;
        }
        Ok(calls)
    })
}

fn tcp(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let (near, far) = inet::tcp_pair()?;
    let (server, _) = sockets()?;
    let _peer = Peer::spawn(move || server.serve_tcp(&far))?;
    let mut reader = Reader::new();
    let mut xid = 0_u32;
    recorder.measure(|calls| {
        for _ in 0..calls {
            xid = xid.wrapping_add(1);
            client::call_tcp(near.as_raw_fd(), &mut reader, xid)?;
        }
        Ok(calls)
    })
}
