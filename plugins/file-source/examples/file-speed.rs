//! How many records a second pass the source here, without a sandbox and from memory. Run
//! with `--release`.

use std::time::Instant;

use portway_file_source::FileSource;
use portway_sdk::{Context, PollSource, Query, parse_settings, testing};

const ROWS: u32 = 300_000;

fn main() -> Result<(), String> {
    let rows: String = (0..ROWS).map(|n| format!("{n},Everywoman,Eve,1962-03-20,F,{}\n", n % 977)).collect();
    let json: String =
        (0..ROWS).map(|n| format!("{{\"id\":{n},\"name\":\"Eve\",\"v\":[1,2,3]}}\n")).collect();
    let array = format!("[{}]", json.trim_end().replace('\n', ","));
    let quoted = rows.replace("Everywoman", "\"Every, \"\"woman\"\"\"");
    measure("lines", r#"{"split":"lines"}"#, &rows)?;
    measure("csv, header left out", r#"{"split":"csv","header":"left-out"}"#, &rows)?;
    measure("csv, header with each", r#"{"split":"csv"}"#, &rows)?;
    measure("csv, quoted", r#"{"split":"csv"}"#, &quoted)?;
    measure("csv, no attributes", r#"{"split":"csv","attributes":"none"}"#, &rows)?;
    measure(
        "csv, key and dedupe",
        r#"{"split":"csv","key":"{file.name}","dedupe":"{file.name}#{record.number}"}"#,
        &rows,
    )?;
    measure("ndjson", r#"{"split":"ndjson"}"#, &json)?;
    measure("json-array", r#"{"split":"json-array"}"#, &array)
}

fn measure(name: &str, settings: &str, content: &str) -> Result<(), String> {
    testing::reset();
    ["inbox", "done"].iter().for_each(|folder| testing::grant_folder(folder));
    testing::put_file("inbox", "rows", content.as_bytes());
    let settings = settings.replacen('{', r#"{"settle":"0ms","#, 1);
    let settings = parse_settings(&settings).map_err(|failure| failure.to_string())?;
    let mut source =
        FileSource::open(settings, &Context::default()).map_err(|failure| failure.to_string())?;
    let (mut cursor, mut records, mut polls) = (Vec::new(), 0, 0_u32);
    let start = Instant::now();
    loop {
        let query = Query { cursor, items_max: 512, bytes_max: 4 << 20, wait_max_ms: 0, unfinished: 0 };
        let found = source.poll(query).map_err(|trouble| format!("{trouble:?}"))?;
        (cursor, records, polls) = (found.cursor, records + found.items.len(), polls + 1);
        if found.again_ms > 0 {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = content.len() as f64 / 1e6;
    println!(
        "{name}: {records} records of {megabytes:.1} MB in {polls} polls, {:.0} records/s",
        records as f64 / seconds
    );
    Ok(())
}
