//! How fields become members: tables of what stands where, and the one writer that follows them.
//!
//! An empty field is left out, `""` becomes `null`, and an object in which nothing would stand is not
//! written.

use std::ops::Range;

use portway_hl7::{DateTime, FieldIndex};

use crate::{
    out::{Key, Out},
    text::Source,
};

/// A member of an object, made of one field.
pub(crate) struct Member {
    pub field: u8,
    pub key: Key,
    pub shape: Shape,
}

/// What a field becomes.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// A string: all of the field.
    Text,
    /// A string: the first component of the first repetition.
    Code,
    /// An array of strings: the first component of each repetition.
    Codes,
    /// A string: a date, as precise as it is written.
    Date,
    /// An object: the components of the first repetition.
    Object(&'static [Part]),
    /// An array of objects, one for each repetition.
    Objects(&'static [Part]),
}

/// A member made of one component.
pub(crate) struct Part {
    pub component: u8,
    pub key: Key,
    pub take: Take,
}

/// What is taken of a component.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// All of it.
    All,
    /// The first subcomponent.
    First,
}

pub(crate) const fn member(field: u8, key: &str, shape: Shape) -> Member {
    Member { field, key: Key::new(key), shape }
}

const fn all(component: u8, key: &str) -> Part {
    Part { component, key: Key::new(key), take: Take::All }
}

const fn first(component: u8, key: &str) -> Part {
    Part { component, key: Key::new(key), take: Take::First }
}

/// CE, CWE, CNE.
pub(crate) static CODED: &[Part] = &[
    all(1, "code"),
    all(2, "text"),
    all(3, "system"),
    all(4, "altCode"),
    all(5, "altText"),
    all(6, "altSystem"),
];
/// CX.
static IDENTIFIER: &[Part] = &[all(1, "id"), first(4, "authority"), all(5, "type")];
/// EI.
static ENTITY: &[Part] = &[all(1, "id"), all(2, "namespace")];
/// EIP.
static ENTITY_PAIR: &[Part] = &[first(1, "placer"), first(2, "filler")];
/// XPN.
static NAME: &[Part] = &[
    first(1, "family"),
    all(2, "given"),
    all(3, "middle"),
    all(4, "suffix"),
    all(5, "prefix"),
    all(7, "use"),
];
/// XCN.
static PERSON: &[Part] = &[
    all(1, "id"),
    first(2, "family"),
    all(3, "given"),
    all(4, "middle"),
    all(5, "suffix"),
    all(6, "prefix"),
    first(9, "authority"),
];
/// XAD.
static ADDRESS: &[Part] = &[
    first(1, "street"),
    all(2, "other"),
    all(3, "city"),
    all(4, "state"),
    all(5, "postcode"),
    all(6, "country"),
    all(7, "use"),
];
/// XTN.
static PHONE: &[Part] = &[all(1, "number"), all(2, "use"), all(3, "kind"), all(4, "email")];
/// PL.
static LOCATION: &[Part] = &[all(1, "unit"), all(2, "room"), all(3, "bed"), first(4, "facility")];
/// SN.
pub(crate) static STRUCTURED_NUMBER: &[Part] =
    &[all(1, "comparator"), all(2, "first"), all(3, "separator"), all(4, "second")];
/// ED.
pub(crate) static ENCAPSULATED: &[Part] =
    &[first(1, "source"), all(2, "type"), all(3, "subtype"), all(4, "encoding"), all(5, "data")];
/// RP.
pub(crate) static POINTER: &[Part] =
    &[all(1, "pointer"), first(2, "source"), all(3, "type"), all(4, "subtype")];

pub(crate) static PID: &[Member] = &[
    member(3, "ids", Shape::Objects(IDENTIFIER)),
    member(5, "names", Shape::Objects(NAME)),
    member(7, "born", Shape::Date),
    member(8, "sex", Shape::Code),
    member(11, "addresses", Shape::Objects(ADDRESS)),
    member(13, "phones", Shape::Objects(PHONE)),
    member(14, "workPhones", Shape::Objects(PHONE)),
    member(15, "language", Shape::Code),
    member(18, "account", Shape::Object(IDENTIFIER)),
    member(29, "died", Shape::Date),
    member(30, "dead", Shape::Code),
];

pub(crate) static PV1: &[Member] = &[
    member(2, "class", Shape::Code),
    member(3, "location", Shape::Object(LOCATION)),
    member(7, "attending", Shape::Objects(PERSON)),
    member(8, "referring", Shape::Objects(PERSON)),
    member(10, "service", Shape::Code),
    member(17, "admitting", Shape::Objects(PERSON)),
    member(19, "number", Shape::Object(IDENTIFIER)),
    member(44, "admitted", Shape::Date),
    member(45, "discharged", Shape::Date),
];

pub(crate) static ORC: &[Member] = &[
    member(1, "code", Shape::Code),
    member(2, "placer", Shape::Object(ENTITY)),
    member(3, "filler", Shape::Object(ENTITY)),
    member(4, "group", Shape::Object(ENTITY)),
    member(5, "status", Shape::Code),
    member(9, "time", Shape::Date),
    member(12, "orderedBy", Shape::Objects(PERSON)),
];

pub(crate) static OBR: &[Member] = &[
    member(1, "set", Shape::Code),
    member(2, "placer", Shape::Object(ENTITY)),
    member(3, "filler", Shape::Object(ENTITY)),
    member(4, "service", Shape::Object(CODED)),
    member(6, "requested", Shape::Date),
    member(7, "observed", Shape::Date),
    member(8, "observedEnd", Shape::Date),
    member(13, "clinicalInformation", Shape::Text),
    member(14, "received", Shape::Date),
    member(16, "orderedBy", Shape::Objects(PERSON)),
    member(22, "reported", Shape::Date),
    member(24, "section", Shape::Code),
    member(25, "status", Shape::Code),
    member(28, "copiesTo", Shape::Objects(PERSON)),
    member(31, "reasons", Shape::Objects(CODED)),
];

/// OBX up to the values.
pub(crate) static OBX_BEFORE: &[Member] = &[
    member(1, "set", Shape::Code),
    member(2, "type", Shape::Code),
    member(3, "code", Shape::Object(CODED)),
    member(4, "sub", Shape::Text),
];

/// OBX behind the values.
pub(crate) static OBX_AFTER: &[Member] = &[
    member(6, "unit", Shape::Object(CODED)),
    member(7, "range", Shape::Text),
    member(8, "flags", Shape::Codes),
    member(11, "status", Shape::Code),
    member(14, "observed", Shape::Date),
    member(15, "producer", Shape::Object(CODED)),
    member(16, "observers", Shape::Objects(PERSON)),
    member(17, "methods", Shape::Objects(CODED)),
    member(19, "analysed", Shape::Date),
];

pub(crate) static SPM: &[Member] = &[
    member(1, "set", Shape::Code),
    member(2, "id", Shape::Object(ENTITY_PAIR)),
    member(4, "type", Shape::Object(CODED)),
    member(8, "site", Shape::Object(CODED)),
    member(17, "collected", Shape::Date),
    member(18, "received", Shape::Date),
];

impl Out {
    /// All members of a table.
    pub(crate) fn members(&mut self, source: &Source<'_>, index: &FieldIndex, members: &[Member]) {
        for member in members {
            if let Some(place) = index.field(usize::from(member.field)).filter(|place| !place.is_empty()) {
                self.member(source, place, &member.key, member.shape);
            }
        }
    }

    /// One member; the field is not empty.
    fn member(&mut self, source: &Source<'_>, place: Range<usize>, key: &Key, shape: Shape) {
        if source.is_null(&place) {
            return self.null_member(key);
        }
        let parts = match shape {
            Shape::Text => return self.string_member(source, place, key),
            Shape::Code => return self.string_member(source, source.first_component(&place), key),
            Shape::Date => return self.date_member(source, source.first_component(&place), key),
            Shape::Object(parts) => Some(parts),
            Shape::Codes | Shape::Objects(_) => None,
        };
        let before = self.written();
        self.push_key(key);
        let wrote = match (parts, shape) {
            (Some(parts), _) => self.object(source, &source.first(&place, source.repetition), parts),
            (None, Shape::Objects(parts)) => {
                self.array(source, place, |out, place| out.object(source, place, parts))
            }
            (None, _) => self.array(source, place, |out, place| {
                let code = source.first(place, source.component);
                let filled = !code.is_empty();
                if filled {
                    out.string(source, code);
                }
                filled
            }),
        };
        if !wrote {
            self.rewind(before);
        }
    }

    pub(crate) fn null_member(&mut self, key: &Key) {
        self.push_key(key);
        self.push_array(*b"null,", 5);
    }

    /// A member that is a string; nothing where that would be empty.
    #[inline]
    fn string_member(&mut self, source: &Source<'_>, place: Range<usize>, key: &Key) {
        if !place.is_empty() {
            self.keyed_string(source, place, key);
        }
    }

    /// A member that is a date; what is none stays as it is written.
    pub(crate) fn date_member(&mut self, source: &Source<'_>, place: Range<usize>, key: &Key) {
        let Some(date) = DateTime::parse(source.bytes(&place)) else {
            return self.string_member(source, place, key);
        };
        let (bytes, count) = date.iso();
        self.push_key_and_quote(key);
        self.push_array(bytes, count);
        self.push_array([b'"', b','], 2);
    }

    /// An object of components; false: it would be empty.
    pub(crate) fn object(&mut self, source: &Source<'_>, place: &Range<usize>, parts: &[Part]) -> bool {
        if source.is_null(place) {
            self.push_array(*b"null,", 5);
            return true;
        }
        self.push(b'{');
        let opened = self.written();
        self.parts(source, place, parts);
        if self.written() == opened {
            return false;
        }
        self.close(b'}');
        true
    }

    /// The members of such an object.
    pub(crate) fn parts(&mut self, source: &Source<'_>, place: &Range<usize>, parts: &[Part]) {
        let mut parts = parts.iter();
        let Some(mut wanted) = parts.next() else { return };
        let mut components = source.components(place);
        let mut number = 1;
        while let Some(component) = components.next(source) {
            if wanted.component == number {
                if !component.is_empty() {
                    self.part(source, component, wanted);
                }
                match parts.next() {
                    Some(next) => wanted = next,
                    None => return,
                }
            }
            number += 1;
        }
    }

    #[inline]
    fn part(&mut self, source: &Source<'_>, component: Range<usize>, part: &Part) {
        let place = match part.take {
            Take::All => component,
            Take::First => source.first(&component, source.subcomponent),
        };
        if place.is_empty() {
            return;
        }
        if source.is_null(&place) {
            self.null_member(&part.key);
        } else {
            self.keyed_string(source, place, &part.key);
        }
    }

    /// An array with what is written for each repetition; false: it would be empty.
    pub(crate) fn array(
        &mut self,
        source: &Source<'_>,
        place: Range<usize>,
        mut write: impl FnMut(&mut Out, &Range<usize>) -> bool,
    ) -> bool {
        self.push(b'[');
        let opened = self.written();
        let mut rest = Some(place);
        while let Some(left) = rest {
            let (repetition, behind) = source.split(&left, source.repetition);
            let before = self.written();
            if repetition.is_empty() || !write(self, &repetition) {
                self.rewind(before);
            }
            rest = behind;
        }
        if self.written() == opened {
            return false;
        }
        self.close(b']');
        true
    }
}
