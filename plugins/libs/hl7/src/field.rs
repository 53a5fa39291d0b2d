//! Fields and what they are made of: repetitions, components, subcomponents.
//!
//! Each is a slice and the delimiters to cut it further. Nothing is cut before it is asked for.

use crate::{Delimiters, Pieces, search::find_byte};

/// HL7's "delete this value", which is not the same as an empty field.
const NULL: &[u8] = b"\"\"";

/// A field with all its repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    bytes: &'a [u8],
    /// None: the field is never cut (MSH-1 and MSH-2).
    delimiters: Option<Delimiters>,
}

/// One repetition of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition<'a> {
    bytes: &'a [u8],
    delimiters: Option<Delimiters>,
}

/// One component of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component<'a> {
    bytes: &'a [u8],
    delimiters: Option<Delimiters>,
}

impl<'a> Field<'a> {
    pub fn new(bytes: &'a [u8], delimiters: Delimiters) -> Self {
        Field { bytes, delimiters: Some(delimiters) }
    }

    /// A field that holds delimiters as its content.
    pub(crate) fn whole(bytes: &'a [u8]) -> Self {
        Field { bytes, delimiters: None }
    }

    pub fn raw(&self) -> &'a [u8] {
        self.bytes
    }

    /// Nothing between the separators.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The field says `""`.
    pub fn is_null(&self) -> bool {
        self.bytes == NULL
    }

    /// At least one, which may be empty.
    pub fn repetitions(&self) -> impl Iterator<Item = Repetition<'a>> + use<'a> {
        let delimiters = self.delimiters;
        Split::new(self.bytes, delimiters.and_then(|d| d.repetition))
            .map(move |bytes| Repetition { bytes, delimiters })
    }

    /// The repetition of that number, from 1.
    pub fn repetition(&self, number: usize) -> Option<Repetition<'a>> {
        let bytes = nth(self.bytes, self.delimiters.and_then(|d| d.repetition), number)?;
        Some(Repetition { bytes, delimiters: self.delimiters })
    }

    /// A component of the first repetition.
    pub fn component(&self, number: usize) -> Option<Component<'a>> {
        self.repetition(1)?.component(number)
    }

    /// The whole text with its escapes explained.
    pub fn pieces(&self) -> Pieces<'a> {
        Pieces::of(self.bytes, self.delimiters)
    }
}

impl<'a> Repetition<'a> {
    pub fn raw(&self) -> &'a [u8] {
        self.bytes
    }

    /// This repetition says `""`.
    pub fn is_null(&self) -> bool {
        self.bytes == NULL
    }

    pub fn components(&self) -> impl Iterator<Item = Component<'a>> + use<'a> {
        let delimiters = self.delimiters;
        Split::new(self.bytes, delimiters.and_then(|d| d.component))
            .map(move |bytes| Component { bytes, delimiters })
    }

    /// The component of that number, from 1.
    pub fn component(&self, number: usize) -> Option<Component<'a>> {
        let bytes = nth(self.bytes, self.delimiters.and_then(|d| d.component), number)?;
        Some(Component { bytes, delimiters: self.delimiters })
    }

    pub fn pieces(&self) -> Pieces<'a> {
        Pieces::of(self.bytes, self.delimiters)
    }
}

impl<'a> Component<'a> {
    pub fn raw(&self) -> &'a [u8] {
        self.bytes
    }

    /// This component says `""`.
    pub fn is_null(&self) -> bool {
        self.bytes == NULL
    }

    pub fn subcomponents(&self) -> Split<'a> {
        Split::new(self.bytes, self.delimiters.and_then(|d| d.subcomponent))
    }

    /// The subcomponent of that number, from 1.
    pub fn subcomponent(&self, number: usize) -> Option<&'a [u8]> {
        nth(self.bytes, self.delimiters.and_then(|d| d.subcomponent), number)
    }

    pub fn pieces(&self) -> Pieces<'a> {
        Pieces::of(self.bytes, self.delimiters)
    }
}

/// Cuts at one byte; without one there is a single part.
#[derive(Clone, Debug)]
pub struct Split<'a> {
    rest: Option<&'a [u8]>,
    at: Option<u8>,
}

impl<'a> Split<'a> {
    pub fn new(bytes: &'a [u8], at: Option<u8>) -> Self {
        Split { rest: Some(bytes), at }
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        match self.at.and_then(|at| find_byte(rest, at)) {
            Some(end) => {
                self.rest = rest.get(end + 1..);
                rest.get(..end)
            }
            None => self.rest.take(),
        }
    }
}

fn nth(bytes: &[u8], at: Option<u8>, number: usize) -> Option<&[u8]> {
    Split::new(bytes, at).nth(number.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(bytes: &[u8]) -> Field<'_> {
        Field::new(bytes, Delimiters::STANDARD)
    }

    #[test]
    fn null_and_empty_differ() {
        assert!(field(b"\"\"").is_null() && !field(b"\"\"").is_empty());
        assert!(field(b"").is_empty() && !field(b"").is_null());
        assert!(field(b"a^\"\"").component(2).unwrap().is_null());
    }

    #[test]
    fn parts_are_cut_by_number() {
        let field = field(b"1^2&3^~4^^6");
        assert_eq!(field.repetition(2).unwrap().component(3).unwrap().raw(), b"6");
        assert_eq!(field.component(2).unwrap().subcomponent(2), Some(&b"3"[..]));
        assert_eq!(field.component(3).unwrap().raw(), b"");
        assert_eq!(field.component(4), None);
        assert_eq!(field.repetition(0), None);
        assert_eq!(field.repetitions().count(), 2);
    }

    #[test]
    fn header_fields_are_never_cut() {
        let encoding = Field::whole(b"^~\\&");
        assert_eq!(encoding.component(1).unwrap().raw(), b"^~\\&");
        assert_eq!(encoding.repetitions().count(), 1);
    }
}
