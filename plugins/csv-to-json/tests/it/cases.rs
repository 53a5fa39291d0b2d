//! The folder `cases/`: a message, under which settings, and what must come of it.

use portway_csv_to_json::CsvToJson;
use portway_sdk::testing::{Case, describe_transforms};

#[test]
fn every_case_ends_as_written() {
    for mut case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        let verdicts = case.transform::<CsvToJson>();
        case.expect("expected.txt", describe_transforms(&verdicts));
    }
}
