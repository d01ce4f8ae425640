//! How snapshots leave the guest.

use std::io::{BufWriter, Write};

use kdyno_proto::{CountersEnd, CountersItem};

use super::arena::Arena;

/// Write the items of each snapshot that differ from those of the one before, then the end.
pub fn send(arena: &Arena, names: &[String], after: &[String], port: &mut impl Write) -> Result<(), String> {
    let mut out = BufWriter::new(port);
    let mut write = |bytes: &[u8]| out.write_all(bytes).map_err(|error| format!("write(counters): {error}"));
    for (snapshot, test) in after.iter().enumerate() {
        let first = snapshot * names.len();
        for (index, name) in (first..).zip(names) {
            let content = arena.item(index);
            if snapshot == 0 || content != arena.item(index - names.len()) {
                write(CountersItem::new(snapshot, test, name, content.len()).to_line().as_bytes())?;
                write(content)?;
            }
        }
    }
    write(CountersEnd::new(after.len()).to_line().as_bytes())?;
    out.flush().map_err(|error| format!("write(counters): {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_change_is_sent_once() {
        let mut arena = Arena::new().unwrap();
        for content in [b"a0", b"b0", b"a0", b"b1", b"a2", b"b1"] {
            arena
                .add(|free| {
                    free[..2].copy_from_slice(content);
                    Ok(2)
                })
                .unwrap();
        }
        let mut sent = Vec::new();
        let texts = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        send(&arena, &texts(&["a", "b"]), &texts(&["", "", "lat_pipe"]), &mut sent).unwrap();
        let line = |snapshot, after, name| CountersItem::new(snapshot, after, name, 2).to_line();
        let expected = [line(0, "", "a"), "a0".into(), line(0, "", "b"), "b0".into(), line(1, "", "b"), "b1".into()];
        let rest = [line(2, "lat_pipe", "a"), "a2".into(), CountersEnd::new(3).to_line()];
        assert_eq!(String::from_utf8(sent).unwrap(), expected.concat() + &rest.concat());
    }
}
