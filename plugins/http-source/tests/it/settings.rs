//! Settings that are refused, each with a sentence.

use portway_http_source::HttpMessages;
use portway_sdk::testing::HttpHost;

#[test]
fn what_does_not_fit_is_refused() {
    let cases = [
        (r#"{"elements_max":0}"#, "setting `elements_max`: must be from 1 to 100000"),
        (r#"{"elements_max":100001}"#, "setting `elements_max`: must be from 1 to 100000"),
        (r#"{"depth_max":129}"#, "setting `depth_max`: must be from 1 to 128"),
        (r#"{"key":"x-tenant"}"#, "setting `key`: `x-tenant` is no place"),
        (r#"{"dedupe":"json:id"}"#, "setting `dedupe`: `json:id` is no place"),
        (
            r#"{"dedupe":"header:x","idempotency_key":true}"#,
            "setting `dedupe`: set either this or `idempotency_key`",
        ),
        (r#"{"attributes":{"x":""}}"#, "setting `attributes.x`: must say where the value stands"),
        (r#"{"attributes":{"X":"header:x"}}"#, "setting `attributes.X`: `X` can be no attribute"),
        (
            r#"{"attributes":{"portway.x":"header:x"}}"#,
            "setting `attributes.portway.x`: `portway.x` can be no",
        ),
        (r#"{"headers":["a b"]}"#, "setting `headers`: `http.header.a b` can be no attribute"),
        (r#"{"status":203}"#, "setting `status`: must be 200, 201, 202 or 204"),
        (r#"{"answer":"text","answer_type":"a\nb"}"#, "setting `answer_type`: must be a content type"),
        (r#"{"split":"csv"}"#, "setting `split`: unknown variant"),
    ];
    for (settings, expected) in cases {
        let text =
            HttpHost::<HttpMessages>::open(settings).map_or_else(|failure| failure.text, |_| "fine".into());
        assert!(text.starts_with(expected), "{settings}: {text}");
    }
    let many: Vec<String> = (0..17).map(|n| format!("\"x{n}\"")).collect();
    for list in ["headers", "query", "content_types"] {
        let settings = format!(r#"{{"{list}":[{}]}}"#, many.join(","));
        let text =
            HttpHost::<HttpMessages>::open(&settings).map_or_else(|failure| failure.text, |_| "fine".into());
        assert_eq!(text, format!("setting `{list}`: at most 16 are possible"));
    }
    let long = format!(r#"{{"answer_text":"{}"}}"#, "x".repeat(65_537));
    assert!(HttpHost::<HttpMessages>::open(&long).is_err());
}
