//! Any bytes through the HL7 parser and the transform that reads most of it: no panic, no byte lost,
//! two ways to find a field that agree, and a document that is JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portway_hl7::{
    Acknowledgement, Charset, DateTime, FieldIndex, INDEXED_FIELDS_MAX, Indexer, Message, Path,
};
use portway_oru_to_json::{OruToJson, Settings};
use portway_sdk::{Context, Transform, TransformVerdict};

fuzz_target!(|input: &[u8]| {
    read_date(input);
    if let Ok(path) = String::from_utf8_lossy(input).parse::<Path>() {
        assert_eq!(path.to_string().parse::<Path>().unwrap(), path);
    }
    let Ok(message) = Message::parse(input) else { return };
    let _ = Charset::of(&message).decode(input);
    read_all(&message);
    two_ways_agree(&message);
    answer(&message);
    transform(input);
});

fn read_date(text: &[u8]) {
    if let Some(date) = DateTime::parse(text) {
        let mut iso = Vec::new();
        date.write_iso(&mut iso);
        assert!(iso.len() <= 30 && iso.is_ascii());
        date.unix_ms();
    }
}

fn read_all(message: &Message<'_>) {
    for segment in message.segments() {
        for (_, field) in segment.fields() {
            let written: Vec<u8> = field.pieces().flat_map(|piece| piece.raw().to_vec()).collect();
            assert_eq!(written, field.raw());
            for component in
                field.repetitions().flat_map(|repetition| repetition.components().collect::<Vec<_>>())
            {
                component.subcomponents().for_each(|subcomponent| read_date(subcomponent));
            }
        }
    }
    for path in ["PID-3.1", "OBX[2]-5[2].1.2", "MSH-2", "MSH-10", "NTE"] {
        let _ = message.get(&path.parse().unwrap());
    }
}

fn two_ways_agree(message: &Message<'_>) {
    let mut indexer = Indexer::new(message).unwrap();
    let mut index = FieldIndex::default();
    for segment in message.segments() {
        assert!(indexer.next_segment(&mut index));
        assert_eq!(&message.raw()[index.segment()], segment.raw());
        for number in 2..INDEXED_FIELDS_MAX {
            let found = index.field(number).map(|place| &message.raw()[place]);
            assert_eq!(found, segment.field(number).map(|field| field.raw()));
        }
    }
    assert!(!indexer.next_segment(&mut index));
}

/// What is repeated in an answer is found in it again, byte for byte.
fn answer(message: &Message<'_>) {
    if !message.header().is("MSH") {
        return;
    }
    let answer = Acknowledgement { code: "AA", own_id: "1", ..Acknowledgement::to(message) };
    let mut written = Vec::new();
    answer.write(&mut written);
    let read = Message::parse(&written).unwrap();
    assert_eq!(read.get(&"MSA-2".parse().unwrap()), Some(answer.control_id));
}

fn transform(input: &[u8]) {
    let mut transform = OruToJson::open(Settings::default(), &Context::default()).unwrap();
    if let Ok(TransformVerdict::Deliver(outputs)) = transform.transform(portway_sdk::Message::new(input)) {
        let document = outputs[0].body.bytes().unwrap();
        serde_json::from_slice::<serde_json::Value>(&document).unwrap();
    }
}
