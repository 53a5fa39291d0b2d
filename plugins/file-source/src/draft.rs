//! What a message says beside its bytes: keys and attributes.

use portway_sdk::{Attributes, Content, Draft, Template, clock, key_of};

use crate::cursor::Known;
use crate::settings::{Attributes as Which, Rules};

/// What `key` and `dedupe` may ask for; also the names of the attributes.
pub(crate) const PLACEHOLDERS: &[&str] = &[NAME, MODIFIED, OFFSET, NUMBER];
const NAME: &str = "file.name";
const MODIFIED: &str = "file.modified";
const OFFSET: &str = "file.offset";
const NUMBER: &str = "record.number";

/// Bytes of an attribute's value, by the contract.
const VALUE_BYTES_MAX: usize = 4096;

/// How keys are made.
#[derive(Debug)]
pub struct Templates {
    pub key: Template,
    pub dedupe: Template,
}

/// Makes the drafts of one file.
pub(crate) struct Drafter<'a> {
    rules: &'a Rules,
    name: String,
    modified: String,
    ticket: Vec<u8>,
}

impl<'a> Drafter<'a> {
    /// `ordinal`: which file of the poll it is. The first one's tickets are empty.
    pub fn new(rules: &'a Rules, file: &Known, ordinal: u32) -> Drafter<'a> {
        let mut name = file.path.clone();
        name.truncate(name.floor_char_boundary(VALUE_BYTES_MAX));
        let ticket = if ordinal == 0 { Vec::new() } else { ordinal.to_le_bytes().to_vec() };
        Drafter { rules, name, modified: clock::rfc3339(file.modified_ms), ticket }
    }

    /// The message of a record that begins at an offset, or of a whole file.
    pub fn draft(&self, content: Content, offset: u64, number: u64) -> Draft {
        let templates = &self.rules.templates;
        let mut attributes = Vec::with_capacity(4);
        let mut push = |name: &str, value: String| attributes.push((name.to_owned(), value));
        if self.rules.attributes != Which::None {
            push(NAME, self.name.clone());
            push(MODIFIED, self.modified.clone());
        }
        if self.rules.attributes == Which::All {
            push(OFFSET, offset.to_string());
            push(NUMBER, number.to_string());
        }
        Draft {
            key: self.fill(&templates.key, offset, number),
            dedupe: self.fill(&templates.dedupe, offset, number),
            attributes: Attributes::from(attributes),
            ..Draft::new(content, self.ticket.clone())
        }
    }

    fn fill(&self, template: &Template, offset: u64, number: u64) -> Option<String> {
        key_of(template.fill(|text, name| match name {
            NAME => text.push_str(&self.name),
            MODIFIED => text.push_str(&self.modified),
            OFFSET => text.push_str(&offset.to_string()),
            _ => text.push_str(&number.to_string()),
        }))
    }
}

/// Which file of the poll a ticket belongs to.
pub(crate) fn ordinal_of(ticket: &[u8]) -> u32 {
    ticket.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
