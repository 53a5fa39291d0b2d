//! Any file through the file source: in one turn, and record by record with instances, commits
//! and settles that are lost. Both must store the same messages and leave the same folders.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portway_file_source::FileSource;
use portway_sdk::testing::{self, PollHost};

const SPLITS: [&str; 7] = [
    r#""split":"none""#,
    r#""split":"lines""#,
    r#""split":"csv""#,
    r#""split":"csv","header":"none""#,
    r#""split":"hl7""#,
    r#""split":"json-array""#,
    r#""split":"ndjson""#,
];

fuzz_target!(|input: &[u8]| {
    let Some((&[which, items_max, losses], bytes)) = input.split_first_chunk::<3>() else { return };
    let split = SPLITS[usize::from(which) % SPLITS.len()];
    let settings = format!(r#"{{"settle":"0ms","record_bytes_max":1000,"after_failure":"move",{split}}}"#);
    let mut whole = host(&settings, bytes);
    whole.drain().unwrap();
    let (expected, folders) = (whole.stored, paths());

    let mut host = host(&settings, bytes);
    host.items_max = u32::from(items_max % 8) + 1;
    for bit in 0..8 {
        match losses >> bit & 1 {
            0 => drop(host.turn().unwrap()),
            _ if bit % 2 == 0 => drop(host.poll().unwrap()),
            _ => {
                let found = host.poll().unwrap();
                host.commit(found);
                host.restart().unwrap();
            }
        }
    }
    host.drain().unwrap();
    assert_eq!(host.stored, expected);
    assert_eq!(paths(), folders);
});

fn host(settings: &str, bytes: &[u8]) -> PollHost<FileSource> {
    testing::reset();
    testing::set_time(1_772_280_000_000);
    ["inbox", "done", "failed"].iter().for_each(|folder| testing::grant_folder(folder));
    testing::put_file("inbox", "a", bytes);
    testing::put_file("inbox", "b", bytes);
    PollHost::open(settings).unwrap()
}

fn paths() -> Vec<Vec<String>> {
    ["inbox", "done", "failed"].iter().map(|folder| testing::paths(folder)).collect()
}
