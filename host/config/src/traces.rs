//! Traces of messages, and the collector they go to.

use std::collections::BTreeMap;
use std::time::Duration;

use portway_model::code;
use serde_json::Value as Json;
use url::Url;

use crate::reader::{Node, Reader};
use crate::schema::{self, Definitions};
use crate::value::{Value, read_form};
use crate::{Addresses, At, Name, Problem, ProjectPath, Secret};

group! {
    /// Traces of messages, sent to a collector of OpenTelemetry over OTLP/HTTP.
    /// Without this table there are none, and nothing is spent on them.
    TraceSettings at "traces" in "portway.toml" {
        /// Where the collector takes OTLP over HTTP, such as `http://localhost:4318`; traces go to `/v1/traces` below it.
        endpoint: At<Url>, marked(Env);
        /// The part of all messages that is traced, such as `"100%"` or `"0.5%"`.
        /// What came with a `traceparent` is traced if its sender says so, whatever stands here.
        sample: SampleShare = SampleShare::ALL;
        /// What the collector calls this engine.
        service_name: String = "portway".to_owned(), marked(Env);
        /// Headers of each request to the collector, such as a key.
        headers: BTreeMap<Name, Secret> = BTreeMap::new(), marked(Secret);
        /// PEM file with the authorities to trust instead of the well-known ones.
        tls_roots: Option<At<ProjectPath>>;
        /// Which addresses the collector's name may resolve to, as for a grant of type `http`.
        addresses: Addresses = Addresses::Operator;
        /// Whether the `traceparent` of a request to an `http` source decides which trace its messages belong to.
        /// Say no where strangers send: they could have everything traced.
        incoming: bool = true;
        /// Whether requests of senders such as `http` carry a `traceparent`.
        outgoing: bool = false;
        /// Spans that wait to be sent; what comes beyond is lost, and counted.
        queue_max: u32 = 8_192, within(512, 1_048_576);
        /// How long a span may wait for others to be sent with.
        interval: Duration = Duration::from_secs(1), within(Duration::from_millis(50), Duration::from_secs(60));
        /// Time for one request to the collector.
        timeout: Duration = Duration::from_secs(10), within(Duration::from_millis(100), Duration::from_secs(60));
    }
}

/// Headers that every request to a collector has already.
const TAKEN: [&str; 5] = ["connection", "content-length", "content-type", "host", "transfer-encoding"];

impl TraceSettings {
    /// What the options do not say of themselves.
    pub(crate) fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let place = &self.endpoint.place;
        if self.endpoint.value.query().is_some() {
            let text = "`endpoint` has a query, which no collector is asked with".to_owned();
            problems
                .push(Problem::new(place.clone(), code::BAD_VALUE, text).hint("put a key into `headers`"));
        }
        for name in self.headers.keys().filter(|name| TAKEN.contains(&name.as_str())) {
            let text = format!("the header `{name}` of `traces` is the host's");
            problems.push(Problem::new(place.clone(), code::BAD_VALUE, text).hint("take it out"));
        }
        problems
    }
}

/// A part of something, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleShare(u32);

impl SampleShare {
    pub const ALL: SampleShare = SampleShare(1_000_000);
    const DIGITS: usize = 4;

    pub fn millionths(self) -> u32 {
        self.0
    }

    /// Per cent, with at most four digits behind the point.
    fn parse(text: &str) -> Option<SampleShare> {
        let number = text.strip_suffix('%')?;
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || part.len() > Self::DIGITS {
            return None;
        }
        let part: u32 = format!("{part:0<4}").parse().ok()?;
        let share = whole.parse::<u32>().ok()?.checked_mul(10_000)?.checked_add(part)?;
        (share <= Self::ALL.0).then_some(SampleShare(share))
    }
}

impl Value for SampleShare {
    fn type_name() -> String {
        "share".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let hint = "write from `\"0%\"` to `\"100%\"`, such as `\"10%\"` or `\"0.5%\"`";
        read_form(node, reader, "a share", hint, SampleShare::parse)
    }

    fn schema(_definitions: &mut Definitions) -> Json {
        schema::form("^[0-9]{1,3}([.][0-9]{1,4})?%$")
    }

    fn show(&self) -> String {
        let (whole, part) = (self.0 / 10_000, format!("{:04}", self.0 % 10_000));
        match part.trim_end_matches('0') {
            "" => format!("\"{whole}%\""),
            part => format!("\"{whole}.{part}%\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_reads_back_as_it_is_shown() {
        for (text, millionths) in
            [("100%", 1_000_000), ("0%", 0), ("0.5%", 5_000), ("12.25%", 122_500), ("0.0001%", 1)]
        {
            let share = SampleShare::parse(text).unwrap();
            assert_eq!((share.millionths(), share.show()), (millionths, format!("\"{text}\"")));
        }
        for bad in
            ["", "%", "10", "101%", "100.0001%", "-1%", "1.%", ".5%", "0.00001%", "1e2%", "99999999999%"]
        {
            assert_eq!(SampleShare::parse(bad), None, "{bad}");
        }
    }
}
