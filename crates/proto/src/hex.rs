//! Bytes as lower-case hex in a JSON string: a command's output may be anything, a record is ASCII.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)] as char);
        text.push(DIGITS[usize::from(byte & 15)] as char);
    }
    text
}

/// Decode hexadecimal digits; None for an odd length or anything that [`encode`] would not have written.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| DIGITS.iter().position(|&d| d == byte);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some((digit(high)? << 4 | digit(low)?) as u8)).collect()
}

pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(bytes))
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    decode(&text).ok_or_else(|| D::Error::custom("not lower-case hex with an even number of digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_the_round_trip() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
    }

    #[test]
    fn what_encode_would_not_write_is_refused() {
        for bad in ["0", "0G", "AB", "\u{e9}"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
