//! Who may send: what a request has to show, checked before its body is read where that is possible.
//!
//! Secrets are compared without telling by the time it takes how much of a guess was right, and overwritten
//! when they are let go.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use portway_model::Timestamp;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Signatures of one header that are looked at.
const SIGNATURES_MAX: usize = 8;

/// What a request has to show.
#[derive(Clone)]
pub enum Auth {
    /// One of these tokens, as `Authorization: Bearer`.
    Bearer(Vec<Zeroizing<String>>),
    Basic {
        user: String,
        password: Zeroizing<String>,
    },
    /// One of these values in a header.
    Header {
        name: String,
        values: Vec<Zeroizing<String>>,
    },
    Signature(Signature),
}

/// A signature (HMAC with SHA-256) under one of some keys.
#[derive(Clone)]
pub struct Signature {
    pub keys: Vec<Zeroizing<Vec<u8>>>,
    pub scheme: Scheme,
}

/// What is signed, and where the signature stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Id, time and body, in `webhook-id`, `webhook-timestamp` and `webhook-signature`.
    StandardWebhooks { tolerance: Duration },
    /// The body, in hexadecimal or base64.
    Body { header: String, prefix: String },
}

/// Why a request is not let in. Never says what would have been right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AuthError {
    #[error("the request does not show who sends it")]
    Missing,
    #[error("what the request shows is not right")]
    Wrong,
    #[error("the time in the signature is too far from now")]
    TooOld,
}

/// What was found out without the body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It is let in; the user's name where there is one.
    Admitted(Option<String>),
    /// It depends on the body.
    Unsigned,
}

impl Scheme {
    /// The key that a secret's text stands for.
    pub fn key_of(&self, secret: &str) -> Zeroizing<Vec<u8>> {
        let plain = || secret.as_bytes().to_vec();
        Zeroizing::new(match self {
            Scheme::StandardWebhooks { .. } => {
                let encoded = secret.strip_prefix("whsec_").map(|encoded| STANDARD.decode(encoded));
                encoded.and_then(Result::ok).unwrap_or_else(plain)
            }
            Scheme::Body { .. } => plain(),
        })
    }
}

impl Auth {
    /// What can be told from the head of a request.
    pub(super) fn check_head(&self, headers: &HeaderMap, now: Timestamp) -> Result<Known, AuthError> {
        match self {
            Auth::Bearer(tokens) => {
                let shown = credentials(headers, "bearer")?;
                is_one_of(shown.as_bytes(), tokens).then_some(Known::Admitted(None)).ok_or(AuthError::Wrong)
            }
            Auth::Basic { user, password } => {
                let shown = STANDARD.decode(credentials(headers, "basic")?).map(Zeroizing::new);
                let shown = shown.map_err(|_| AuthError::Wrong)?;
                let wanted = [Zeroizing::new(format!("{user}:{}", **password))];
                let admitted = || Known::Admitted(Some(user.clone()));
                is_one_of(&shown, &wanted).then(admitted).ok_or(AuthError::Wrong)
            }
            Auth::Header { name, values } => {
                let shown = headers.get(name.as_str()).ok_or(AuthError::Missing)?;
                is_one_of(shown.as_bytes(), values).then_some(Known::Admitted(None)).ok_or(AuthError::Wrong)
            }
            Auth::Signature(signature) => signature.check_head(headers, now).map(|()| Known::Unsigned),
        }
    }

    /// The rest, where the body decides.
    pub(super) fn check_body(&self, headers: &HeaderMap, body: &[u8]) -> Result<(), AuthError> {
        match self {
            Auth::Bearer(_) | Auth::Basic { .. } | Auth::Header { .. } => Ok(()),
            Auth::Signature(signature) => signature.check_body(headers, body),
        }
    }

    /// For the header `WWW-Authenticate`.
    pub(super) fn challenge(&self) -> Option<&'static str> {
        match self {
            Auth::Bearer(_) => Some("Bearer"),
            Auth::Basic { .. } => Some("Basic realm=\"portway\", charset=\"UTF-8\""),
            Auth::Header { .. } | Auth::Signature(_) => None,
        }
    }
}

impl Signature {
    fn check_head(&self, headers: &HeaderMap, now: Timestamp) -> Result<(), AuthError> {
        match &self.scheme {
            Scheme::StandardWebhooks { tolerance } => {
                let signed = StandardHead::of(headers)?;
                let seconds: u64 = signed.timestamp.parse().map_err(|_| AuthError::Wrong)?;
                let apart = seconds.abs_diff(now.0 / 1_000);
                if apart > tolerance.as_secs() { Err(AuthError::TooOld) } else { Ok(()) }
            }
            Scheme::Body { header, .. } => text(headers, header).map(drop),
        }
    }

    fn check_body(&self, headers: &HeaderMap, body: &[u8]) -> Result<(), AuthError> {
        let is_right = match &self.scheme {
            Scheme::StandardWebhooks { .. } => {
                let signed = StandardHead::of(headers)?;
                let head = format!("{}.{}.", signed.id, signed.timestamp);
                let versions = signed.signatures.split(' ').take(SIGNATURES_MAX);
                let mut shown = versions.filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
                shown
                    .any(|shown| self.keys.iter().any(|key| is_signed(key, &[head.as_bytes(), body], &shown)))
            }
            Scheme::Body { header, prefix } => {
                let shown = text(headers, header)?.strip_prefix(prefix.as_str()).ok_or(AuthError::Wrong)?;
                let shown = hex(shown).or_else(|| STANDARD.decode(shown).ok()).ok_or(AuthError::Wrong)?;
                self.keys.iter().any(|key| is_signed(key, &[body], &shown))
            }
        };
        if is_right { Ok(()) } else { Err(AuthError::Wrong) }
    }
}

/// The headers of Standard Webhooks.
struct StandardHead<'a> {
    id: &'a str,
    timestamp: &'a str,
    signatures: &'a str,
}

impl<'a> StandardHead<'a> {
    fn of(headers: &'a HeaderMap) -> Result<Self, AuthError> {
        let id = text(headers, "webhook-id")?;
        let timestamp = text(headers, "webhook-timestamp")?;
        Ok(StandardHead { id, timestamp, signatures: text(headers, "webhook-signature")? })
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, AuthError> {
    headers.get(name).ok_or(AuthError::Missing)?.to_str().map_err(|_| AuthError::Wrong)
}

/// What stands behind the scheme in `Authorization`.
fn credentials<'a>(headers: &'a HeaderMap, scheme: &str) -> Result<&'a str, AuthError> {
    let value = text(headers, AUTHORIZATION.as_str())?;
    let (shown, credentials) = value.split_once(' ').ok_or(AuthError::Wrong)?;
    if shown.eq_ignore_ascii_case(scheme) { Ok(credentials.trim()) } else { Err(AuthError::Wrong) }
}

/// By digests: whatever a comparison of them tells, nobody can choose what they are.
fn is_one_of(shown: &[u8], wanted: &[Zeroizing<String>]) -> bool {
    let shown = Sha256::digest(shown);
    wanted.iter().fold(false, |is_one, wanted| (Sha256::digest(wanted.as_bytes()) == shown) | is_one)
}

fn is_signed(key: &[u8], parts: &[&[u8]], shown: &[u8]) -> bool {
    // A key of any length is taken.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return false };
    parts.iter().for_each(|part| mac.update(part));
    mac.verify_slice(shown).is_ok()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    digits.chunks_exact(2).map(|pair| Some(pair.first()? << 4 | pair.get(1)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_614_265_330_000);

    fn secret(text: &str) -> Zeroizing<String> {
        Zeroizing::new(text.to_owned())
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn tokens_and_passwords_are_compared_whole() {
        let bearer = Auth::Bearer(vec![secret("one"), secret("two")]);
        let check = |auth: &Auth, shown: &str| auth.check_head(&headers(&[("authorization", shown)]), NOW);
        assert_eq!(check(&bearer, "Bearer two"), Ok(Known::Admitted(None)));
        assert_eq!(check(&bearer, "bearer one"), Ok(Known::Admitted(None)));
        for wrong in ["Bearer", "Bearer on", "Bearer onee", "Basic one", "one"] {
            assert_eq!(check(&bearer, wrong), Err(AuthError::Wrong), "{wrong}");
        }
        assert_eq!(bearer.check_head(&HeaderMap::new(), NOW), Err(AuthError::Missing));
        let basic = Auth::Basic { user: "lab".into(), password: secret("a:b") };
        assert_eq!(check(&basic, "Basic bGFiOmE6Yg=="), Ok(Known::Admitted(Some("lab".into()))));
        assert_eq!(check(&basic, "Basic bGFiOmE="), Err(AuthError::Wrong));
        let header = Auth::Header { name: "x-api-key".into(), values: vec![secret("k")] };
        assert_eq!(header.check_head(&headers(&[("x-api-key", "k")]), NOW), Ok(Known::Admitted(None)));
        assert_eq!(header.check_head(&headers(&[("x-api-key", "K")]), NOW), Err(AuthError::Wrong));
    }

    /// The example of the specification of Standard Webhooks.
    #[test]
    fn a_standard_webhook_is_verified() {
        let scheme = Scheme::StandardWebhooks { tolerance: Duration::from_secs(300) };
        let key = scheme.key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let auth = Auth::Signature(Signature { keys: vec![b"other".to_vec().into(), key], scheme });
        let body = br#"{"test": 2432232314}"#;
        let signed = |signature: &str| {
            headers(&[
                ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
                ("webhook-timestamp", "1614265330"),
                ("webhook-signature", signature),
            ])
        };
        let good = signed("v1,xxxx v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v2,abc");
        assert_eq!(auth.check_head(&good, NOW), Ok(Known::Unsigned));
        assert_eq!(auth.check_body(&good, body), Ok(()));
        assert_eq!(auth.check_body(&good, b"{}"), Err(AuthError::Wrong));
        assert_eq!(auth.check_body(&signed("v1,"), body), Err(AuthError::Wrong));
        let late = Timestamp(NOW.0 + 301_000);
        assert_eq!(auth.check_head(&good, late), Err(AuthError::TooOld));
        assert_eq!(auth.check_head(&HeaderMap::new(), NOW), Err(AuthError::Missing));
    }

    #[test]
    fn a_signed_body_is_verified_in_hexadecimal_and_base64() {
        // printf 'hello' | openssl dgst -sha256 -hmac key
        let hexadecimal = "9307b3b915efb5171ff14d8cb55fbcc798c6c0ef1456d66ded1a6aa723a58b7b";
        let scheme = Scheme::Body { header: "x-sig".into(), prefix: "sha256=".into() };
        let auth = Auth::Signature(Signature { keys: vec![b"key".to_vec().into()], scheme });
        let check = |shown: &str, body: &[u8]| auth.check_body(&headers(&[("x-sig", shown)]), body);
        assert_eq!(check(&format!("sha256={hexadecimal}"), b"hello"), Ok(()));
        let base64 = STANDARD.encode(hex(hexadecimal).unwrap());
        assert_eq!(check(&format!("sha256={base64}"), b"hello"), Ok(()));
        assert_eq!(check(hexadecimal, b"hello"), Err(AuthError::Wrong));
        assert_eq!(check(&format!("sha256={hexadecimal}"), b"hallo"), Err(AuthError::Wrong));
        assert_eq!(check("sha256=", b"hello"), Err(AuthError::Wrong));
    }
}
