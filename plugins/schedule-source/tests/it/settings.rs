//! Settings that are refused, each with a sentence.

use portway_schedule_source::ScheduleSource;
use portway_sdk::testing::{self, PollHost};

fn complaint(settings: &str) -> String {
    testing::reset();
    testing::set_time(1_772_280_000_000);
    PollHost::<ScheduleSource>::open(settings).map_or_else(|failure| failure.text, |_| "fine".into())
}

#[test]
fn what_cannot_be_a_schedule_is_refused() {
    let cases = [
        ("{}", "set either `every` or `cron`"),
        (r#"{"every":"1m","cron":"* * * * *"}"#, "set either `every` or `cron`"),
        (r#"{"every":"0s"}"#, "setting `every`: must be from `1s` to `366d`"),
        (r#"{"every":"500ms"}"#, "setting `every`: must be from `1s` to `366d`"),
        (r#"{"every":"367d"}"#, "setting `every`: must be from `1s` to `366d`"),
        (r#"{"every":"often"}"#, "setting `every`: `often` is no duration"),
        (r#"{"cron":"* * * *"}"#, "setting `cron`: `* * * *` is no cron pattern"),
        (r#"{"cron":"61 * * * *"}"#, "setting `cron`: `61 * * * *` is no cron pattern"),
        (r#"{"cron":"0 0 30 2 *"}"#, "setting `cron`: `0 0 30 2 *` never comes true"),
        (r#"{"cron":"0 0 * * * * 2020"}"#, "setting `cron`: `0 0 * * * * 2020` is no cron pattern"),
        (r#"{"cron":"0 0 * * *","time_zone":"Berlin"}"#, "setting `time_zone`: `Berlin` is no time zone"),
        (r#"{"every":"1m","body":"{id}"}"#, "setting `body`: `{id}` is no placeholder here"),
        (r#"{"every":"1m","at":"noon"}"#, "setting `at`: unknown field"),
    ];
    for (settings, expected) in cases {
        let text = complaint(settings);
        assert!(text.starts_with(expected), "{settings}: {text}");
    }
    for settings in [r#"{"every":"1s"}"#, r#"{"every":"366d"}"#, r#"{"cron":"*/5 0 6 * * MON-FRI"}"#] {
        assert_eq!(complaint(settings), "fine");
    }
    assert!(complaint(&format!(r#"{{"cron":"{}"}}"#, "1,".repeat(200))).contains("longer than 256 bytes"));
    assert!(
        complaint(&format!(r#"{{"every":"1m","body":"{}"}}"#, "x".repeat(65_537)))
            .contains("longer than 65536")
    );
}
