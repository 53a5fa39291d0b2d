//! What a peer that does not speak MLLP says first.

/// What the first bytes of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Greeting {
    Tls,
    Http,
    /// Anything else.
    Unknown,
    /// More bytes are needed to know.
    Undecided,
}

const METHODS: [&[u8]; 9] =
    [b"GET ", b"PUT ", b"POST ", b"HEAD ", b"PATCH ", b"TRACE ", b"DELETE ", b"OPTIONS ", b"PRI * HTTP"];

/// Recognises them as soon as they can be told from anything else.
pub(crate) fn recognise(start: &[u8]) -> Greeting {
    match start {
        // A handshake record of SSL 3.0 to TLS 1.3.
        [0x16, 3, 0..=4, ..] => return Greeting::Tls,
        [] | [0x16] | [0x16, 3] => return Greeting::Undecided,
        _ => {}
    }
    if METHODS.iter().any(|method| start.starts_with(method)) {
        return Greeting::Http;
    }
    let may_become_one = METHODS.iter().any(|method| method.starts_with(start));
    if may_become_one { Greeting::Undecided } else { Greeting::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_and_http_are_recognised_as_early_as_possible() {
        assert_eq!(recognise(b"\x16\x03\x01"), Greeting::Tls);
        assert_eq!(recognise(b"\x16\x03"), Greeting::Undecided);
        assert_eq!(recognise(b"\x16\x02"), Greeting::Unknown);
        assert_eq!(recognise(b"POST"), Greeting::Undecided);
        assert_eq!(recognise(b"POST /"), Greeting::Http);
        assert_eq!(recognise(b"MSH|"), Greeting::Unknown);
        assert_eq!(recognise(b""), Greeting::Undecided);
    }
}
