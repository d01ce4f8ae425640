//! As much of ONC RPC version 2 (RFC 5531) as a null call needs, checked on both sides.

pub mod client;
pub mod message;
pub mod record_mark;
pub mod server;
mod wait;
