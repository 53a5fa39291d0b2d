//! How a destination retries.

use std::time::Duration;

use portway_model::RetryPolicy;

group! {
    /// How failed deliveries are tried again.
    /// The wait doubles with every failed attempt, up to the longest.
    RetrySettings at "destination.retry" in "interfaces/*.toml" {
        /// Wait after the first failed attempt.
        first_wait: Duration = Duration::from_secs(1), within(Duration::from_millis(10), Duration::from_secs(86_400));
        /// No wait is longer, whatever the other side asks for.
        longest_wait: Duration = Duration::from_secs(60), within(Duration::from_millis(10), Duration::from_secs(7 * 86_400));
        /// Part of a wait that chance takes off, in percent.
        jitter: u8 = 20, within(0, 100);
        /// Attempts before the delivery is quarantined; 0: for ever.
        attempts: u32 = 0, within(0, 1_000_000);
    }
}

impl RetrySettings {
    /// For the engine.
    pub fn policy(&self) -> RetryPolicy {
        RetryPolicy {
            first_wait: self.first_wait,
            longest_wait: self.longest_wait,
            jitter_percent: self.jitter,
            attempts_max: self.attempts,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::destination;

    #[test]
    fn the_defaults_are_those_of_the_model() {
        let destination = destination("");
        assert_eq!(destination.retry.policy(), portway_model::RetryPolicy::default());
    }

    #[test]
    fn a_guarantee_is_a_word_and_a_route_has_its_own() {
        use portway_model::Guarantee;
        assert_eq!(destination("").guarantee, Guarantee::AtLeastOnce);
        assert_eq!(destination("guarantee = \"at-most-once\"").guarantee, Guarantee::AtMostOnce);
        let text = "[[destination]]\nname = \"d\"\nroute = \"r\"\nguarantee = \"at-most-once\"\n";
        let problems = crate::check_text("interfaces/t.toml", text).to_string();
        assert!(problems.contains("a route delivers exactly once"), "{problems}");
        let text = "[[destination]]\nname = \"d\"\nroute = \"r\"\nsave_output = true\n";
        let problems = crate::check_text("interfaces/t.toml", text).to_string();
        assert!(problems.contains("`save_output` keeps nothing"), "{problems}");
    }

    #[test]
    fn a_retry_table_is_read() {
        let destination = destination("retry = { first_wait = \"5s\", attempts = 3 }");
        let policy = destination.retry.policy();
        assert_eq!((policy.first_wait.as_secs(), policy.attempts_max, policy.jitter_percent), (5, 3, 20));
    }
}
