//! HL7 acknowledgements: reading those we get, writing those we give.

/// What a receiver says of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// MSA-1.
    pub code: String,
    /// MSA-2, byte for byte.
    pub control_id: Vec<u8>,
    /// MSA-3.
    pub text: String,
}

/// What a code means for the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// AA, CA
    Accepted,
    /// AE, CE: send it again.
    Again,
    /// AR, CR: do not.
    Rejected,
    /// No code of the standard.
    Unknown,
}

impl Acknowledgement {
    /// Reads a message with an MSA segment.
    pub fn read(message: &[u8]) -> Option<Acknowledgement> {
        let separator = *message.strip_prefix(b"MSH")?.first()?;
        let mut segments = message.split(|byte| *byte == b'\r' || *byte == b'\n');
        let segment = segments.find(|segment| segment.starts_with(b"MSA"))?;
        let mut fields = segment.split(|byte| *byte == separator).skip(1);
        let code = String::from_utf8_lossy(fields.next()?).into_owned();
        let control_id = fields.next()?.to_vec();
        let text = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
        Some(Acknowledgement { code, control_id, text })
    }

    pub fn meaning(&self) -> Meaning {
        match self.code.as_str() {
            "AA" | "CA" => Meaning::Accepted,
            "AE" | "CE" => Meaning::Again,
            "AR" | "CR" => Meaning::Rejected,
            _ => Meaning::Unknown,
        }
    }
}

/// Writes the acknowledgement of a message under its own separator; none if it has no header.
pub fn write(message: &[u8], code: &str, text: &str) -> Option<Vec<u8>> {
    let header = message.split(|byte| *byte == b'\r' || *byte == b'\n').next()?;
    let separator = *header.strip_prefix(b"MSH")?.first()?;
    let fields: Vec<&[u8]> = header.split(|byte| *byte == separator).collect();
    let field = |at: usize| fields.get(at).copied().unwrap_or_default();
    // Split at the separator, MSH-n is part n - 1.
    let (encoding, control_id, version) = (field(1), field(9), field(11));
    let parts: [&[u8]; 11] =
        [b"MSH", encoding, field(4), field(5), field(2), field(3), field(6), b"", b"ACK", control_id, b"P"];
    let mut acknowledgement = parts.join(&separator);
    acknowledgement.push(separator);
    acknowledgement.extend_from_slice(version);
    acknowledgement.push(b'\r');
    acknowledgement
        .extend_from_slice(&[b"MSA", code.as_bytes(), control_id, text.as_bytes()].join(&separator));
    acknowledgement.push(b'\r');
    Some(acknowledgement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_echoes_the_control_id_under_the_same_separator() {
        let message = b"MSH#^~\\&#A#B#C#D#2026##ORU^R01#id^ 1#P#2.5\rPID#1\r";
        let written = write(message, "AE", "later").unwrap();
        assert!(written.starts_with(b"MSH#^~\\&#C#D#A#B#2026##ACK#id^ 1#P#2.5\rMSA#AE#id^ 1#later\r"));
        let read = Acknowledgement::read(&written).unwrap();
        assert_eq!(
            (read.meaning(), read.control_id.as_slice(), read.text.as_str()),
            (Meaning::Again, &b"id^ 1"[..], "later")
        );
        assert_eq!(write(b"hello", "AA", ""), None);
        assert_eq!(Acknowledgement::read(b"MSH|^~\\&|\rMSA|AA\r"), None);
    }
}
