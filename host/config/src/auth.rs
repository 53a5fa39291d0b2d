//! How an HTTP source knows who sends.

use std::time::Duration;

use crate::Secret;
use crate::by_type::by_type;
use crate::list::words;

/// What a request has to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthSettings {
    Bearer(BearerAuthSettings),
    Basic(BasicAuthSettings),
    Header(HeaderAuthSettings),
    Signature(SignatureAuthSettings),
}

group! {
    /// Requests show a token, with `type = "bearer"`: `Authorization: Bearer TOKEN`.
    BearerAuthSettings at "source.auth (bearer)" in "interfaces/*.toml" tag "type" {
        /// The token.
        token: Secret, marked(Secret);
        /// Another one that is taken as well, while senders change over.
        former: Option<Secret>, marked(Secret);
    }
}

group! {
    /// Requests show a user and a password, with `type = "basic"`.
    BasicAuthSettings at "source.auth (basic)" in "interfaces/*.toml" tag "type" {
        user: Secret, marked(Secret);
        password: Secret, marked(Secret);
    }
}

group! {
    /// Requests show a value in a header of their own, with `type = "header"`.
    HeaderAuthSettings at "source.auth (header)" in "interfaces/*.toml" tag "type" {
        /// Name of the header, such as `x-api-key`.
        name: String;
        value: Secret, marked(Secret);
        /// Another value that is taken as well, while senders change over.
        former: Option<Secret>, marked(Secret);
    }
}

group! {
    /// Requests are signed with a shared secret (HMAC with SHA-256), with `type = "signature"`.
    /// What can be told without the body (header, age) is refused before the body is read.
    SignatureAuthSettings at "source.auth (signature)" in "interfaces/*.toml" tag "type" {
        /// The secret; `whsec_` and base64 for `standard-webhooks`, else the bytes of the text.
        secret: Secret, marked(Secret);
        /// Another one that is taken as well, while senders change over.
        former: Option<Secret>, marked(Secret);
        /// `standard-webhooks`: id, time and body are signed, in `webhook-*` headers.
        /// `body`: the body alone is, in a header of its own.
        scheme: SignatureScheme = SignatureScheme::StandardWebhooks;
        /// The header of the scheme `body`: the signature in hexadecimal or base64.
        header: String = "x-hub-signature-256".to_owned();
        /// What stands before the signature there.
        prefix: Option<String>;
        /// How far the time of a signed request may be from now; for `standard-webhooks`.
        tolerance: Duration = Duration::from_secs(300), within(Duration::from_secs(1), Duration::from_secs(86_400));
    }
}

/// What is signed, and where the signature stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignatureScheme {
    #[default]
    StandardWebhooks,
    Body,
}

words!(SignatureScheme {
    "standard-webhooks" => SignatureScheme::StandardWebhooks,
    "body" => SignatureScheme::Body,
});

by_type!(AuthSettings {
    "bearer" => Bearer(BearerAuthSettings),
    "basic" => Basic(BasicAuthSettings),
    "header" => Header(HeaderAuthSettings),
    "signature" => Signature(SignatureAuthSettings),
});
