//! Every folder of `cases/`: `before/` is what the granted folder holds, `after/` what it
//! must hold then, `verdicts.txt` what the sender says.

use file_sender::FileSender;
use portway_sdk::testing::{self, Case, describe_sends};
use portway_sdk::{Sender, Trouble};

#[test]
fn every_case_ends_as_written() {
    for case in Case::all(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")) {
        run(case);
    }
}

fn run(mut case: Case) {
    testing::reset();
    testing::grant_folder("folder");
    for (path, bytes) in case.files("before") {
        testing::put_file("folder", &path, &bytes);
    }
    let messages = std::mem::take(&mut case.messages);
    let opened = case.settings().and_then(|settings| FileSender::open(settings, &case.context()));
    let result = match opened {
        Ok(mut sender) => sender.send_batch(&case.call, messages),
        Err(failure) => Err(Trouble::Misconfigured(failure)),
    };
    case.expect("verdicts.txt", describe_sends(&result));
    let after = testing::paths("folder");
    for path in &after {
        case.expect(&format!("after/{path}"), testing::file("folder", path).unwrap());
    }
    let expected: Vec<String> = case.files("after").into_keys().collect();
    assert_eq!(after, expected, "files of case `{}`", case.name);
}
