//! What an acknowledgement says of the message that was sent.

use portway_hl7::Message;

/// MSA-1, of tables 0008 and 0155.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// AA: the application has it.
    ApplicationAccept,
    /// CA: the receiver has it, the application may still speak.
    CommitAccept,
    /// AE, CE: not now.
    Error,
    /// AR, CR: never.
    Reject,
}

/// An acknowledgement of the message that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    pub code: Code,
    /// MSA-1 as written.
    pub written: String,
    /// What MSA and ERR say to people.
    pub text: String,
}

/// Why bytes are no acknowledgement of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOurs {
    /// Not an acknowledgement at all.
    Unreadable(String),
    /// Of another message: one that was given up on, or one that somebody else sent.
    Foreign { control_id: String },
}

impl Acknowledgement {
    /// Reads an acknowledgement under its own delimiters. MSA-2 must be the control id that
    /// was sent, byte for byte.
    pub fn read(bytes: &[u8], control_id: &[u8]) -> Result<Acknowledgement, NotOurs> {
        let message = Message::parse(bytes).map_err(|error| NotOurs::Unreadable(error.to_string()))?;
        let Some(msa) = message.segment("MSA", 1) else {
            return Err(NotOurs::Unreadable("it has no segment `MSA`".into()));
        };
        let field = |number| msa.field(number).map_or(&b""[..], |field| field.raw());
        if field(2) != control_id {
            return Err(NotOurs::Foreign { control_id: shown(field(2)) });
        }
        let written = shown(field(1));
        let code = match written.trim() {
            "AA" => Code::ApplicationAccept,
            "CA" => Code::CommitAccept,
            "AE" | "CE" => Code::Error,
            "AR" | "CR" => Code::Reject,
            _ => return Err(NotOurs::Unreadable(format!("MSA-1 is `{written}`"))),
        };
        Ok(Acknowledgement { code, written: written.trim().to_owned(), text: said(&message) })
    }
}

/// MSA-3, and of the first ERR the code, the diagnosis and the text for the user.
fn said(message: &Message<'_>) -> String {
    let places = [("MSA", 3), ("ERR", 3), ("ERR", 7), ("ERR", 8)];
    let mut parts: Vec<String> = Vec::new();
    for (segment, number) in places {
        let segment = message.segment(segment, 1);
        let Some(field) = segment.and_then(|segment| segment.field(number)) else { continue };
        let text = shown(field.raw());
        if !text.is_empty() && !parts.contains(&text) {
            parts.push(text);
        }
    }
    parts.join("; ")
}

/// For people: what is no UTF-8 is replaced.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> String {
        match Acknowledgement::read(bytes, b"42") {
            Ok(ack) => format!("{:?} {} [{}]", ack.code, ack.written, ack.text),
            Err(not_ours) => format!("{not_ours:?}"),
        }
    }

    #[test]
    fn the_acknowledgements_own_delimiters_count() {
        assert_eq!(read(b"MSH|^~\\&|A\rMSA|AA|42\r"), "ApplicationAccept AA []");
        assert_eq!(read(b"MSH#^~\\&#A\rMSA#CA#42#fine"), "CommitAccept CA [fine]");
        assert_eq!(
            read(b"MSH|^~\\&|A\nMSA|AE|42|no\nERR|||207^internal||||disk|call us\n"),
            "Error AE [no; 207^internal; disk; call us]"
        );
        assert_eq!(read(b"MSH|^~\\&|A\rMSA|CR|42"), "Reject CR []");
    }

    #[test]
    fn only_the_same_bytes_are_the_same_control_id() {
        assert_eq!(read(b"MSH|^~\\&|A\rMSA|AA|42 \r"), "Foreign { control_id: \"42\" }");
        assert_eq!(read(b"MSH|^~\\&|A\rMSA|AA|42^\r"), "Foreign { control_id: \"42^\" }");
        assert_eq!(read(b"MSH|^~\\&|A\rMSA|AA\r"), "Foreign { control_id: \"\" }");
    }

    #[test]
    fn what_is_none_is_unreadable() {
        assert_eq!(read(b""), "Unreadable(\"there is nothing but blanks\")");
        assert_eq!(read(b"OK"), "Unreadable(\"the first segment is not `MSH`\")");
        assert_eq!(read(b"MSH|^~\\&|A\r"), "Unreadable(\"it has no segment `MSA`\")");
        assert_eq!(read(b"MSH|^~\\&|A\rMSA|XX|42"), "Unreadable(\"MSA-1 is `XX`\")");
        assert_eq!(read(b"MSH|^~\\&|A\rMSA||42"), "Unreadable(\"MSA-1 is ``\")");
    }
}
