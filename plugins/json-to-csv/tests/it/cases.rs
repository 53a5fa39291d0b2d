//! The folder `cases/`: a message, under which settings, and what must come of it.

use portway_json_to_csv::JsonToCsv;
use portway_sdk::testing::{Case, describe_transforms};

#[test]
fn every_case_ends_as_written() {
    for mut case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        let verdicts = case.transform::<JsonToCsv>();
        case.expect("expected.txt", describe_transforms(&verdicts));
    }
}
