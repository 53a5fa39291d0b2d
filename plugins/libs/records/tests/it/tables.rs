//! Hostile and plain input of each format, and what must come of it.

use portway_records::{Format, Limits, Mark};

use crate::{CSV, FORMATS, split, split_in};

/// Records with `|` between them, and the code and place of what broke the input.
#[track_caller]
fn check(format: Format, input: impl AsRef<[u8]>, expected: &str) {
    let (records, broken) = split(format, input.as_ref());
    let mut told: Vec<String> = records.iter().map(|record| record.escape_ascii().to_string()).collect();
    told.extend(broken.map(|broken| format!("!{} at {}: {}", broken.code, broken.at, broken.text)));
    assert_eq!(told.join(" | "), expected);
}

#[test]
fn lines_end_in_lf_or_crlf_and_empty_ones_are_none() {
    check(Format::Lines, "a\nb\r\n\n\r\n  \nc", "a | b |    | c");
    check(Format::Lines, "", "");
    check(Format::Lines, "\n\n", "");
    check(Format::Lines, b"\xEF\xBB\xBFa\r\r\nb\0\r", "a\\r | b\\x00");
    check(Format::Lines, "a\rb", "a\\rb");
}

#[test]
fn a_record_of_csv_is_never_broken_at_a_line_end_inside_quotes() {
    check(CSV, "a,b\r\n\"1\n2\",\"\"\"\n\"\"\"\r\nx,y", r#"a,b | \"1\n2\",\"\"\"\n\"\"\" | x,y"#);
    check(CSV, "\"a\"x\"\nb\"\n", r#"\"a\"x\" | b\""#);
    check(CSV, "say \"hi\"\n\"\"\n\"\",\"\n\"", r#"say \"hi\" | \"\" | \"\",\"\n\""#);
    check(CSV, "\n\r\na\n\n", "a");
    check(CSV, b"\xEF\xBB\xBF\"a\n\"\n\xFF\0\n", r#"\"a\n\" | \xff\x00"#);
    check(CSV, "one\nragged,line\n,,,,\n", "one | ragged,line | ,,,,");
    let semicolon = Format::Csv { delimiter: b';', quote: Some(b'\'') };
    check(semicolon, "a;'\n';\"\nb\n", r#"a;\'\n\';\" | b"#);
    check(Format::Csv { delimiter: b'\t', quote: None }, "\"a\t\nb\"\n", r#"\"a\t | b\""#);
}

#[test]
fn a_quote_that_is_never_closed_breaks_the_input_where_it_stands() {
    check(CSV, "a\nb,\"c\nd\n", "a | !quote-not-closed at 4: the quote of a field is never closed");
    check(CSV, "\"", "!quote-not-closed at 0: the quote of a field is never closed");
}

const MSH: &str = "MSH|^~\\&|A\r";

#[test]
fn messages_reach_from_header_to_header() {
    check(Format::Hl7, format!("{MSH}PID|1\r\n\r\n{MSH}"), r"MSH|^~\\&|A\rPID|1\r\n\r\n | MSH|^~\\&|A\r");
    check(Format::Hl7, "\r\nMSH|^~\\&|A\nMSHX\n", r"MSH|^~\\&|A\n | MSHX\n");
    check(Format::Hl7, "MSH", "MSH");
    check(Format::Hl7, "", "");
    check(Format::Hl7, "PID|1\r", "!not-hl7 at 0: a segment that is not `MSH` stands outside a message");
    check(Format::Hl7, "\x0BMSH|", "!not-hl7 at 0: a segment that is not `MSH` stands outside a message");
}

#[test]
fn counts_of_batch_and_file_are_reconciled() {
    let file = |bts: &str, fts: &str| format!("FHS|^~\\&\rBHS|^~\\&\r{MSH}{MSH}BTS|{bts}\rFTS|{fts}\r");
    let both = r"MSH|^~\\&|A\r | MSH|^~\\&|A\r";
    check(Format::Hl7, file("2", "1"), both);
    check(Format::Hl7, file(" 2 ", ""), both);
    check(Format::Hl7, file("", "1^x"), both);
    check(
        Format::Hl7,
        file("3", "1"),
        &format!("{both} | !count-differs at 40: BTS-1 says 3 messages, but there are 2"),
    );
    check(
        Format::Hl7,
        file("2", "9"),
        &format!("{both} | !count-differs at 46: FTS-1 says 9 batches, but there are 1"),
    );
    check(Format::Hl7, format!("FHS|^\r{MSH}{MSH}FTS|2"), both);
    check(Format::Hl7, format!("FHS|^\r{MSH}{MSH}FTS|1\n"), both);
    check(
        Format::Hl7,
        format!("FHS|^\r{MSH}{MSH}FTS|3\n"),
        &format!("{both} | !count-differs at 28: FTS-1 says 3 messages, but there are 2"),
    );
}

#[test]
fn what_was_opened_must_be_closed() {
    let one = r"MSH|^~\\&|A\r";
    let missing = |name: &str, at: u32| {
        format!(
            "{one} | !trailer-missing at {at}: the input ends without the `{name}` that its header asks for"
        )
    };
    check(Format::Hl7, format!("BHS|^\r{MSH}"), &missing("BTS", 17));
    check(Format::Hl7, format!("FHS|^\r{MSH}"), &missing("FTS", 17));
    let misplaced = |name: &str, at: u32| {
        format!(
            "!batch-order at {at}: `{name}` stands where it cannot: a header or trailer before it is missing"
        )
    };
    check(Format::Hl7, "BTS|0\r", &misplaced("BTS", 0));
    check(Format::Hl7, "BHS|\rBHS|\r", &misplaced("BHS", 5));
    check(Format::Hl7, "FHS|\rFHS|\r", &misplaced("FHS", 5));
    check(Format::Hl7, "FHS|\rBHS|\rFTS|1\r", &misplaced("FTS", 10));
}

#[test]
fn elements_of_an_array_are_exact_slices() {
    check(
        Format::JsonArray,
        " [ {\"a\" : 1} ,\n-1.5e+3, \"x]\",[ ],null ] \n",
        r#"{\"a\" : 1} | -1.5e+3 | \"x]\" | [ ] | null"#,
    );
    check(Format::JsonArray, "[]", "");
    check(Format::JsonArray, b"\xEF\xBB\xBF[1]", "1");
    check(Format::JsonArray, "{}", "!not-an-array at 0: expected a JSON array");
    check(Format::JsonArray, "", "!invalid-json at 0: the array is not complete");
    check(Format::JsonArray, "[1,]", "1 | !invalid-json at 3: expected a value");
    check(Format::JsonArray, "[1 2]", "1 | !invalid-json at 3: expected `,` or `]`");
    check(Format::JsonArray, "[1,{\"a\" 2}]", "1 | !invalid-json at 8: expected `:`");
    check(Format::JsonArray, "[1]]", "1 | !invalid-json at 3: expected nothing behind the array");
    check(Format::JsonArray, "[1,2", "1 | !invalid-json at 4: the array is not complete");
    check(Format::JsonArray, b"[\"\xC3\"]", "!invalid-json at 3: the text is not UTF-8");
}

#[test]
fn each_line_of_json_lines_is_one_value() {
    check(Format::Ndjson, "{\"a\":1}\r\n\n 2 \n\"x\"", r#"{\"a\":1} | 2 | \"x\""#);
    check(Format::Ndjson, "", "");
    check(Format::Ndjson, "1 2\n", "1 | !invalid-json at 2: expected the end of the line");
    check(Format::Ndjson, "{\"a\":\n1}", "!invalid-json at 5: the value is not complete");
    check(Format::Ndjson, "1\n{", "1 | !invalid-json at 3: the value is not complete");
}

#[test]
fn other_character_sets_are_told() {
    for format in FORMATS {
        for start in [b"\xFF\xFEa\0", b"\xFE\xFF\0a"] {
            check(
                format,
                start,
                "!wrong-charset at 0: the input is UTF-16 or UTF-32; only character sets that contain ASCII can be split",
            );
        }
    }
}

#[test]
fn a_record_above_the_limit_breaks_the_input_and_one_at_the_limit_does_not() {
    let limits = Limits { record_bytes_max: 1000, ..Limits::default() };
    let filler = |len: usize| "x".repeat(len);
    let inputs = [
        (Format::Lines, [filler(1000), filler(1001)].map(|record| format!("a\r\n{record}\r\n"))),
        (CSV, [filler(1000), filler(1001)].map(|record| format!("a\r\n{record}\r\n"))),
        (CSV, [filler(998), filler(999)].map(|record| format!("a\r\n\"{record}\""))),
        (Format::Hl7, [filler(996), filler(997)].map(|record| format!("MSH|\rMSH|{record}"))),
        (Format::JsonArray, [filler(998), filler(999)].map(|record| format!("[1,\"{record}\"]"))),
        (Format::Ndjson, [filler(998), filler(999)].map(|record| format!("1\n\"{record}\"\n"))),
    ];
    for (format, [fits, too_long]) in inputs {
        for piece in [1, 7, 100_000] {
            let run = |input: &str| {
                let mut pieces = std::iter::repeat(piece);
                split_in(format, limits, Mark::default(), input.as_bytes(), &mut pieces)
            };
            let (records, broken) = run(&fits);
            assert_eq!((records.len(), broken), (2, None), "{format:?}");
            let (records, broken) = run(&too_long);
            let broken = broken.unwrap();
            assert_eq!((records.len(), broken.code), (1, "record-too-large"), "{format:?}");
            assert_eq!(broken.text, "a record is longer than 1000 bytes");
        }
    }
}

#[test]
fn which_fault_is_told_does_not_depend_on_the_pieces() {
    let limits = Limits { record_bytes_max: 16, ..Limits::default() };
    for (format, input) in
        [(Format::JsonArray, "[{\"a\":[2,-2.5e2,2.5l]"), (Format::Ndjson, "{\"a\":[2,-2.5e2,2.5l]\n")]
    {
        for piece in [1, 5, 100] {
            let mut pieces = std::iter::repeat(piece);
            let broken = split_in(format, limits, Mark::default(), input.as_bytes(), &mut pieces).1.unwrap();
            assert_eq!(broken.code, "record-too-large");
        }
    }
}

#[test]
fn json_is_nested_up_to_the_limit() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let limits = Limits { depth_max: 5, ..Limits::default() };
    let run = |format, input: String| {
        let (records, broken) =
            split_in(format, limits, Mark::default(), input.as_bytes(), &mut std::iter::empty());
        (records.len(), broken.map(|broken| broken.text))
    };
    let too_deep = Some("values are nested too deep".to_owned());
    for format in [Format::JsonArray, Format::Ndjson] {
        assert_eq!(run(format, nested(5)), (1, None));
        assert_eq!(run(format, nested(6)), (0, too_deep.clone()));
    }
    assert!(split(Format::Ndjson, nested(128).as_bytes()).1.is_none());
    assert!(split(Format::Ndjson, nested(129).as_bytes()).1.is_some());
}
