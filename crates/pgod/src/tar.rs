//! Files in an archive that any tar reads: POSIX's ustar headers, and GNU's `L` entry before a name that is too long for
//! one (GNU tar's manual, "Basic Tar Format").

use std::io::{Result, Write};

const BLOCK: usize = 512;
const NAME: usize = 100;
const FILE: u8 = b'0';
const LONG_NAME: u8 = b'L';

/// Write one file.
pub fn file(output: &mut impl Write, name: &[u8], content: &[u8]) -> Result<()> {
    begin(output, name, content.len() as u64)?;
    output.write_all(content)?;
    pad(output, content.len() as u64)
}

/// Write what comes before the content of a file.
pub fn begin(output: &mut impl Write, name: &[u8], size: u64) -> Result<()> {
    if name.len() > NAME {
        output.write_all(&header(b"././@LongLink", name.len() as u64 + 1, LONG_NAME))?;
        output.write_all(name)?;
        output.write_all(b"\0")?;
        pad(output, name.len() as u64 + 1)?;
    }
    output.write_all(&header(&name[..name.len().min(NAME)], size, FILE))
}

/// Fill up the last block of a file.
pub fn pad(output: &mut impl Write, size: u64) -> Result<()> {
    output.write_all(&[0; BLOCK][..(size.next_multiple_of(BLOCK as u64) - size) as usize])
}

/// Write the end of an archive.
pub fn end(output: &mut impl Write) -> Result<()> {
    output.write_all(&[0; 2 * BLOCK])
}

fn header(name: &[u8], size: u64, kind: u8) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut write_field = |place: usize, bytes: &[u8]| block[place..place + bytes.len()].copy_from_slice(bytes);
    write_field(0, name);
    write_field(100, b"0000600\0");
    write_field(108, b"0000000\0");
    write_field(116, b"0000000\0");
    write_field(124, format!("{size:011o}\0").as_bytes());
    write_field(136, b"00000000000\0");
    // The checksum counts as blanks while it is computed.
    write_field(148, b"        ");
    write_field(156, &[kind]);
    write_field(257, b"ustar\x0000");
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
        let tar_output = tar.wait_with_output().unwrap();
        assert!(tar_output.status.success());
        let listed = String::from_utf8(tar_output.stdout).unwrap();
        let rows: Vec<Vec<_>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
        let sizes_and_names: Vec<_> = rows.iter().map(|row| (row[2], *row.last().unwrap())).collect();
        assert_eq!(sizes_and_names, [("512", "mm/slub.gcda"), ("5", long.as_str()), ("0", "empty.gcda")]);
    }
}
