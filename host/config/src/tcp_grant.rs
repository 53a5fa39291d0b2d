//! The grant of a TCP peer: where it is, how it is protected, and who the host says it is.

use std::time::Duration;

use portway_model::code;
use serde_json::{Value as Json, json};
use toml::de::DeValue;

use crate::by_type::by_type;
use crate::grants::{Addresses, BasicSettings};
use crate::group::GroupDoc;
use crate::list::words;
use crate::reader::{Node, Reader};
use crate::schema::Definitions;
use crate::value::Value;
use crate::{At, Place, Problem, ProjectPath};

group! {
    /// A TCP peer, with `type = "tcp"`.
    TcpGrantSettings at "grants.NAME (tcp)" in "interfaces/*.toml" tag "type" {
        /// Name or address of the peer.
        host: String, marked(Env);
        /// Its port.
        port: u16, within(1, 65_535);
        /// Connections at the same time.
        connections_max: u32 = 8, within(1, 1_024);
        /// Time to connect, with TLS.
        connect_timeout: Duration = Duration::from_secs(10), within(Duration::from_millis(10), Duration::from_secs(600));
        /// Which addresses the name may resolve to, as for `http`.
        addresses: Addresses = Addresses::Operator;
        /// Speak TLS: `true`, or a table that says how.
        tls: TcpTlsChoice = TcpTlsChoice::Off;
        /// How the host logs in, for a plugin that does. They are written over TLS alone, and the
        /// plugin does not see them.
        credentials: Option<TcpCredentialSettings>;
    }
}

group! {
    /// TLS to a TCP peer; `tls = true` is this with nothing set.
    TcpTlsSettings at "grants.NAME.tls" in "interfaces/*.toml" {
        /// The name its certificate has to have; none: the host.
        server_name: Option<String>;
        /// PEM file with the authorities to trust instead of the well-known ones.
        roots: Option<At<ProjectPath>>;
        /// PEM file with the certificate to show, and its chain.
        certificate: Option<At<ProjectPath>>;
        /// PEM file with its private key.
        key: Option<At<ProjectPath>>;
        /// For plugins that begin TLS on an open connection, such as `smtp`. `required`: nothing else
        /// goes over it before. `wanted`: where the peer offers it; who can change what is said on
        /// the way can take the offer out. `no`: TLS from the first byte.
        starttls: StartTls = StartTls::No;
    }
}

/// When TLS begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartTls {
    #[default]
    No,
    Wanted,
    Required,
}

words!(StartTls { "no" => StartTls::No, "wanted" => StartTls::Wanted, "required" => StartTls::Required });

/// How the host shows a TCP peer who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpCredentialSettings {
    Basic(BasicSettings),
}

by_type!(TcpCredentialSettings {
    "basic" => Basic(BasicSettings),
});

/// Whether TLS is spoken, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TcpTlsChoice {
    #[default]
    Off,
    On(TcpTlsSettings),
}

impl TcpTlsChoice {
    /// None: no TLS.
    pub fn settings(&self) -> Option<&TcpTlsSettings> {
        match self {
            TcpTlsChoice::Off => None,
            TcpTlsChoice::On(settings) => Some(settings),
        }
    }
}

impl Value for TcpTlsChoice {
    fn type_name() -> String {
        "`true`, `false` or table".to_owned()
    }

    fn read(node: &Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        match node.value {
            DeValue::Boolean(false) => Some(TcpTlsChoice::Off),
            DeValue::Boolean(true) => TcpTlsSettings::read_absent(reader).map(TcpTlsChoice::On),
            _ => TcpTlsSettings::read(node, reader).map(TcpTlsChoice::On),
        }
    }

    fn schema(definitions: &mut Definitions) -> Json {
        json!({ "anyOf": [{ "type": "boolean" }, TcpTlsSettings::schema(definitions)] })
    }

    fn show(&self) -> String {
        match self {
            TcpTlsChoice::Off => "false".to_owned(),
            TcpTlsChoice::On(_) => "true".to_owned(),
        }
    }

    fn groups(docs: &mut Vec<GroupDoc>) {
        TcpTlsSettings::groups(docs);
    }
}

/// What the options of a grant do not say of themselves.
pub(crate) fn check(place: &Place, grant: &TcpGrantSettings, problems: &mut Vec<Problem>) {
    let tls = grant.tls.settings();
    let mut report = |text: &str, hint: &str| {
        problems.push(Problem::new(place.clone(), code::BAD_VALUE, text.to_owned()).hint(hint));
    };
    if tls.is_some_and(|tls| tls.certificate.is_some() != tls.key.is_some()) {
        report("`tls` has one of `certificate` and `key`", "name both, or neither");
    }
    let is_sure = tls.is_some_and(|tls| tls.starttls != StartTls::Wanted);
    if grant.credentials.is_some() && !is_sure {
        report(
            "`credentials` would be written without TLS",
            "write `tls = true`, or `tls = { starttls = \"required\" }` for a peer that begins plain",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GrantSettings;
    use crate::tests::{destination, problems_of_sender};

    fn grant(options: &str) -> TcpGrantSettings {
        let lines = format!(
            "[destination.sender]\nplugin = \"x\"\n\
             grants.peer = {{ type = \"tcp\", host = \"ehr\", port = 2575, {options} }}\n"
        );
        let sender = destination(&lines).sender.unwrap();
        match &sender.grants.values().next().unwrap().value {
            GrantSettings::Tcp(tcp) => tcp.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tls_is_a_word_or_a_table() {
        assert_eq!(grant("tls = false").tls, TcpTlsChoice::Off);
        assert_eq!(grant("tls = true").tls, grant("tls = {}").tls);
        let tls = grant("tls = { starttls = \"required\", certificate = \"c.pem\", key = \"k.pem\" }").tls;
        let tls = tls.settings().unwrap();
        assert_eq!(tls.starttls, StartTls::Required);
        assert!(tls.certificate.is_some() && tls.key.is_some());
        let problems =
            problems_of_sender("grants.p = { type = \"tcp\", host = \"h\", port = 1, tls = \"yes\" }");
        assert!(problems.contains("`tls`"), "{problems}");
    }

    #[test]
    fn credentials_are_not_shown_and_need_tls() {
        let login = "credentials = { type = \"basic\", user = \"lab\", password = \"${secret:T}\" }";
        let granted = grant(&format!("tls = true, {login}"));
        assert!(!format!("{granted:?}").contains("s3cret"), "{granted:?}");
        for tls in ["tls = false", "tls = { starttls = \"wanted\" }"] {
            let problems = problems_of_sender(&format!(
                "grants.p = {{ type = \"tcp\", host = \"h\", port = 1, {tls}, \
                 credentials = {{ type = \"basic\", user = \"u\", password = \"p\" }} }}"
            ));
            assert!(problems.contains("`credentials` would be written without TLS"), "{problems}");
        }
    }

    #[test]
    fn half_a_pair_is_a_problem() {
        let problems = problems_of_sender(
            "grants.p = { type = \"tcp\", host = \"h\", port = 1, tls = { certificate = \"c.pem\" } }",
        );
        assert!(problems.contains("`tls` has one of `certificate` and `key`"), "{problems}");
    }
}
