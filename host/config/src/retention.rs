//! How long messages are kept: the words of it, and what became of the option `keep`.

use portway_model::{Quarantined, Tier};
use toml::de::DeValue;

use crate::duration;
use crate::list::words;

words!(Tier { "1w" => Tier::OneWeek, "3w" => Tier::ThreeWeeks, "7w" => Tier::SevenWeeks });

words!(Quarantined { "keep" => Quarantined::Keep, "purge" => Quarantined::Purge });

/// What to write instead of `keep`, which named an age of its own: the next longer one there is.
pub(crate) fn instead_of_keep(value: &DeValue<'_>) -> String {
    let age = value.as_str().and_then(duration::parse);
    let tier = age.and_then(|age| Tier::ALL.into_iter().find(|tier| tier.window() >= age));
    let tier = tier.unwrap_or(Tier::LONGEST);
    format!("write `retention = \"{tier}\"`: messages are kept for `\"1w\"`, `\"3w\"` or `\"7w\"`")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    fn check(file: &str, text: &str, wanted: Expect) {
        wanted.assert_eq(&crate::check_text(file, text).to_string());
    }

    #[test]
    fn a_project_and_its_interfaces_name_their_retention() {
        for word in ["1w", "3w", "7w"] {
            check("portway.toml", &format!("[store]\nretention = \"{word}\"\n"), expect![""]);
            let interface = format!("retention = \"{word}\"\nquarantined = \"purge\"\n");
            check("interfaces/t.toml", &interface, expect![""]);
        }
        check(
            "interfaces/t.toml",
            "retention = \"30d\"\nquarantined = true\n",
            expect![[r#"
                interfaces/t.toml:1:13: `retention` cannot be `30d`
                  hint: known are `1w`, `3w`, `7w`
                interfaces/t.toml:2:15: `quarantined` is a boolean, not a word
                  hint: write `"keep"` `"purge"`"#]],
        );
    }

    #[test]
    fn what_holds_a_lane_is_not_purged() {
        let destination = "[[destination]]\nname = \"d\"\non_quarantine = \"hold\"\nroute = \"t\"\n";
        check(
            "interfaces/t.toml",
            &format!("quarantined = \"purge\"\n{destination}"),
            expect![[r#"
                interfaces/t.toml:3:8: destination `d` holds lanes for what its interface purges
                  hint: remove `quarantined = "purge"`, or `on_quarantine = "hold"`"#]],
        );
    }

    #[test]
    fn a_project_with_keep_is_told_what_to_write_instead() {
        check(
            "portway.toml",
            "[store]\nkeep = \"30d\"\n",
            expect![[r#"
                portway.toml:2:1: unknown key `keep` in `store`
                  hint: write `retention = "7w"`: messages are kept for `"1w"`, `"3w"` or `"7w"`"#]],
        );
        check(
            "interfaces/t.toml",
            "keep = \"7d\"\n",
            expect![[r#"
                interfaces/t.toml:1:1: unknown key `keep`
                  hint: write `retention = "1w"`: messages are kept for `"1w"`, `"3w"` or `"7w"`"#]],
        );
        for (keep, tier) in [("\"1m\"", "1w"), ("\"8d\"", "3w"), ("\"3650d\"", "7w"), ("30", "7w")] {
            let problems =
                crate::check_text("portway.toml", &format!("[store]\nkeep = {keep}\n")).to_string();
            assert!(problems.contains(&format!("write `retention = \"{tier}\"`")), "{problems}");
        }
        // A key of a source that is called so is no retention.
        let problems = crate::check_text("interfaces/t.toml", "[source]\nkeep = \"30d\"\n").to_string();
        assert!(!problems.contains("retention"), "{problems}");
    }
}
