//! What is known of one message: read when it is asked for, and once.

use std::{borrow::Cow, cell::OnceCell};

use portway_sdk::Message;

use crate::{
    ReadError,
    body::{Found, Paths},
    condition::Place,
    value::Value,
};

/// Bytes of a body that is read.
pub const BODY_BYTES_MAX: u64 = 32 << 20;
/// Values that are taken out of one body.
pub const VALUES_MAX: usize = 65_536;

/// Reads the bodies of one plugin.
#[derive(Debug)]
pub struct Reader {
    pub(crate) paths: Paths,
}

impl Reader {
    /// What is known of a message.
    pub fn facts<'a>(&'a self, message: &'a Message) -> Facts<'a> {
        Facts { reader: self, message, body: OnceCell::new() }
    }
}

/// What is known of one message.
#[derive(Debug)]
pub struct Facts<'a> {
    reader: &'a Reader,
    message: &'a Message,
    /// The values of each path.
    body: OnceCell<Result<Vec<Vec<Value>>, ReadError>>,
}

impl Facts<'_> {
    /// Whether the body was looked at.
    pub fn is_read(&self) -> bool {
        self.body.get().is_some()
    }

    pub(crate) fn values(&self, place: &Place) -> Result<Cow<'_, [Value]>, ReadError> {
        let text = |text: &str| Value::Text(text.to_owned());
        Ok(match place {
            Place::Attribute(name) => Cow::Owned(self.message.attributes.get_all(name).map(text).collect()),
            Place::Key => Cow::Owned(self.message.key.iter().map(|key| text(key)).collect()),
            Place::Body { index, .. } => match self.body.get_or_init(|| self.read()) {
                Ok(values) => Cow::Borrowed(values.get(*index).map_or(&[], Vec::as_slice)),
                Err(error) => return Err(error.clone()),
            },
        })
    }

    fn read(&self) -> Result<Vec<Vec<Value>>, ReadError> {
        let size = self.message.body.len();
        if size > BODY_BYTES_MAX {
            return Err(ReadError::unreadable(format!(
                "a body of {size} bytes is not read for its values; {BODY_BYTES_MAX} is the most"
            )));
        }
        let bytes = self.message.body.bytes().map_err(|error| ReadError::Host(error.to_string()))?;
        let mut found = Found::new(self.reader.paths.len(), VALUES_MAX);
        self.reader.paths.read(&bytes, &mut found)?;
        Ok(found.values)
    }
}
