//! How many records a second become JSON here, without a sandbox. Run with `--release`.

use std::{hint::black_box, time::Instant};

use portway_csv_to_json::{CsvToJson, Settings};
use portway_sdk::{Context, Message, Transform};

const RECORDS: usize = 20_000;

fn main() {
    let record = "4711,Müller,Änne,1970-02-28,13.50,\"Station 3, Zimmer 12\",true,\r\n";
    let message = format!("id,family,given,born,amount,place,active,note\r\n{}", record.repeat(RECORDS));
    let Ok(mut transform) = CsvToJson::open(Settings::default(), &Context::default()) else { return };
    for _ in 0..3 {
        let start = Instant::now();
        let _ = black_box(transform.transform(black_box(Message::new(message.as_str()))));
        let seconds = start.elapsed().as_secs_f64();
        println!("{} bytes, {:.0} records/s", message.len(), RECORDS as f64 / seconds);
    }
}
