//! Files that a file sender appended to, or a folder of one file a message: checked like what
//! arrives over a network.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::message::{self, Seen};
use super::tally::Tally;

/// Bytes of one record.
const RECORD_BYTES_MAX: u64 = 256 << 20;

/// Counts every record of a file, or every file of a folder in the order of their names.
pub fn check(path: &Path, tally: &Tally) -> io::Result<()> {
    each(path, |seen| tally.record(seen.as_ref(), message::now()))
}

/// Hands over what each record says of itself, without its time: it was received long ago.
pub fn each(path: &Path, mut take: impl FnMut(Option<Seen>)) -> io::Result<()> {
    let mut undated = |record: &[u8]| {
        let seen = message::read(record).map(|seen| Seen { sent_at: None, ..seen });
        take(seen);
    };
    if !path.is_dir() {
        return each_record(path, &mut undated);
    }
    let mut names =
        std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    for name in names.iter().filter(|name| name.is_file()) {
        undated(&std::fs::read(name)?);
    }
    Ok(())
}

fn each_record(path: &Path, take: &mut impl FnMut(&[u8])) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = io::Read::take(&mut reader, RECORD_BYTES_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let record = line.trim_ascii();
        if !record.is_empty() {
            take(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::message::Template;

    #[test]
    fn appended_records_and_folders_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let template = Template::new(message::SIZE);
        let raw =
            [template.message("PWa", 1), b"\n".to_vec(), template.message("PWa", 2), b"\n".to_vec()].concat();
        let path = dir.path().join("raw.hl7");
        std::fs::write(&path, raw).unwrap();
        let tally = Tally::default();
        check(&path, &tally).unwrap();
        let json = dir.path().join("x.ndjson");
        std::fs::write(&json, "{\"id\":\"PWa-3\"}\n{\"id\":\"PWa-5\"}\n\nnothing of ours\n").unwrap();
        check(&json, &tally).unwrap();
        let report = tally.report();
        assert_eq!((report.distinct, report.missing, report.unknown), (4, 1, 1));
        let folder = Tally::default();
        check(dir.path(), &folder).unwrap();
        assert_eq!(folder.report().received, 2);
    }
}
