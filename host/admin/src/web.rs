//! The web page: files of `web/`, embedded, and the policy under which a browser runs them.
//!
//! They hold no data, so they are given to whoever asks under our own Host; the data comes from the
//! API, for the token alone.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::HeaderName;
use http::header::{self, HeaderValue};

/// Own scripts, styles and pictures, questions to this engine, and nothing else. Nothing of a page
/// may ever become HTML by way of a text: scripts cannot do that under this policy.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// One file of the page.
struct PageFile {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($path:literal = $content_type:ident $file:literal),+ $(,)?) => {
        const FILES: &[PageFile] = &[$(PageFile {
            path: $path,
            content_type: $content_type,
            text: include_str!(concat!("../web/", $file)),
        }),+];
    };
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

files! {
    "/" = HTML "index.html",
    "/web/api.js" = SCRIPT "api.js",
    "/web/app.js" = SCRIPT "app.js",
    "/web/body.js" = SCRIPT "body.js",
    "/web/dom.js" = SCRIPT "dom.js",
    "/web/hl7.js" = SCRIPT "hl7.js",
    "/web/icon.svg" = PICTURE "icon.svg",
    "/web/live.js" = SCRIPT "live.js",
    "/web/messages.js" = SCRIPT "messages.js",
    "/web/overview.js" = SCRIPT "overview.js",
    "/web/rates.js" = SCRIPT "rates.js",
    "/web/readable.js" = SCRIPT "readable.js",
    "/web/stuck.js" = SCRIPT "stuck.js",
    "/web/style.css" = STYLE "style.css",
    "/web/words.js" = SCRIPT "words.js",
}

/// Whether a path is one of the page's files, which need no token.
pub(crate) fn is_page(path: &str) -> bool {
    FILES.iter().any(|file| file.path == path)
}

/// The page's files.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, file| router.route(file.path, get(|| async { answer(file) })))
}

fn answer(file: &PageFile) -> Response {
    let headers: [(HeaderName, HeaderValue); 4] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(file.content_type)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    ];
    (headers, file.text).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        let found: BTreeSet<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains('.'))
            .map(|name| if name == "index.html" { "/".to_owned() } else { format!("/web/{name}") })
            .collect();
        let served: BTreeSet<_> = FILES.iter().map(|file| file.path.to_owned()).collect();
        assert_eq!(found, served);
    }

    #[test]
    fn the_page_takes_nothing_from_elsewhere_and_writes_no_html() {
        for file in FILES {
            for never in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
            {
                assert!(!file.text.contains(never), "{} has {never}", file.path);
            }
            let outside = |part: &str| file.text.replace("http://www.w3.org/2000/svg", "").contains(part);
            assert!(!outside("http://") && !outside("https://"), "{} names another site", file.path);
            let is_inline =
                file.path == "/" && (file.text.contains("style=") || file.text.contains("<style"));
            assert!(!is_inline, "the page has a style inside");
        }
    }
}
