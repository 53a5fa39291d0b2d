//! Values of messages in URLs.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::{Call, Message, Problem, ResultExt, Template};

impl Template {
    /// Fills it as a part of a URL's path, where values of the message are escaped. One that would
    /// change which path is meant quarantines the message.
    pub fn render_path(&self, call: &Call, message: &Message) -> Result<Cow<'_, str>, Problem> {
        let mut misfit = None;
        let path = self.render(call, message, |path, value| {
            if !fits_path(value) {
                misfit = Some(value.to_owned());
            }
            push_escaped(path, value);
        });
        let path = path.quarantine("no-path")?;
        match misfit {
            None => Ok(path),
            Some(value) => Err(Problem::quarantine(
                "no-path",
                format!("`{}` of the message cannot be a part of a path", value.escape_debug()),
            )),
        }
    }

    /// Fills it as the query of a URL, where values of the message are escaped.
    pub fn render_query(&self, call: &Call, message: &Message) -> Result<Cow<'_, str>, Problem> {
        self.render(call, message, push_escaped).quarantine("no-path")
    }
}

/// A value with these would change which path is meant, also behind escapes: the host
/// refuses that, and rightly blames the settings. Here it is the message that is odd.
fn fits_path(value: &str) -> bool {
    !value.contains(['/', '\\', '%']) && value != "." && value != ".."
}

/// Everything but the unreserved characters, escaped.
fn push_escaped(text: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Attributes, Body};

    fn message(key: &str) -> Message {
        let body = Body::Inline(Vec::new());
        let (attributes, key) = (Attributes::new(), Some(key.to_owned()));
        Message { id: 7, received_ms: 0, attempt: 1, key, attributes, body }
    }

    #[test]
    fn values_are_escaped_and_cannot_change_the_path() {
        let call = Call::new("store", false, Duration::from_secs(1));
        let template: Template = "/a/{key}".parse().unwrap();
        let path = |key: &str| template.render_path(&call, &message(key)).map(Cow::into_owned).ok();
        assert_eq!(path("a b-ü~").as_deref(), Some("/a/a%20b-%C3%BC~"));
        for misfit in ["a/b", "..", ".", "%2f", "a\\b", ""] {
            assert_eq!(path(misfit), None, "{misfit}");
        }
        assert_eq!(template.render_query(&call, &message("a/b")).ok().as_deref(), Some("/a/a%2Fb"));
    }
}
