//! How many messages a second the transform makes here, without a sandbox. Run with `--release`, and
//! with a file that holds a message; a number behind it is how many to make at a time.

use std::{hint::black_box, time::Instant};

use portway_hl7_to_json::{Hl7ToJson, Settings};
use portway_sdk::{Context, Message, Transform};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(Ok(message)) = arguments.next().map(std::fs::read) else {
        return eprintln!("name a file that holds a message");
    };
    let Ok(mut transform) = Hl7ToJson::open(Settings::default(), &Context::default()) else { return };
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(200_000_u32);
    for _ in 0..3 {
        let start = Instant::now();
        for _ in 0..count {
            let _ = black_box(transform.transform(black_box(Message::new(message.clone()))));
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("{} bytes, {:.0} messages/s", message.len(), f64::from(count) / seconds);
    }
}
