//! The mail: headers and parts made of a message, the same ones whenever it is tried again.
//!
//! Everything is seven-bit: headers as encoded words, text quoted-printable where it needs it,
//! attachments in base64, so that their bytes arrive as they are. Values that a message brings
//! may not hold control characters: a line break would begin a header of its own.

use std::collections::HashSet;

use mail_builder::MessageBuilder;
use mail_builder::headers::HeaderType;
use mail_builder::headers::address::Address as Mailbox;
use mail_builder::headers::content_type::ContentType;
use mail_builder::headers::date::Date;
use mail_builder::headers::message_id::MessageId;
use mail_builder::headers::raw::Raw;
use mail_builder::headers::text::Text;
use mail_builder::mime::{BodyPart, MimePart};
use portway_sdk::{Call, Context, Failure, Message, Problem, ResultExt, Template, fnv1a};

use crate::address::Address;
use crate::settings::{AttachmentSettings, Settings, bad};

/// Of a message; as a mail it takes about two and a half times as much memory.
pub(crate) const BODY_BYTES_MAX: u64 = 16 << 20;
const RECIPIENTS_MAX: usize = 100;
const HEADERS_MAX: usize = 50;
const HEADER_NAME_BYTES_MAX: usize = 64;
/// Characters of a value in a header.
const VALUE_CHARACTERS_MAX: usize = 2_000;

/// Headers that the sender writes itself, or that others write on the way.
const RESERVED: &[&str] = &[
    "bcc",
    "cc",
    "date",
    "dkim-signature",
    "from",
    "message-id",
    "mime-version",
    "received",
    "reply-to",
    "return-path",
    "sender",
    "subject",
    "to",
];

/// A mail and its envelope.
#[derive(Debug)]
pub(crate) struct Mail {
    pub from: String,
    pub recipients: Vec<String>,
    pub bytes: Vec<u8>,
}

/// What mails of one destination look like.
#[derive(Debug)]
pub(crate) struct MailMaker {
    from: Template,
    to: Vec<Template>,
    cc: Vec<Template>,
    bcc: Vec<Template>,
    reply_to: Option<Template>,
    subject: Template,
    headers: Vec<(String, Template)>,
    text: Option<Template>,
    attachment: Option<Attachment>,
    /// Tells mails about one message to several destinations apart.
    destination: String,
}

#[derive(Debug)]
struct Attachment {
    name: Template,
    content_type: String,
}

impl Attachment {
    fn new(settings: AttachmentSettings) -> Result<Attachment, Failure> {
        let content_type = content_type(settings.content_type)?;
        Ok(Attachment { name: template("attachment.name", &settings.name)?, content_type })
    }
}

/// The call and the message that templates are filled from.
struct Source<'a> {
    call: &'a Call,
    message: &'a Message,
}

impl MailMaker {
    pub fn new(settings: Settings, context: &Context) -> Result<MailMaker, Failure> {
        let recipients = settings.to.len() + settings.cc.len() + settings.bcc.len();
        if settings.to.is_empty() || recipients > RECIPIENTS_MAX {
            return Err(bad("to", format!("a mail has between 1 and {RECIPIENTS_MAX} recipients")));
        }
        if settings.headers.len() > HEADERS_MAX {
            return Err(bad("headers", format!("more than {HEADERS_MAX}")));
        }
        let headers = settings.headers.into_iter().map(|(name, value)| {
            let value = template("headers", &value)?;
            header_name(&name).map(|()| (name, value))
        });
        let mailboxes = |setting: &str, texts: &[String]| {
            texts.iter().map(|text| mailbox(setting, text)).collect::<Result<Vec<_>, _>>()
        };
        Ok(MailMaker {
            from: mailbox("from", &settings.from)?,
            to: mailboxes("to", &settings.to)?,
            cc: mailboxes("cc", &settings.cc)?,
            bcc: mailboxes("bcc", &settings.bcc)?,
            reply_to: settings.reply_to.as_deref().map(|text| mailbox("reply_to", text)).transpose()?,
            subject: template("subject", &settings.subject)?,
            headers: headers.collect::<Result<_, Failure>>()?,
            text: settings.text.as_deref().map(|text| template("text", text)).transpose()?,
            attachment: settings.attachment.map(Attachment::new).transpose()?,
            destination: format!(
                "{:016x}",
                fnv1a(format!("{}\0{}", context.origin, context.destination).into_bytes())
            ),
        })
    }

    /// The mail of a message.
    pub fn make(&self, call: &Call, message: &Message) -> Result<Mail, Problem> {
        if message.body.len() > BODY_BYTES_MAX {
            let text =
                format!("the message has {} bytes, a mail carries {BODY_BYTES_MAX}", message.body.len());
            return Err(Problem::quarantine("too-large", text));
        }
        let source = Source { call, message };
        let from = source.address("from", &self.from)?;
        let to = source.addresses("to", &self.to)?;
        let cc = source.addresses("cc", &self.cc)?;
        let bcc = source.addresses("bcc", &self.bcc)?;
        let seconds = i64::try_from(message.received_ms / 1_000).unwrap_or(i64::MAX);
        let mut builder = MessageBuilder::new()
            .header("Message-ID", MessageId::new(self.message_id(&source, from.domain())))
            .header("Date", Date::new(seconds))
            .header("From", shown(&from))
            .header("To", shown_list(&to));
        if !cc.is_empty() {
            builder = builder.header("Cc", shown_list(&cc));
        }
        if let Some(reply_to) = &self.reply_to {
            builder = builder.header("Reply-To", shown(&source.address("reply_to", reply_to)?));
        }
        builder = builder.header("Subject", Text::new(source.line("subject", &self.subject)?));
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("auto-submitted")) {
            builder = builder.header("Auto-Submitted", Raw::new("auto-generated"));
        }
        for (name, value) in &self.headers {
            builder = builder.header(name.clone(), Text::new(source.line(name, value)?));
        }
        let bytes = builder.body(self.body(&source)?).write_to_vec().quarantine("error")?;
        let mut known = HashSet::new();
        let recipients = to.into_iter().chain(cc).chain(bcc).map(|address| address.mailbox);
        let recipients = recipients.filter(|mailbox| known.insert(mailbox.to_ascii_lowercase())).collect();
        Ok(Mail { from: from.mailbox, recipients, bytes })
    }

    fn body<'m>(&self, source: &Source<'m>) -> Result<MimePart<'m>, Problem> {
        let text = match &self.text {
            None => None,
            Some(template) => Some(source.fill("text", template)?),
        };
        match (&self.attachment, text) {
            (None, Some(text)) => Ok(text_part(&text)),
            (None, None) => Ok(text_part(&source.message.body.text()?)),
            (Some(attachment), text) => {
                let name = source.line("attachment.name", &attachment.name)?;
                let file = bytes_part(&attachment.content_type, source.message.body.bytes().retry("body")?);
                let mut parts: Vec<MimePart<'m>> = text.iter().map(|text| text_part(text)).collect();
                parts.push(file.attachment(name));
                Ok(mixed(source, parts))
            }
        }
    }

    /// The same whenever the message is tried again, so that a receiver can tell a repetition.
    fn message_id(&self, source: &Source<'_>, domain: &str) -> String {
        let store: String = source
            .call
            .store
            .chars()
            .map(|character| if character.is_ascii_alphanumeric() { character } else { '-' })
            .collect();
        format!("{}.{}.{}@{}", source.message.id, store, self.destination, domain.trim_matches(['[', ']']))
    }
}

impl Source<'_> {
    fn fill(&self, what: &str, template: &Template) -> Result<String, Problem> {
        let filled = template.render(self.call, self.message, |text, value| text.push_str(value));
        let missing = |missing| Problem::quarantine("missing-value", format!("`{what}`: {missing}"));
        filled.map(std::borrow::Cow::into_owned).map_err(missing)
    }

    /// For a header: one line, whatever the message brings.
    fn line(&self, what: &str, template: &Template) -> Result<String, Problem> {
        let text = self.fill(what, template)?;
        if text.chars().any(char::is_control) {
            let text =
                format!("`{what}` would hold a control character, and could begin a header of its own");
            return Err(Problem::quarantine("control-character", text));
        }
        if text.chars().nth(VALUE_CHARACTERS_MAX).is_some() {
            let text = format!("`{what}` would have more than {VALUE_CHARACTERS_MAX} characters");
            return Err(Problem::quarantine("too-large", text));
        }
        Ok(text)
    }

    fn address(&self, what: &str, template: &Template) -> Result<Address, Problem> {
        let text = self.line(what, template)?;
        let none =
            || Problem::quarantine("bad-address", format!("`{what}` would be `{text}`, which is no address"));
        Address::parse(&text).ok_or_else(none)
    }

    fn addresses(&self, what: &str, templates: &[Template]) -> Result<Vec<Address>, Problem> {
        templates.iter().map(|template| self.address(what, template)).collect()
    }
}

fn template(setting: &str, text: &str) -> Result<Template, Failure> {
    text.parse().map_err(|error: portway_sdk::TemplateError| bad(setting, error))
}

/// An address; what does not depend on the message is judged at once.
fn mailbox(setting: &str, text: &str) -> Result<Template, Failure> {
    let template = template(setting, text)?;
    if template.as_literal().is_some_and(|text| Address::parse(text).is_none()) {
        return Err(bad(setting, format!("`{text}` is no address")));
    }
    Ok(template)
}

fn header_name(name: &str) -> Result<(), Failure> {
    let lower = name.to_ascii_lowercase();
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if name.is_empty() || name.len() > HEADER_NAME_BYTES_MAX || !is_word {
        return Err(bad("headers", format!("`{name}` is no name of a header")));
    }
    if RESERVED.contains(&lower.as_str()) || lower.starts_with("content-") || lower.starts_with("resent-") {
        return Err(bad("headers", format!("`{name}` is written by the sender itself, or not at all")));
    }
    Ok(())
}

fn content_type(text: String) -> Result<String, Failure> {
    let is_fit = text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty())
        && text.bytes().all(|byte| (0x20..0x7F).contains(&byte))
        && !text.starts_with("multipart/")
        && text.len() <= 200;
    if is_fit {
        Ok(text)
    } else {
        Err(bad("attachment.content_type", format!("`{text}` is no type of a file")))
    }
}

fn shown(address: &Address) -> HeaderType<'static> {
    Mailbox::new_address(address.name.clone(), address.mailbox.clone()).into()
}

fn shown_list(addresses: &[Address]) -> HeaderType<'static> {
    let list =
        addresses.iter().map(|address| Mailbox::new_address(address.name.clone(), address.mailbox.clone()));
    Mailbox::new_list(list.collect()).into()
}

/// Text as mail has it: lines end in CR LF. Other control characters make it a file's bytes.
fn text_part(text: &str) -> MimePart<'static> {
    let lines = text.replace("\r\n", "\n").replace(['\r', '\n'], "\r\n");
    let is_plain = |character: char| !character.is_control() || matches!(character, '\r' | '\n' | '\t');
    if lines.chars().all(is_plain) {
        return MimePart::new("text/plain", BodyPart::Text(lines.into()));
    }
    bytes_part("text/plain; charset=utf-8", lines.into_bytes().into())
}

/// Bytes that arrive as they are, whatever their type says.
fn bytes_part<'b>(content_type: &str, bytes: std::borrow::Cow<'b, [u8]>) -> MimePart<'b> {
    MimePart::raw(BodyPart::Binary(bytes)).header("Content-Type", Raw::new(content_type.to_owned()))
}

/// With a boundary that is the same whenever the message is tried again, and in none of its parts:
/// text never has a line of it, since a part is either base64 or checked.
fn mixed<'m>(source: &Source<'m>, parts: Vec<MimePart<'m>>) -> MimePart<'m> {
    let is_free = |boundary: &str| {
        !parts.iter().any(|part| match &part.contents {
            BodyPart::Text(text) => text.contains(boundary),
            BodyPart::Binary(_) | BodyPart::Multipart(_) => false,
        })
    };
    let names = (0_u32..).map(|number| format!("=_portway_{}_{number}", source.message.id));
    let boundary = names.into_iter().find(|name| is_free(name)).unwrap_or_default();
    MimePart::new(ContentType::new("multipart/mixed").attribute("boundary", boundary), parts)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use portway_sdk::blobs::Blob;
    use portway_sdk::{Body, parse_settings};
    use proptest::prelude::*;

    use super::*;

    fn maker(more: &str) -> MailMaker {
        let settings = format!("{{\"from\": \"lab@h.example\", \"to\": [\"ward@h.example\"]{more}}}");
        MailMaker::new(parse_settings(&settings).unwrap(), &Context::default()).unwrap()
    }

    fn made(more: &str, message: &Message) -> Result<String, Problem> {
        let call = Call::new("store", false, Duration::from_secs(1));
        maker(more).make(&call, message).map(|mail| String::from_utf8(mail.bytes).unwrap())
    }

    #[test]
    fn a_mail_is_the_same_whenever_it_is_made() {
        let message = || Message::new("a\r\rb").with_id(7);
        let first = made(", \"attachment\": {}", &message()).unwrap();
        assert_eq!(first, made(", \"attachment\": {}", &message()).unwrap());
        assert_ne!(first, made(", \"attachment\": {}", &message().with_id(8)).unwrap());
    }

    #[test]
    fn a_message_that_is_too_large_is_not_built() {
        let large = vec![b'x'; BODY_BYTES_MAX as usize + 1];
        let message = Message::new(Body::from(Blob::from_bytes(&large).unwrap()));
        let problem = made(", \"attachment\": {}", &message).unwrap_err();
        assert!(matches!(problem, Problem::Quarantine(failure) if failure.code == "too-large"));
        let most = Message::new(Body::from(large[1..].to_vec()));
        assert!(made(", \"attachment\": {}", &most).is_ok());
    }

    #[test]
    fn a_boundary_is_in_none_of_the_parts() {
        let message = Message::new("x").with_id(7).with_attribute("a", "--=_portway_7_0");
        let mail = made(", \"attachment\": {}, \"text\": \"{attribute:a}\"", &message).unwrap();
        assert!(mail.contains("boundary=\"=_portway_7_1\""), "{mail}");
    }

    proptest! {
        /// Whatever the message: seven bits, whole lines, no line too long.
        #[test]
        fn a_mail_is_clean(body in any::<Vec<u8>>(), text in "\\PC{0,100}|[\r\n.a\0 ]{0,60}", value in "\\PC{0,200}") {
            let message = Message::new(body).with_attribute("v", value).with_attribute("t", text);
            for more in [
                ", \"attachment\": {\"name\": \"x{attribute:v}\", \"content_type\": \"text/plain\"}",
                ", \"text\": \"x{attribute:t}\", \"subject\": \"x{attribute:v}\", \"headers\": {\"X-A\": \"x{attribute:v}\"}",
                ", \"text\": \"x{attribute:t}\", \"attachment\": {}",
                "",
            ] {
                let Ok(mail) = made(more, &message) else { continue };
                prop_assert!(mail.is_ascii());
                prop_assert!(!mail.replace("\r\n", "").contains(['\r', '\n', '\0']), "{mail:?}");
                prop_assert!(mail.split("\r\n").all(|line| line.len() <= 998), "{mail:?}");
            }
        }
    }
}
