//! Addresses: one mailbox, with or without a name before it.
//!
//! What could end a command, begin another recipient or a header is no address. Those outside
//! ASCII would need an extension that few servers have.

/// Bytes before the `@`, and of all of it.
const LOCAL_BYTES_MAX: usize = 64;
const ADDRESS_BYTES_MAX: usize = 254;

/// One mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub name: Option<String>,
    /// Such as `lab@hospital.example`.
    pub mailbox: String,
}

impl Address {
    /// Reads `lab@hospital.example` or `The laboratory <lab@hospital.example>`; none: it is none.
    pub fn parse(text: &str) -> Option<Address> {
        if text.chars().any(char::is_control) {
            return None;
        }
        let text = text.trim();
        let (name, mailbox) = match text.strip_suffix('>') {
            None => (None, text),
            Some(inside) => {
                let (name, mailbox) = inside.rsplit_once('<')?;
                (Some(name.trim().trim_matches('"').to_owned()).filter(|name| !name.is_empty()), mailbox)
            }
        };
        is_mailbox(mailbox).then(|| Address { name, mailbox: mailbox.to_owned() })
    }

    /// Behind the `@`.
    pub fn domain(&self) -> &str {
        self.mailbox.rsplit_once('@').map_or("localhost", |(_, domain)| domain)
    }
}

fn is_mailbox(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    text.len() <= ADDRESS_BYTES_MAX
        && local.len() <= LOCAL_BYTES_MAX
        && local.split('.').all(|atom| !atom.is_empty() && atom.bytes().all(is_atom_byte))
        && is_domain(domain)
}

fn is_atom_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte)
}

/// A name, or an address in brackets.
pub(crate) fn is_domain(text: &str) -> bool {
    if let Some(inside) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return !inside.is_empty()
            && inside.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:".contains(&byte));
    }
    text.len() <= 253
        && text.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match Address::parse(text) {
            None => "none".into(),
            Some(Address { name: None, mailbox }) => mailbox,
            Some(Address { name: Some(name), mailbox }) => format!("{name} | {mailbox}"),
        }
    }

    #[test]
    fn a_mailbox_is_read_with_and_without_a_name() {
        assert_eq!(shown("lab@hospital.example"), "lab@hospital.example");
        assert_eq!(shown(" Labor für Blut <lab+a@h.example> "), "Labor für Blut | lab+a@h.example");
        assert_eq!(shown("\"Lab, main\" <lab@[192.0.2.1]>"), "Lab, main | lab@[192.0.2.1]");
        assert_eq!(shown("<lab@h>"), "lab@h");
    }

    #[test]
    fn what_could_be_more_than_one_mailbox_is_none() {
        let long = format!("{}@h", "a".repeat(65));
        for text in [
            "",
            "lab",
            "@h",
            "lab@",
            "a@b, c@d",
            "a@b>\r\nRCPT TO:<c@d",
            "a@b\n",
            "a b@c",
            "a@b c",
            "<a@b> c",
            "a@b> SIZE=1",
            "ä@b",
            "a@bä",
            "a..b@c",
            ".a@c",
            "a@-b",
            "a@b..c",
            "a@<b>",
            &long,
        ] {
            assert_eq!(shown(text), "none", "{text}");
        }
    }
}
