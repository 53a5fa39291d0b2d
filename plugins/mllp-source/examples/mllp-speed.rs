//! How many frames a second the codec cuts and answers here, without a sandbox. Run with `--release`.

use std::{hint::black_box, rc::Rc, time::Instant};

use portway_mllp_source::{FrameCodec, Settings, answer::Answers};
use portway_sdk::{Fate, Item, Receipt};

const HEADER: &str = "MSH|^~\\&|LABSYS|CITYLAB|EHR|GENERAL|20240229130507+0100||ORU^R01^ORU_R01|MSG00042|P|2.5.1\r\
    PID|1||10006579^^^GENERAL^MR||Everywoman^Eve^E^^Ms^^L||19620320|F\r";
const RESULT: &str =
    "OBX|1|NM|718-7^Hemoglobin^LN||13.50|g/dL^gram per decilitre^UCUM|12.0-16.0|N|||F|||20240229104500\r";

fn main() {
    let frame = format!("\x0B{HEADER}{}\x1C\r", RESULT.repeat(16)).into_bytes();
    let chunk = frame.repeat(8);
    let key = "PID-3.1".parse().ok();
    let settings = Rc::new(Settings { key, ..Settings::default() });
    for (name, size) in [("several frames a read", chunk.len()), ("reads of 1,000 bytes", 1000)] {
        let (mut codec, mut answers, mut count) =
            (FrameCodec::new(Rc::clone(&settings), 0), Answers::default(), 0_u32);
        let start = Instant::now();
        while count < 400_000 {
            for part in chunk.chunks(size) {
                let items = codec.cut(black_box(part)).items;
                let receipts: Vec<Receipt> = items.into_iter().filter_map(receipt).collect();
                count += u32::try_from(receipts.len()).unwrap_or(0);
                let _ = black_box(answers.settle(&receipts, 0));
            }
        }
        let per_second = f64::from(count) / start.elapsed().as_secs_f64();
        println!("{name}: {} bytes a frame, {per_second:.0} frames/s", frame.len());
    }
}

fn receipt(item: Item) -> Option<Receipt> {
    match item {
        Item::Message(draft) => Some(Receipt { fate: Fate::Stored(7), ticket: draft.ticket }),
        Item::Refused(_) | Item::Control(_) => None,
    }
}
