//! One interface: a file under `interfaces/`.

use std::time::Duration;

use crate::list::words;
use crate::{DestinationSettings, Name, Place, SourceSettings};

group! {
    /// One interface. The file's name is the interface's name.
    InterfaceFile at "" in "interfaces/*.toml" {
        /// What an acknowledgement promises.
        /// `strict`: the message survives a power loss. `relaxed`: it survives the end of the process only.
        durability: Durability = Durability::Strict;
        /// How long a message is known as a duplicate of an earlier one with the same dedupe key; `"0s"`: never.
        dedupe_window: Duration = Duration::from_secs(86_400), within(Duration::ZERO, Duration::from_secs(366 * 86_400));
        /// Finished messages older than this are removed, instead of the store's own age.
        keep: Option<Duration>, within(Duration::from_secs(60), Duration::from_secs(3_650 * 86_400));
        /// Where it receives from.
        source: Option<SourceSettings>;
        /// Where it delivers.
        destination: Vec<DestinationSettings> = Vec::new();
    }
}

/// One interface, ready to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceSettings {
    pub name: Name,
    /// Its file.
    pub place: Place,
    pub durability: Durability,
    /// None: dedupe keys are not looked up.
    pub dedupe_window: Option<Duration>,
    /// None: the store's own age.
    pub keep: Option<Duration>,
    /// None: only routes lead to it.
    pub source: Option<SourceSettings>,
    pub destinations: Vec<DestinationSettings>,
}

impl InterfaceSettings {
    pub(crate) fn new(name: Name, place: Place, file: InterfaceFile) -> Self {
        InterfaceSettings {
            name,
            place,
            durability: file.durability,
            dedupe_window: (!file.dedupe_window.is_zero()).then_some(file.dedupe_window),
            keep: file.keep,
            source: file.source,
            destinations: file.destination,
        }
    }
}

/// What an acknowledgement promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    #[default]
    Strict,
    Relaxed,
}

words!(Durability { "strict" => Durability::Strict, "relaxed" => Durability::Relaxed });

#[cfg(test)]
mod tests {
    use expect_test::expect;

    fn problems(window: &str) -> String {
        crate::check_text("interfaces/t.toml", &format!("dedupe_window = {window}\n")).to_string()
    }

    #[test]
    fn a_dedupe_window_has_its_limits() {
        for window in ["\"0s\"", "\"1s\"", "\"366d\""] {
            assert_eq!(problems(window), "", "{window}");
        }
        expect![[r#"
            interfaces/t.toml:1:17: `dedupe_window` is "367d", outside its limits
              hint: write something from "0s" to "366d"
            interfaces/t.toml:1:17: `dedupe_window` is not a duration
              hint: write such as `"500ms"`, `"30s"`, `"10m"`, `"2h"` or `"30d"`
            interfaces/t.toml:1:17: `dedupe_window` is an integer, not a duration
              hint: write such as `"500ms"`, `"30s"`, `"10m"`, `"2h"` or `"30d"`"#]]
        .assert_eq(&["\"367d\"", "\"-1s\"", "60"].map(problems).join("\n"));
    }
}
