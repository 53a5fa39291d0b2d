//! How many messages a second the transform makes here, without a sandbox. The message is the case
//! `realistic`. Run with `--release`; a number behind `--` is how many to make at a time.

use std::{hint::black_box, time::Instant};

use portway_oru_to_json::{OruToJson, Settings};
use portway_sdk::{Context, Message, Transform};

fn main() {
    let message = include_str!("../cases/realistic/input.txt").replace('\n', "\r").into_bytes();
    let Ok(mut transform) = OruToJson::open(Settings::default(), &Context::default()) else { return };
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(200_000_u32);
    for _ in 0..3 {
        let start = Instant::now();
        for _ in 0..count {
            let _ = black_box(transform.transform(black_box(Message::new(message.clone()))));
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("{} bytes, {:.0} messages/s", message.len(), f64::from(count) / seconds);
    }
}
