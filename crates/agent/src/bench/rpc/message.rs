//! Calls and replies: 32-bit big-endian words.

/// From the range that RFC 5531 leaves to users (0x20000000 to 0x3fffffff): "kd".
pub const PROGRAM: u32 = 0x2000_6b64;
pub const VERSION: u32 = 1;
pub const NULL_PROCEDURE: u32 = 0;

const RPC_VERSION: u32 = 2;
const CALL: u32 = 0;
const REPLY: u32 = 1;
const ACCEPTED: u32 = 0;
const DENIED: u32 = 1;
const RPC_MISMATCH: u32 = 0;
const AUTH_NONE: u32 = 0;

/// Words in a null call: id, type, RPC version, program, version, procedure, credentials and verifier of AUTH_NONE.
const CALL_WORDS: usize = 10;

/// Bytes of the longest message either side sends.
pub const LONGEST: usize = CALL_WORDS * 4;

/// What the server says of a call that it could decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Success,
    ProgramUnavailable,
    /// The lowest and the highest version follow.
    VersionMismatch,
    ProcedureUnavailable,
    GarbageArguments,
    /// Denied: not RPC version 2.
    RpcMismatch,
}

/// Why a message is not the reply to our call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    Truncated,
    TooLong,
    NotAReply,
    WrongId { wanted: u32, got: u32 },
    Denied,
    NotAccepted(u32),
}

/// A message being written: a fixed buffer, because measured code allocates nothing.
pub struct Message {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Message {
    fn of(words: &[u32]) -> Message {
        let mut message = Message { bytes: [0; LONGEST], length: words.len() * 4 };
        for (place, word) in message.bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        message
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Return a call of the null procedure without credentials.
pub fn call(xid: u32) -> Message {
    Message::of(&[xid, CALL, RPC_VERSION, PROGRAM, VERSION, NULL_PROCEDURE, AUTH_NONE, 0, AUTH_NONE, 0])
}

/// Return the reply to a call, or None if it deserves none: it isn't a call, or has no id to answer to.
pub fn answer(request: &[u8]) -> Option<Message> {
    let word = |i: usize| Some(u32::from_be_bytes(*request.get(i * 4..)?.first_chunk()?));
    let (xid, kind) = (word(0)?, word(1)?);
    if kind != CALL {
        return None;
    }
    let answer = judge([word(2), word(3), word(4), word(5)], request.len());
    Some(reply(xid, answer))
}

fn judge(header: [Option<u32>; 4], length: usize) -> Answer {
    let [Some(rpc), Some(program), Some(version), Some(procedure)] = header else {
        return Answer::GarbageArguments;
    };
    match () {
        () if rpc != RPC_VERSION => Answer::RpcMismatch,
        () if program != PROGRAM => Answer::ProgramUnavailable,
        () if version != VERSION => Answer::VersionMismatch,
        () if procedure != NULL_PROCEDURE => Answer::ProcedureUnavailable,
        // The null procedure has no arguments, and we take no credentials.
        () if length != CALL_WORDS * 4 => Answer::GarbageArguments,
        () => Answer::Success,
    }
}

fn reply(xid: u32, answer: Answer) -> Message {
    let accepted = |status| Message::of(&[xid, REPLY, ACCEPTED, AUTH_NONE, 0, status]);
    match answer {
        Answer::Success => accepted(0),
        Answer::ProgramUnavailable => accepted(1),
        Answer::VersionMismatch => Message::of(&[xid, REPLY, ACCEPTED, AUTH_NONE, 0, 2, VERSION, VERSION]),
        Answer::ProcedureUnavailable => accepted(3),
        Answer::GarbageArguments => accepted(4),
        Answer::RpcMismatch => Message::of(&[xid, REPLY, DENIED, RPC_MISMATCH, RPC_VERSION, RPC_VERSION]),
    }
}

/// Check that `reply` reports that call `xid` of the null procedure succeeded.
pub fn check_reply(reply: &[u8], xid: u32) -> Result<(), Refusal> {
    let word = |i: usize| {
        let bytes = reply.get(i * 4..).and_then(<[u8]>::first_chunk).ok_or(Refusal::Truncated)?;
        Ok(u32::from_be_bytes(*bytes))
    };
    let got = word(0)?;
    if got != xid {
        return Err(Refusal::WrongId { wanted: xid, got });
    }
    if word(1)? != REPLY {
        return Err(Refusal::NotAReply);
    }
    if word(2)? != ACCEPTED {
        return Err(Refusal::Denied);
    }
    // Words 3 and 4 are the verifier: its flavour and its length, which may be anything up to 400 bytes.
    let verifier = (word(4)? as usize).div_ceil(4);
    match word(5 + verifier)? {
        0 if reply.len() > (6 + verifier) * 4 => Err(Refusal::TooLong),
        0 => Ok(()),
        status => Err(Refusal::NotAccepted(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(message: &Message) -> Vec<u32> {
        message.bytes().chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect()
    }

    /// Return a null call with one word changed.
    fn answer_to(index: usize, value: u32) -> Vec<u32> {
        let mut request = call(7).bytes().to_vec();
        request[index * 4..index * 4 + 4].copy_from_slice(&value.to_be_bytes());
        words(&answer(&request).unwrap())
    }

    #[test]
    fn a_null_call_is_answered_and_the_answer_is_accepted() {
        let reply = answer(call(7).bytes()).unwrap();
        assert_eq!(words(&reply), [7, 1, 0, 0, 0, 0]);
        assert_eq!(check_reply(reply.bytes(), 7), Ok(()));
    }

    #[test]
    fn the_server_says_which_part_of_a_call_it_does_not_know() {
        assert_eq!(answer_to(2, 3), [7, 1, 1, 0, 2, 2], "RPC version");
        assert_eq!(answer_to(3, 100_003), [7, 1, 0, 0, 0, 1], "program");
        assert_eq!(answer_to(4, 2), [7, 1, 0, 0, 0, 2, 1, 1], "program version");
        assert_eq!(answer_to(5, 9), [7, 1, 0, 0, 0, 3], "procedure");
    }

    #[test]
    fn a_truncated_call_is_garbage_and_a_reply_is_no_call() {
        let request = call(7);
        assert_eq!(words(&answer(&request.bytes()[..36]).unwrap()), [7, 1, 0, 0, 0, 4]);
        assert_eq!(words(&answer(&request.bytes()[..12]).unwrap()), [7, 1, 0, 0, 0, 4]);
        assert!(answer(&request.bytes()[..7]).is_none());
        assert!(answer(answer(request.bytes()).unwrap().bytes()).is_none());
    }

    #[test]
    fn a_truncated_rpc_reply_is_refused() {
        let reply = answer(call(7).bytes()).unwrap();
        for length in 0..reply.bytes().len() {
            assert_eq!(check_reply(&reply.bytes()[..length], 7), Err(Refusal::Truncated), "{length}");
        }
    }

    #[test]
    fn a_reply_to_another_call_or_of_failure_is_refused() {
        let reply = answer(call(7).bytes()).unwrap();
        assert_eq!(check_reply(reply.bytes(), 8), Err(Refusal::WrongId { wanted: 8, got: 7 }));
        assert_eq!(check_reply(call(7).bytes(), 7), Err(Refusal::NotAReply));
        let denied = super::reply(7, Answer::RpcMismatch);
        assert_eq!(check_reply(denied.bytes(), 7), Err(Refusal::Denied));
        let unavailable = super::reply(7, Answer::ProgramUnavailable);
        assert_eq!(check_reply(unavailable.bytes(), 7), Err(Refusal::NotAccepted(1)));
    }

    #[test]
    fn a_verifier_is_skipped_and_a_result_that_null_does_not_have_is_refused() {
        let with_verifier = Message::of(&[7, REPLY, ACCEPTED, AUTH_NONE, 4, 0xdead_beef, 0]);
        assert_eq!(check_reply(with_verifier.bytes(), 7), Ok(()));
        let with_result = Message::of(&[7, REPLY, ACCEPTED, AUTH_NONE, 0, 0, 1]);
        assert_eq!(check_reply(with_result.bytes(), 7), Err(Refusal::TooLong));
        let huge_verifier = Message::of(&[7, REPLY, ACCEPTED, AUTH_NONE, u32::MAX, 0]);
        assert_eq!(check_reply(huge_verifier.bytes(), 7), Err(Refusal::Truncated));
    }
}
