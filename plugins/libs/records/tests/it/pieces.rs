//! However the input is cut into pieces, and wherever reading begins anew, the records are
//! the same, and between them stands nothing that could be one.

use portway_records::{Format, Limits, Mark};
use proptest::prelude::*;

use crate::{FORMATS, split_in};

fn noise() -> impl Strategy<Value = Vec<u8>> {
    let words: &[&[u8]] = &[
        b"\n",
        b"\r",
        b"\r\n",
        b"\"",
        b",",
        b"a",
        b"MSH|^~\\&|",
        b"MS",
        b"FHS|",
        b"BHS|\r",
        b"BTS|1\r",
        b"FTS|1\r",
        b"PID|1",
        b"[",
        b"]",
        b"{",
        b"}",
        b"\"a\":1",
        b"12",
        b" ",
        b"true",
        b"\xEF\xBB\xBF",
        b"\0",
        b"\xFF",
        b"\xC3\xA4",
    ];
    let piece = prop_oneof![
        8 => proptest::sample::select(words).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Noise that is likely to be right for a format.
fn input_of(format: Format, noise: Vec<u8>, items: u8) -> Vec<u8> {
    let repeated = |item: &str, between: &str| vec![item; usize::from(items % 7)].join(between).into_bytes();
    match format {
        Format::JsonArray => {
            [b"[".as_slice(), &repeated("{\"a\":[1, \"\\n\"]}", " ,"), b"]", &noise].concat()
        }
        Format::Ndjson => [repeated("{\"a\":[1, \"\\n\"]}", "\r\n"), b"\n".to_vec(), noise].concat(),
        Format::Hl7 => [repeated("MSH|^~\\&|A\rPID|1\r", "\n"), noise].concat(),
        Format::Lines | Format::Csv { .. } => noise,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_pieces_and_any_restart_give_the_same(
        noise in noise(),
        items in any::<u8>(),
        which in 0_usize..5,
        cuts in proptest::collection::vec(1_usize..9, 0..40),
        limit in prop_oneof![Just(u64::MAX), Just(8)],
    ) {
        let format = FORMATS[which];
        let input = input_of(format, noise, items);
        let limits = Limits { record_bytes_max: limit, ..Limits::default() };
        let run = |from, pieces: &mut dyn Iterator<Item = usize>| split_in(format, limits, from, &input, pieces);
        let whole = run(Mark::default(), &mut std::iter::empty());
        prop_assert_eq!(&run(Mark::default(), &mut std::iter::repeat(1)), &whole);
        prop_assert_eq!(&run(Mark::default(), &mut cuts.iter().copied().cycle()), &whole);
        for (index, (_, mark)) in whole.0.iter().enumerate() {
            let (rest, broken) = run(*mark, &mut cuts.iter().copied());
            prop_assert_eq!(&rest, &whole.0[index + 1..]);
            prop_assert_eq!(&broken, &whole.1);
        }
    }

    #[test]
    fn records_and_what_lies_between_them_cover_the_input(noise in noise(), items in any::<u8>(), which in 0_usize..5) {
        let format = FORMATS[which];
        let input = input_of(format, noise, items);
        let (records, broken) =
            split_in(format, Limits::default(), Mark::default(), &input, &mut std::iter::empty());
        let mut at = 0;
        let mut between = Vec::new();
        for (record, _) in records {
            prop_assert!(record.start >= at && record.len > 0, "records overlap");
            between.extend_from_slice(&input[at as usize..record.start as usize]);
            at = record.start + record.len;
        }
        if broken.is_some() {
            return Ok(());
        }
        between.extend_from_slice(&input[at as usize..]);
        let left: Vec<u8> = between.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&between).to_vec();
        match format {
            Format::Lines | Format::Csv { .. } => prop_assert!(left.iter().all(|byte| b"\r\n".contains(byte))),
            Format::Ndjson => prop_assert!(left.iter().all(|byte| b"\r\n\t ".contains(byte))),
            Format::JsonArray => prop_assert!(left.iter().all(|byte| b"\r\n\t [],".contains(byte))),
            Format::Hl7 => {
                let starts = left.split(|byte| b"\r\n".contains(byte)).filter(|line| !line.is_empty());
                for line in starts {
                    prop_assert!([b"FHS", b"BHS", b"BTS", b"FTS"].iter().any(|name| line.starts_with(*name)));
                }
            }
        }
    }
}
