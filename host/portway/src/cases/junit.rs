//! What came of test cases, in the XML that build servers read.

use std::fmt::Write;

use super::{CaseReport, CaseResult};

/// One suite for each interface.
pub fn to_xml(reports: &[CaseReport]) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(xml, "<testsuites name=\"portway\"{}>", counts(reports));
    let mut rest = reports;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|report| report.interface == first.interface).count();
        let (suite, after) = rest.split_at(count);
        let _ = writeln!(xml, "  <testsuite name=\"{}\"{}>", escape(&first.interface), counts(suite));
        suite.iter().for_each(|report| write_case(&mut xml, report));
        xml.push_str("  </testsuite>\n");
        rest = after;
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn counts(reports: &[CaseReport]) -> String {
    let count = |result| reports.iter().filter(|report| report.result == result).count();
    let took: u64 = reports.iter().map(|report| report.took_ms).sum();
    let (failures, errors) = (count(CaseResult::Differs), count(CaseResult::Broken));
    format!(
        " tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{}\"",
        reports.len(),
        seconds(took)
    )
}

fn write_case(xml: &mut String, report: &CaseReport) {
    let (interface, case) = (escape(&report.interface), escape(&report.case));
    let time = seconds(report.took_ms);
    let _ = write!(xml, "    <testcase classname=\"{interface}\" name=\"{case}\" time=\"{time}\"");
    match report.result {
        CaseResult::Passed | CaseResult::Updated => xml.push_str("/>\n"),
        CaseResult::Differs => {
            let files: Vec<&str> = report.differences.iter().map(|one| one.file.as_str()).collect();
            let message = escape(&format!("not as expected: {}", files.join(", ")));
            let _ = write!(xml, ">\n      <failure message=\"{message}\">");
            for difference in &report.differences {
                let _ = write!(xml, "{}\n{}", escape(&difference.file), escape(&difference.diff));
            }
            xml.push_str("</failure>\n    </testcase>\n");
        }
        CaseResult::Broken => {
            let message = escape(report.error.as_deref().unwrap_or_default());
            let _ = write!(xml, ">\n      <error message=\"{message}\"/>\n    </testcase>\n");
        }
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1_000, milliseconds % 1_000)
}

/// Characters that XML cannot hold are replaced, whatever a message held.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push('\t'),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            character if character.is_control() => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::cases::Difference;

    #[test]
    fn failures_and_errors_stand_in_their_suites() {
        let report = |interface: &str, result, differences, error: Option<&str>| CaseReport {
            interface: interface.into(),
            case: "one".into(),
            result,
            differences,
            error: error.map(str::to_owned),
            took_ms: 1_005,
        };
        let difference = Difference { file: "api/output.json".into(), diff: "-<a>\n+\u{1b}\n".into() };
        let reports = [
            report("lab", CaseResult::Passed, Vec::new(), None),
            report("lab", CaseResult::Differs, vec![difference], None),
            report("web", CaseResult::Broken, Vec::new(), Some("there is no \"input\"")),
        ];
        expect![[r#"
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="portway" tests="3" failures="1" errors="1" time="3.015">
              <testsuite name="lab" tests="2" failures="1" errors="0" time="2.010">
                <testcase classname="lab" name="one" time="1.005"/>
                <testcase classname="lab" name="one" time="1.005">
                  <failure message="not as expected: api/output.json">api/output.json
            -&lt;a&gt;&#10;+�&#10;</failure>
                </testcase>
              </testsuite>
              <testsuite name="web" tests="1" failures="0" errors="1" time="1.005">
                <testcase classname="web" name="one" time="1.005">
                  <error message="there is no &quot;input&quot;"/>
                </testcase>
              </testsuite>
            </testsuites>
        "#]]
        .assert_eq(&to_xml(&reports));
    }
}
