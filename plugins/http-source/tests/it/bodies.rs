//! Bodies of any size: elements are exact spans, and limits hold.

use portway_sdk::testing;
use proptest::prelude::*;
use serde_json::value::RawValue;

use crate::open;

fn element(n: usize, filler: usize) -> String {
    format!("{{ \"id\" : {n}, \"text\":\"{}\"}}", "\\u00e4x".repeat(filler))
}

#[test]
fn elements_of_a_large_body_are_found_in_chunks() {
    let elements: Vec<String> = (0..3_000).map(|n| element(n, n % 70)).collect();
    let bodies = [
        (r#"{"split":"json-array","key":"json:/id"}"#, format!("[{}]", elements.join(" ,\n"))),
        (r#"{"split":"ndjson","key":"json:/id"}"#, elements.join("\r\n")),
    ];
    for (settings, body) in bodies {
        assert!(body.len() > 3 * 256 * 1024);
        let mut host = open(settings);
        let answer = host.post("application/json", body).unwrap();
        assert_eq!(answer.status, 202);
        assert_eq!(host.stored.len(), elements.len());
        for (n, (stored, element)) in host.stored.iter().zip(&elements).enumerate() {
            assert_eq!(stored.bytes, element.as_bytes());
            assert_eq!(stored.key, Some(n.to_string()));
        }
    }
}

#[test]
fn an_element_larger_than_chunks_is_one_span_and_its_key_is_looked_for_at_its_start() {
    let long = "x".repeat(3 << 20);
    let body = format!(r#"[1,{{"id":"a","text":"{long}"}},{{"text":"{long}","id":"b"}}]"#);
    let mut host = open(r#"{"split":"json-array","key":"json:/id"}"#);
    assert_eq!(host.post("application/json", body.as_str()).unwrap().status, 202);
    let keys: Vec<Option<&str>> = host.stored.iter().map(|stored| stored.key.as_deref()).collect();
    assert_eq!(keys, [None, Some("a"), None]);
    assert_eq!(host.stored.iter().map(|stored| stored.bytes.len()).sum::<usize>() + 4, body.len());
    let notices = testing::notices();
    assert_eq!(notices.len(), 1, "once a request");
}

#[test]
fn a_large_body_is_checked_in_chunks() {
    let mut body = format!("[{}1]", "1, ".repeat(200_000)).into_bytes();
    let mut host = open(r#"{"require":"json"}"#);
    assert_eq!(host.post("application/json", body.clone()).unwrap().status, 202);
    assert_eq!(host.stored[0].bytes, body);
    body[500_000] = b'?';
    let answer = host.post("application/json", body.clone()).unwrap();
    assert_eq!(answer.status, 400);
    assert!(String::from_utf8_lossy(&answer.body).contains(r#""at":500000"#));
    body.truncate(400_000);
    let answer = host.post("application/json", body).unwrap();
    assert!(String::from_utf8_lossy(&answer.body).contains("the value is not complete at byte 400000"));
}

#[test]
fn elements_and_depth_have_limits() {
    let mut host = open(r#"{"split":"json-array","elements_max":100,"depth_max":5}"#);
    let array = |count: usize| format!("[{}]", vec!["0"; count].join(","));
    assert_eq!(host.post("application/json", array(100)).unwrap().status, 202);
    let answer = host.post("application/json", array(101)).unwrap();
    assert_eq!(answer.status, 413);
    assert!(String::from_utf8_lossy(&answer.body).contains("too-many-elements"));
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(host.post("application/json", nested(5)).unwrap().status, 202);
    assert_eq!(host.post("application/json", nested(6)).unwrap().status, 400);
    assert_eq!(host.stored.len(), 101, "nothing of a refused request is stored");
}

#[test]
fn keys_and_attributes_are_cut_to_their_limits() {
    let long = "k".repeat(10_000);
    let mut host =
        open(r#"{"key":"header:x","dedupe":"query:q","attributes":{"a":"json:/a"},"headers":["x"]}"#);
    let body = format!(r#"{{"a":"{long}"}}"#);
    assert_eq!(host.request(&format!("/?q={long}"), &[("x", &long)], body).unwrap().status, 202);
    let stored = &host.stored[0];
    assert_eq!(stored.key.as_ref().map(String::len), Some(256));
    assert_eq!(stored.dedupe.as_ref().map(String::len), Some(256));
    assert_eq!(stored.attributes.get("a").map(str::len), Some(4096));
    assert_eq!(stored.attributes.get("http.header.x").map(str::len), Some(4096));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_accepted_is_what_serde_accepts(body in r#"(\[|\]|\{|\}|,|"a":|"\\n"|1|-0\.5|true| |\n){0,12}"#) {
        let known: Option<Vec<&RawValue>> = serde_json::from_str(&body).ok();
        let mut host = open(r#"{"split":"json-array","empty":"allow"}"#);
        let answer = host.post("application/json", body.as_str()).unwrap();
        match known {
            Some(elements) => {
                prop_assert_eq!(answer.status, 202);
                let expected: Vec<&[u8]> = elements.iter().map(|element| element.get().as_bytes()).collect();
                let found: Vec<&[u8]> = host.stored.iter().map(|stored| stored.bytes.as_slice()).collect();
                prop_assert_eq!(found, expected);
            }
            None if body.is_empty() => prop_assert_eq!(answer.status, 202),
            None => prop_assert_eq!(answer.status, 400),
        }
        let mut host = open(r#"{"require":"json","empty":"allow"}"#);
        let is_json = body.is_empty() || serde_json::from_str::<&RawValue>(&body).is_ok();
        prop_assert_eq!(host.post("application/json", body.as_str()).unwrap().status, if is_json { 202 } else { 400 });
    }
}
