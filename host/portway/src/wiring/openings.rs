//! From a project's settings to what the runtime opens a plugin with.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use portway_config::{
    Access, Addresses, At, CredentialSettings, GrantSettings, HttpGrantSettings, Isolation, LimitSettings,
    NamedSecret, PluginUse, ProjectPath, SecretForm, StartTls, TcpCredentialSettings, TcpGrantSettings,
    TcpTlsSettings,
};
use portway_model::Attributes;
use portway_net::AddressPolicy;
use portway_net::folder::{self, FolderGrant};
use portway_net::http::{Credentials, HttpGrant};
use portway_net::tcp::{TcpCredentials, TcpGrant, TcpTls, TlsPair, TlsStart};
use portway_runtime::{
    CallLimits, Grant, Grants, Manifest, NoState, Observer, Opening, SecretAction, SecretGrant, SecretValue,
    StateGrant,
};
use zeroize::Zeroizing;

/// Names whom a plugin is opened for.
pub struct Owner<'a> {
    pub interface: &'a str,
    /// Empty for a source.
    pub destination: &'a str,
}

/// The opening of a plugin for its owner.
pub fn of_use(
    owner: &Owner<'_>,
    plugin_use: &PluginUse,
    manifest: &Manifest,
    limits: &LimitSettings,
    observer: Arc<dyn Observer>,
) -> Opening {
    let mut limits = call_limits(manifest, limits);
    if let Some(fuel) = plugin_use.fuel_per_message {
        limits.fuel_per_message = fuel;
    }
    if let Some(bytes) = plugin_use.memory_bytes_max {
        limits.memory_bytes = bytes.as_usize();
    }
    let grants = plugin_use
        .grants
        .iter()
        .map(|(name, granted)| (name.as_str().to_owned(), grant(&granted.value, plugin_use)));
    Opening {
        origin: owner.interface.to_owned(),
        destination: owner.destination.to_owned(),
        settings: plugin_use.settings.to_text(),
        attributes: engine_attributes(),
        grants: Grants(grants.collect::<BTreeMap<_, _>>()),
        limits,
        isolation: match plugin_use.isolation {
            Isolation::Shared => portway_runtime::Isolation::Shared,
            Isolation::Call => portway_runtime::Isolation::Call,
        },
        timed: false,
        observer,
    }
}

/// A plugin that asks for less than the engine gives gets what it asks for.
fn call_limits(manifest: &Manifest, limits: &LimitSettings) -> CallLimits {
    let wanted = &manifest.limits;
    let (fuel, memory) = (limits.fuel_per_message, limits.memory_bytes_max.as_usize());
    CallLimits {
        fuel_per_message: wanted.fuel_per_message.map_or(fuel, |wanted| wanted.min(fuel)),
        memory_bytes: wanted.memory_bytes.map_or(memory, |wanted| wanted.min(memory)),
        call_timeout: limits.call_timeout,
        copy_bytes: limits.copy_bytes_max.as_usize(),
    }
}

fn engine_attributes() -> Attributes {
    let version = ("engine.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    Attributes::new(vec![version]).unwrap_or_default()
}

fn grant(settings: &GrantSettings, plugin_use: &PluginUse) -> Grant {
    match settings {
        // Where something is delivered, it is bound to what is stored for the destination.
        GrantSettings::State(state) => Grant::State(StateGrant {
            space: state.space(plugin_use).as_str().into(),
            keys_max: state.keys_max,
            store: Arc::new(NoState),
        }),
        GrantSettings::Http(http) => Grant::Http(http_grant(http)),
        GrantSettings::Tcp(tcp) => Grant::Tcp(tcp_grant(tcp)),
        GrantSettings::Reveal(reveal) => {
            Grant::Secret(secret_grant(&reveal.secret, reveal.form, SecretAction::Reveal))
        }
        GrantSettings::Sign(sign) => Grant::Secret(secret_grant(&sign.secret, sign.form, SecretAction::Sign)),
        GrantSettings::Folder(folder) => Grant::Folder(FolderGrant {
            path: folder.path.value.as_path().to_owned(),
            access: match folder.access {
                Access::Read => folder::Access::Read,
                Access::Write => folder::Access::Write,
            },
        }),
    }
}

fn secret_grant(secret: &NamedSecret, form: SecretForm, action: SecretAction) -> SecretGrant {
    // One that is not in its form is a problem of the project, which then does not run.
    let bytes = secret_bytes(secret, form).unwrap_or_default();
    SecretGrant { name: secret.name.clone(), value: SecretValue::new(bytes), action }
}

/// The bytes that a secret's text stands for; none: it is not written in this form.
pub fn secret_bytes(secret: &NamedSecret, form: SecretForm) -> Option<Zeroizing<Vec<u8>>> {
    let text = secret.value.reveal();
    let bytes = match form {
        SecretForm::Text => Some(text.as_bytes().to_vec()),
        // As webhook services show their keys.
        SecretForm::Base64 => STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text).trim()).ok(),
        SecretForm::Hex => from_hex(text.trim()),
    };
    bytes.filter(|bytes| !bytes.is_empty()).map(Zeroizing::new)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = Zeroizing::new(digits?);
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

fn http_grant(settings: &HttpGrantSettings) -> HttpGrant {
    let credentials = settings.credentials.as_ref().map(|credentials| match credentials {
        CredentialSettings::Bearer(bearer) => Credentials::Bearer(bearer.token.reveal().to_owned()),
        CredentialSettings::Basic(basic) => Credentials::Basic {
            user: basic.user.reveal().to_owned(),
            password: basic.password.reveal().to_owned(),
        },
        CredentialSettings::Header(header) => {
            Credentials::Header { name: header.name.clone(), value: header.value.reveal().to_owned() }
        }
    });
    let headers = settings.headers.iter();
    HttpGrant {
        base: settings.url.clone(),
        credentials,
        headers: headers.map(|(name, value)| (name.as_str().to_owned(), value.reveal().to_owned())).collect(),
        timeout: settings.timeout,
        response_bytes_max: settings.response_bytes_max.as_usize(),
        addresses: policy(settings.addresses),
        tls_roots: settings.tls_roots.as_ref().map(|roots| roots.value.as_path().to_owned()),
    }
}

fn tcp_grant(settings: &TcpGrantSettings) -> TcpGrant {
    TcpGrant {
        host: settings.host.clone(),
        port: settings.port,
        connections_max: settings.connections_max,
        connect_timeout: settings.connect_timeout,
        addresses: policy(settings.addresses),
        tls: settings.tls.settings().map(tcp_tls),
        credentials: settings.credentials.as_ref().map(|TcpCredentialSettings::Basic(basic)| {
            TcpCredentials {
                user: basic.user.reveal().to_owned(),
                password: basic.password.reveal().to_owned(),
            }
        }),
    }
}

fn tcp_tls(settings: &TcpTlsSettings) -> TcpTls {
    let path = |file: &At<ProjectPath>| file.value.as_path().to_owned();
    let pair = settings.certificate.as_ref().zip(settings.key.as_ref());
    TcpTls {
        roots: settings.roots.as_ref().map(path),
        server_name: settings.server_name.clone(),
        pair: pair.map(|(certificate, key)| TlsPair { certificate: path(certificate), key: path(key) }),
        start: match settings.starttls {
            StartTls::No => TlsStart::Connect,
            StartTls::Wanted => TlsStart::Wanted,
            StartTls::Required => TlsStart::Required,
        },
    }
}

pub(super) fn policy(addresses: Addresses) -> AddressPolicy {
    match addresses {
        Addresses::Operator => AddressPolicy::Operator,
        Addresses::Public => AddressPolicy::Public,
        Addresses::Any => AddressPolicy::Any,
    }
}

#[cfg(test)]
mod tests {
    use portway_config::Secret;

    use super::*;

    fn bytes(text: &str, form: SecretForm) -> Option<Vec<u8>> {
        let secret = NamedSecret { name: "K".into(), value: Secret::new(text) };
        secret_bytes(&secret, form).map(|bytes| bytes.to_vec())
    }

    #[test]
    fn a_secret_is_read_in_its_form_or_not_at_all() {
        assert_eq!(bytes("a1", SecretForm::Text), Some(b"a1".to_vec()));
        assert_eq!(bytes("whsec_aGk=", SecretForm::Base64), Some(b"hi".to_vec()));
        assert_eq!(bytes("6869", SecretForm::Hex), Some(b"hi".to_vec()));
        for (text, form) in [("686", SecretForm::Hex), ("6x", SecretForm::Hex), ("a%", SecretForm::Base64)] {
            assert_eq!(bytes(text, form), None, "{text}");
        }
    }
}
