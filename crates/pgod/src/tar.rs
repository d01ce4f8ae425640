//! Files in an archive that any tar reads: POSIX's ustar headers, and GNU's `L` entry before a name that is too long for
//! one (GNU tar's manual, "Basic Tar Format").

use std::io::{Result, Write};

const BLOCK: usize = 512;
const NAME: usize = 100;
const FILE: u8 = b'0';
const LONG_NAME: u8 = b'L';

/// Write one file.
pub fn file(out: &mut impl Write, name: &[u8], content: &[u8]) -> Result<()> {
    begin(out, name, content.len() as u64)?;
    out.write_all(content)?;
    pad(out, content.len() as u64)
}

/// Write what comes before the content of a file.
pub fn begin(out: &mut impl Write, name: &[u8], size: u64) -> Result<()> {
    if name.len() > NAME {
        out.write_all(&header(b"././@LongLink", name.len() as u64 + 1, LONG_NAME))?;
        out.write_all(name)?;
        out.write_all(b"\0")?;
        pad(out, name.len() as u64 + 1)?;
    }
    out.write_all(&header(&name[..name.len().min(NAME)], size, FILE))
}

/// Fill up the last block of a file.
pub fn pad(out: &mut impl Write, size: u64) -> Result<()> {
    out.write_all(&[0; BLOCK][..(size.next_multiple_of(BLOCK as u64) - size) as usize])
}

/// Write the end of an archive.
pub fn end(out: &mut impl Write) -> Result<()> {
    out.write_all(&[0; 2 * BLOCK])
}

fn header(name: &[u8], size: u64, kind: u8) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |place: usize, bytes: &[u8]| block[place..place + bytes.len()].copy_from_slice(bytes);
    put(0, name);
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    // The checksum counts as blanks while it is computed.
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn tar_reads_what_is_written_long_names_too() {
        let long = format!("{}/kernel/fork.gcda", "build".repeat(60));
        let mut archive = Vec::new();
        for (name, content) in
            [("mm/slub.gcda", "x".repeat(512)), (&long, "short".into()), ("empty.gcda", String::new())]
        {
            file(&mut archive, name.as_bytes(), content.as_bytes()).unwrap();
        }
        end(&mut archive).unwrap();
        let mut tar = Command::new("tar").arg("-tv").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        tar.stdin.take().unwrap().write_all(&archive).unwrap();
        let done = tar.wait_with_output().unwrap();
        assert!(done.status.success());
        let listed = String::from_utf8(done.stdout).unwrap();
        let rows: Vec<Vec<_>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
        let sizes_and_names: Vec<_> = rows.iter().map(|row| (row[2], *row.last().unwrap())).collect();
        assert_eq!(sizes_and_names, [("512", "mm/slub.gcda"), ("5", long.as_str()), ("0", "empty.gcda")]);
    }
}
