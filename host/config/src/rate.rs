//! How fast a destination is sent to.

use std::num::NonZeroU32;
use std::time::Duration;

use portway_model::{OverRate, Rate, RateLimit};

use serde_json::Value as Json;

use crate::list::words;
use crate::reader::{Node, Reader};
use crate::schema::{self, Definitions};
use crate::value::{Value, read_form};

group! {
    /// How fast a destination is sent to; without this table as fast as it takes.
    /// Every try counts, also a retry; what turns out to be filtered, or was not tried, does not.
    RateSettings at "destination.rate" in "interfaces/*.toml" {
        /// Deliveries in a unit of time.
        limit: Rate;
        /// Deliveries that may begin at once after a pause; what falls into a tenth of a second if nothing is said.
        /// It counts as no less than what falls into 10 ms.
        burst: Option<u32>, within(1, 1_000_000);
        /// What becomes of a delivery beyond the rate.
        /// `wait`: it waits for its turn, in order.
        /// `drop`: it is not sent, and filtered with the rate as its reason, also a retry or a message that was resent.
        over: OverRate = OverRate::Wait;
    }
}

words!(OverRate { "wait" => OverRate::Wait, "drop" => OverRate::Drop });

impl RateSettings {
    /// For the engine.
    pub fn limit(&self) -> RateLimit {
        let tenth = self.limit.within(Duration::from_millis(100));
        let burst = NonZeroU32::new(self.burst.unwrap_or(tenth)).unwrap_or(NonZeroU32::MIN);
        RateLimit { rate: self.limit, burst, over: self.over }
    }
}

impl Value for Rate {
    fn type_name() -> String {
        "rate".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let hint = "write such as `\"100/s\"`, `\"30/min\"`, `\"500/h\"` or `\"20/d\"`, at most 1000000";
        read_form(node, reader, "a rate", hint, Rate::parse)
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::form("^[0-9]+/(s|min|h|d)$")
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use portway_model::{OverRate, RateLimit};

    use crate::tests::destination;

    fn limit(lines: &str) -> RateLimit {
        destination(lines).rate.unwrap().limit()
    }

    #[test]
    fn a_rate_is_read_with_its_defaults() {
        assert_eq!(destination("").rate, None);
        let fast = limit("rate = { limit = \"100/s\" }");
        assert_eq!(
            (fast.rate.to_string().as_str(), fast.burst.get(), fast.over),
            ("100/s", 10, OverRate::Wait)
        );
        assert_eq!(limit("rate = { limit = \"30/min\" }").burst.get(), 1);
        let lossy = limit("rate = { limit = \"1/s\", burst = 7, over = \"drop\" }");
        assert_eq!((lossy.burst.get(), lossy.over), (7, OverRate::Drop));
    }

    #[test]
    fn a_rate_that_is_none_is_refused() {
        let problems = |lines: &str| {
            let text = format!("[[destination]]\nname = \"d\"\nroute = \"r\"\n{lines}\n");
            crate::check_text("interfaces/t.toml", &text).to_string()
        };
        let all = [
            "rate = { limit = \"fast\" }",
            "rate = { burst = 1 }",
            "rate = { limit = \"1/s\", burst = 0 }",
            "rate = { limit = \"1/s\", over = \"lose\" }",
            "rate = \"1/s\"",
        ];
        expect![[r#"
            interfaces/t.toml:4:18: `limit` is not a rate
              hint: write such as `"100/s"`, `"30/min"`, `"500/h"` or `"20/d"`, at most 1000000
            interfaces/t.toml:4:8: `destination.rate.limit` is missing
              hint: add `limit = …` (rate)
            interfaces/t.toml:4:33: `burst` is 0, outside its limits
              hint: write something from 1 to 1000000
            interfaces/t.toml:4:32: `over` cannot be `lose`
              hint: known are `wait`, `drop`
            interfaces/t.toml:4:8: `rate` is a string, not a table"#]]
        .assert_eq(&all.map(problems).join("\n"));
    }
}
