//! Any body to the HTTP source: an answer that is JSON, elements that are what serde_json takes
//! for them, and the same from a large body that comes in chunks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portway_http_source::HttpMessages;
use portway_sdk::testing::{self, HttpHost, Stored};

const SETTINGS: [&str; 4] = [
    r#"{"split":"json-array","key":"json:/a/0","attributes":{"b":"json:/b"}}"#,
    r#"{"split":"ndjson","dedupe":"json:/a"}"#,
    r#"{"require":"json","key":"json:","depth_max":20}"#,
    r#"{"key":"query:a","idempotency_key":true,"query":["a"]}"#,
];

fuzz_target!(|input: &[u8]| {
    let Some((&which, body)) = input.split_first() else { return };
    let settings = SETTINGS[usize::from(which) % SETTINGS.len()];
    let (status, stored) = ask(settings, body.to_vec());
    for stored in &stored {
        assert!(
            body.windows(stored.bytes.len().max(1)).any(|window| window == stored.bytes) || body.is_empty()
        );
        if which % 4 < 2 {
            // Deeper nesting is serde_json's own limit.
            let error = serde_json::from_slice::<serde::de::IgnoredAny>(&stored.bytes).err();
            assert!(error.is_none(), "{error:?}");
        }
    }
    if which % 4 < 2 && which >= 192 {
        // Blanks in front make it a body that comes in chunks.
        let blanks = vec![b' '; 256 * 1024 - body.len() % 7 + 1];
        let (again, large) = ask(settings, [blanks.as_slice(), body].concat());
        if !body.starts_with(b"\xEF\xBB\xBF")
            && !body.starts_with(b"\xFF\xFE")
            && !body.starts_with(b"\xFE\xFF")
        {
            assert_eq!((again, bytes(&large)), (status, bytes(&stored)));
        }
    }
});

fn bytes(stored: &[Stored]) -> Vec<&[u8]> {
    stored.iter().map(|stored| stored.bytes.as_slice()).collect()
}

fn ask(settings: &str, body: Vec<u8>) -> (u16, Vec<Stored>) {
    testing::reset();
    let mut host: HttpHost<HttpMessages> = HttpHost::open(settings).unwrap();
    let answer = host.request("/?a=1&a=2&%", &[("idempotency-key", "k")], body).unwrap();
    serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap();
    (answer.status, host.stored)
}
