//! The document: patients, their orders, the results of these, and the notes to all of them.
//!
//! It is written in one pass, segment by segment; what is open is a short stack. An NTE belongs to
//! what is open, an OBR to the ORC before it, an OBX to the order or, behind an SPM, to the specimen.
//! Segments that have no place here are named in `unmapped`.

use portway_hl7::{FieldIndex, Indexer, Message};
use portway_sdk::{Body, Problem};

use crate::{
    out::{Key, Out},
    shape::{self, Member, Shape, member},
    text::Source,
};

/// Names in `unmapped`.
const UNMAPPED_MAX: usize = 64;

/// An object or array that is not closed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Patients,
    Patient,
    Visit,
    Orders,
    Order,
    Control,
    Results,
    Result,
    Specimens,
    Specimen,
    Notes,
}

impl Open {
    fn bracket(self) -> u8 {
        match self {
            Open::Patients | Open::Orders | Open::Results | Open::Specimens | Open::Notes => b']',
            Open::Patient | Open::Visit | Open::Order | Open::Control | Open::Result | Open::Specimen => b'}',
        }
    }
}

static MESSAGE: Key = Key::new("message");
static SENDER: Key = Key::new("sender");
static RECEIVER: Key = Key::new("receiver");
static PATIENTS: Key = Key::new("patients");
static VISIT: Key = Key::new("visit");
static ORDERS: Key = Key::new("orders");
static CONTROL: Key = Key::new("control");
static RESULTS: Key = Key::new("results");
static SPECIMENS: Key = Key::new("specimens");
static NOTES: Key = Key::new("notes");
static UNMAPPED: Key = Key::new("unmapped");

static MSH: &[Member] = &[
    member(7, "time", Shape::Date),
    member(10, "id", Shape::Text),
    member(11, "processing", Shape::Code),
    member(12, "version", Shape::Code),
];
static MSH_TYPE: &[shape::Part] = &[
    shape::Part { component: 1, key: Key::new("type"), take: shape::Take::All },
    shape::Part { component: 2, key: Key::new("event"), take: shape::Take::All },
    shape::Part { component: 3, key: Key::new("structure"), take: shape::Take::All },
];
static FROM: &[Member] = &[member(3, "application", Shape::Code), member(4, "facility", Shape::Code)];
static TO: &[Member] = &[member(5, "application", Shape::Code), member(6, "facility", Shape::Code)];

/// Writes documents; its buffers are used again for each.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: Out,
    index: FieldIndex,
    open: Vec<Open>,
    unmapped: Vec<[u8; 3]>,
    /// The order at hand has its OBR.
    has_request: bool,
    has_visit: bool,
}

impl Writer {
    /// The document of an ORU message.
    pub(crate) fn write(&mut self, message: &Message<'_>, source: &Source<'_>) -> Result<Body, Problem> {
        let mut indexer = Indexer::new(message)
            .ok_or_else(|| Problem::quarantine("too-large", "the message is longer than 4 GiB"))?;
        self.out.start();
        self.open.clear();
        self.unmapped.clear();
        (self.has_request, self.has_visit) = (false, false);
        self.out.push(b'{');
        if indexer.next_segment(&mut self.index) {
            self.header(source);
        }
        while indexer.next_segment(&mut self.index) {
            self.segment(source)?;
            self.out.hand_on();
        }
        self.close_all();
        self.list_unmapped();
        self.out.close(b'}');
        self.out.drop_comma();
        self.out.finish()
    }

    fn header(&mut self, source: &Source<'_>) {
        self.object(&MESSAGE);
        if let Some(place) = self.index.field(9) {
            self.out.parts(source, &source.first(&place, source.repetition), MSH_TYPE);
        }
        self.out.members(source, &self.index, MSH);
        for (key, members) in [(&SENDER, FROM), (&RECEIVER, TO)] {
            let before = self.out.written();
            self.object(key);
            let opened = self.out.written();
            self.out.members(source, &self.index, members);
            if self.out.written() == opened {
                self.out.rewind(before);
            } else {
                self.out.close(b'}');
            }
        }
        self.out.close(b'}');
    }

    fn segment(&mut self, source: &Source<'_>) -> Result<(), Problem> {
        let name = self.index.name(source.text);
        match name.as_ref() {
            Some(b"OBX") => self.result(source),
            Some(b"NTE") => self.note(source),
            Some(b"OBR") => self.request(source),
            Some(b"ORC") => self.control(source),
            Some(b"PID") => self.patient(source),
            Some(b"PV1") => self.visit(source),
            Some(b"SPM") => self.specimen(source),
            Some(b"MSH" | b"FHS" | b"BHS") => {
                let text = "the body holds more than one message; one document cannot tell them apart";
                return Err(Problem::quarantine("batch", text));
            }
            _ => self.pass_over(name),
        }
        Ok(())
    }

    fn patient(&mut self, source: &Source<'_>) {
        self.begin_patient();
        self.out.members(source, &self.index, shape::PID);
    }

    fn begin_patient(&mut self) {
        if !self.unwind(Open::Patients) {
            self.close_all();
            self.array(&PATIENTS, Open::Patients);
        }
        self.element(Open::Patient);
        self.has_visit = false;
    }

    fn visit(&mut self, source: &Source<'_>) {
        if self.has_visit || self.is_open(Open::Orders) {
            return self.pass_over(Some(*b"PV1"));
        }
        if !self.unwind(Open::Patient) {
            self.begin_patient();
        }
        self.object(&VISIT);
        self.open.push(Open::Visit);
        self.has_visit = true;
        self.out.members(source, &self.index, shape::PV1);
    }

    fn control(&mut self, source: &Source<'_>) {
        self.begin_order();
        self.has_request = false;
        self.object(&CONTROL);
        self.open.push(Open::Control);
        self.out.members(source, &self.index, shape::ORC);
    }

    fn request(&mut self, source: &Source<'_>) {
        if self.has_request || !self.unwind(Open::Order) {
            self.begin_order();
        }
        self.has_request = true;
        self.out.members(source, &self.index, shape::OBR);
    }

    fn begin_order(&mut self) {
        if !self.unwind(Open::Orders) {
            if !self.unwind(Open::Patient) {
                self.begin_patient();
            }
            self.array(&ORDERS, Open::Orders);
        }
        self.element(Open::Order);
    }

    fn specimen(&mut self, source: &Source<'_>) {
        if !self.unwind(Open::Specimens) {
            if !self.unwind(Open::Order) {
                return self.pass_over(Some(*b"SPM"));
            }
            self.array(&SPECIMENS, Open::Specimens);
        }
        // An OBR behind it begins another order.
        self.has_request = true;
        self.element(Open::Specimen);
        self.out.members(source, &self.index, shape::SPM);
    }

    fn result(&mut self, source: &Source<'_>) {
        if !self.unwind(Open::Results) {
            if !self.unwind(Open::Specimen) && !self.unwind(Open::Order) {
                // Without an OBR, as some send remarks about a patient.
                self.begin_order();
            }
            self.has_request = true;
            self.array(&RESULTS, Open::Results);
        }
        self.element(Open::Result);
        self.out.members(source, &self.index, shape::OBX_BEFORE);
        self.out.values(source, &self.index);
        self.out.members(source, &self.index, shape::OBX_AFTER);
    }

    /// The repetitions of NTE-3 are its lines.
    fn note(&mut self, source: &Source<'_>) {
        let Some(place) = self.index.field(3).filter(|place| !place.is_empty()) else { return };
        if self.open.last() != Some(&Open::Notes) {
            self.array(&NOTES, Open::Notes);
        }
        self.out.push(b'"');
        let (mut line, mut rest) = source.split(&place, source.repetition);
        loop {
            self.out.text(source, line);
            let Some(left) = rest else { break };
            self.out.push_all(b"\\n");
            (line, rest) = source.split(&left, source.repetition);
        }
        self.out.push_all(b"\",");
    }

    fn pass_over(&mut self, name: Option<[u8; 3]>) {
        let name = name.filter(|name| name.iter().all(u8::is_ascii_alphanumeric)).unwrap_or(*b"???");
        if self.unmapped.len() < UNMAPPED_MAX && !self.unmapped.contains(&name) {
            self.unmapped.push(name);
        }
    }

    fn list_unmapped(&mut self) {
        if self.unmapped.is_empty() {
            return;
        }
        self.out.push_key(&UNMAPPED);
        self.out.push(b'[');
        for [first, second, third] in self.unmapped.drain(..) {
            self.out.push_all(&[b'"', first, second, third, b'"', b',']);
        }
        self.out.close(b']');
    }

    fn object(&mut self, key: &Key) {
        self.out.push_key(key);
        self.out.push(b'{');
    }

    fn array(&mut self, key: &Key, open: Open) {
        self.out.push_key(key);
        self.out.push(b'[');
        self.open.push(open);
    }

    fn element(&mut self, open: Open) {
        self.out.push(b'{');
        self.open.push(open);
    }

    fn is_open(&self, open: Open) -> bool {
        self.open.contains(&open)
    }

    /// Closes what is open inside this one; false: it is not open, and nothing was closed.
    fn unwind(&mut self, to: Open) -> bool {
        let Some(depth) = self.open.iter().rposition(|open| *open == to) else { return false };
        while self.open.len() > depth + 1 {
            self.close_last();
        }
        true
    }

    fn close_all(&mut self) {
        while !self.open.is_empty() {
            self.close_last();
        }
    }

    fn close_last(&mut self) {
        if let Some(open) = self.open.pop() {
            self.out.close(open.bracket());
        }
    }
}
