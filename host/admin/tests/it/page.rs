//! The web page's files: for everybody under our Host, under a policy that lets nothing else in.

use crate::Api;

#[tokio::test]
async fn the_page_comes_without_a_token_and_with_its_policy() {
    let api = Api::start().await;
    for (path, content_type, part) in [
        ("/", "text/html; charset=utf-8", "<title>Portway</title>"),
        ("/web/app.js", "text/javascript; charset=utf-8", "import "),
        ("/web/style.css", "text/css; charset=utf-8", ":focus-visible"),
        ("/web/icon.svg", "image/svg+xml", "<svg "),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", api.address());
        let (code, head, body) = api.send_raw(&request).await;
        assert_eq!(code, 200, "{path}");
        assert!(head.contains(&format!("content-type: {content_type}\r\n")), "{path}: {head}");
        let policy = head.lines().find(|line| line.starts_with("content-security-policy: ")).unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(
            policy.contains("frame-ancestors 'none'") && policy.contains("script-src 'self'"),
            "{policy}"
        );
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
        assert!(body.contains(part), "{path}");
    }
    api.stop().await;
}

#[tokio::test]
async fn the_page_is_refused_under_another_name_and_data_without_the_token() {
    let api = Api::start().await;
    let rebound = "GET / HTTP/1.1\r\nhost: rebound.example\r\nconnection: close\r\n\r\n";
    assert_eq!(api.send_raw(rebound).await.0, 421);
    for path in ["/web/", "/web/none.js", "/web/../api/v1/status", "/api/v1/stream", "/api/v1/openapi.json"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", api.address());
        assert_eq!(api.send_raw(&request).await.0, 401, "{path}");
    }
    api.stop().await;
}

#[tokio::test]
async fn the_document_of_the_api_is_served_and_its_operations_are_there() {
    let api = Api::start().await;
    let (code, head, body) = api.send("GET /api/v1/openapi.json", "").await;
    assert_eq!((code, body.as_str()), (200, portway_admin::openapi_document().as_str()));
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    let document: serde_json::Value = serde_json::from_str(&body).unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if path == "/api/v1/stream" {
                continue;
            }
            let filled = path.replace("{id}", "42").replace("{interface}", "lab").replace("{name}", "api");
            let line = format!("{} {filled}", method.to_uppercase());
            let request = if operation["requestBody"].is_null() { "" } else { "{}" };
            let (code, _, body) = api.send(&line, request).await;
            assert!(
                !operation["responses"][code.to_string()].is_null(),
                "{line}: {code} is not told: {body}"
            );
            assert!(!body.contains("\"no-route\"") && code != 405, "{line}: {body}");
        }
    }
    api.stop().await;
}
