//! Ids of traces and spans, and the header `traceparent` of W3C Trace Context that carries them.

use std::fmt;

/// Bytes of a header of the version that is known.
const LENGTH: usize = 55;
/// The flag that says that the caller records the trace.
const SAMPLED: u8 = 1;

/// Never all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub(crate) [u8; 16]);

/// Never all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub(crate) [u8; 8]);

/// Which trace something belongs to, which span it comes from, and whether that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traceparent {
    pub trace: TraceId,
    pub span: SpanId,
    pub sampled: bool,
}

impl TraceId {
    /// A new one.
    pub fn random() -> TraceId {
        TraceId::new(rand::random())
    }

    pub(crate) fn new(bytes: [u8; 16]) -> TraceId {
        TraceId(if bytes == [0; 16] { [1; 16] } else { bytes })
    }

    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    /// A new one.
    pub fn random() -> SpanId {
        SpanId::new(rand::random())
    }

    pub(crate) fn new(bytes: [u8; 8]) -> SpanId {
        SpanId(if bytes == [0; 8] { [1; 8] } else { bytes })
    }

    pub fn bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl Traceparent {
    /// None: it is no such header. Of a version that is not known, what all versions have is read.
    pub fn parse(text: &str) -> Option<Traceparent> {
        let (known, rest) = text.split_at_checked(LENGTH)?;
        let mut fields = known.split('-');
        let [version] = hex::<1>(fields.next()?)?;
        let trace = hex::<16>(fields.next()?)?;
        let span = hex::<8>(fields.next()?)?;
        let [flags] = hex::<1>(fields.next()?)?;
        let fits = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let is_known = fits && trace != [0; 16] && span != [0; 8] && fields.next().is_none();
        is_known.then_some(Traceparent {
            trace: TraceId(trace),
            span: SpanId(span),
            sampled: flags & SAMPLED != 0,
        })
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", u8::from(self.sampled))
    }
}

/// Exactly so many bytes, in lower case as the header has to be.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_reads_back_as_it_was_written() {
        let parent = Traceparent::parse(GOOD).unwrap();
        assert!(parent.sampled);
        assert_eq!(parent.to_string(), GOOD);
        let later = format!("cc{}-what-will-be", &GOOD[2..]);
        assert_eq!(Traceparent::parse(&later), Some(parent), "a version that is not known");
    }

    #[test]
    fn what_is_no_header_is_none() {
        let bad = [
            "",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
            "00-4bf92f3577b34da6a3ce929d0e0e47-3600f067aa0ba902b7-01xx",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é",
        ];
        for text in bad {
            assert_eq!(Traceparent::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_be_refused(text in ".{0,80}") {
            let _ = Traceparent::parse(&text);
        }

        #[test]
        fn every_id_survives_the_header(trace in any::<[u8; 16]>(), span in any::<[u8; 8]>(), sampled in any::<bool>()) {
            let parent = Traceparent { trace: TraceId::new(trace), span: SpanId::new(span), sampled };
            prop_assert_eq!(Traceparent::parse(&parent.to_string()), Some(parent));
        }
    }
}
