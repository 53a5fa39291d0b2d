//! What a plugin may reach. What is not granted answers `denied`.

use std::collections::BTreeMap;
use std::time::Duration;

use url::Url;

use crate::by_type::by_type;
use crate::list::words;
use crate::{
    At, ByteSize, ProjectPath, RevealGrantSettings, Secret, SignGrantSettings, StateGrantSettings,
    TcpGrantSettings,
};

/// What one slot of a plugin is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantSettings {
    Http(HttpGrantSettings),
    Folder(FolderGrantSettings),
    Tcp(TcpGrantSettings),
    Reveal(RevealGrantSettings),
    Sign(SignGrantSettings),
    State(StateGrantSettings),
}

impl GrantSettings {
    /// The type as a manifest and a project write it.
    pub fn type_word(&self) -> &'static str {
        match self {
            GrantSettings::Http(_) => "http",
            GrantSettings::Folder(_) => "folder",
            GrantSettings::Tcp(_) => "tcp",
            GrantSettings::Reveal(_) => "reveal",
            GrantSettings::Sign(_) => "sign",
            GrantSettings::State(_) => "state",
        }
    }
}

group! {
    /// A web address a plugin may call, with `type = "http"`.
    /// The host attaches credentials; only this scheme, host, port and path prefix get them.
    HttpGrantSettings at "grants.NAME (http)" in "interfaces/*.toml" tag "type" {
        /// The address; requests stay below its path.
        url: Url, marked(Env);
        /// How the host shows who it is.
        credentials: Option<CredentialSettings>;
        /// Headers the host adds to every request.
        headers: BTreeMap<crate::Name, Secret> = BTreeMap::new(), marked(Secret);
        /// Time for one request.
        timeout: Duration = Duration::from_secs(30), within(Duration::from_millis(10), Duration::from_secs(3_600));
        /// Bytes of a response that are read.
        response_bytes_max: ByteSize = ByteSize::mb(1), within(ByteSize::kb(1), ByteSize::mb(64));
        /// Which addresses the name may resolve to: `operator` is everything but link-local
        /// (also the metadata services of clouds) and multicast addresses, `public` only the
        /// public internet.
        addresses: Addresses = Addresses::Operator;
        /// PEM file with the authorities to trust instead of the well-known ones.
        tls_roots: Option<At<ProjectPath>>;
    }
}

group! {
    /// A folder of this machine, with `type = "folder"`.
    /// It is a wall: no link, no `..` and no special file leads out of it.
    FolderGrantSettings at "grants.NAME (folder)" in "interfaces/*.toml" tag "type" {
        /// The folder; it has to exist.
        path: At<ProjectPath>, marked(Env);
        /// What may be done in it; `write` includes reading.
        access: Access = Access::Write;
    }
}

/// How the host shows a web server who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSettings {
    Bearer(BearerSettings),
    Basic(BasicSettings),
    Header(HeaderSettings),
}

group! {
    /// Credentials with `type = "bearer"`.
    BearerSettings at "grants.NAME.credentials (bearer)" in "interfaces/*.toml" tag "type" {
        /// Sent as `Authorization: Bearer`.
        token: Secret, marked(Secret);
    }
}

group! {
    /// Credentials with `type = "basic"`.
    BasicSettings at "grants.NAME.credentials (basic)" in "interfaces/*.toml" tag "type" {
        user: Secret, marked(Secret);
        password: Secret, marked(Secret);
    }
}

group! {
    /// Credentials with `type = "header"`.
    HeaderSettings at "grants.NAME.credentials (header)" in "interfaces/*.toml" tag "type" {
        /// Name of the header.
        name: String;
        value: Secret, marked(Secret);
    }
}

/// Which addresses a granted name may resolve to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    #[default]
    Operator,
    Public,
    Any,
}

words!(Addresses { "operator" => Addresses::Operator, "public" => Addresses::Public, "any" => Addresses::Any });

/// What may be done in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    Read,
    #[default]
    Write,
}

words!(Access { "read" => Access::Read, "write" => Access::Write });

by_type!(GrantSettings {
    "http" => Http(HttpGrantSettings),
    "folder" => Folder(FolderGrantSettings),
    "tcp" => Tcp(TcpGrantSettings),
    "reveal" => Reveal(RevealGrantSettings),
    "sign" => Sign(SignGrantSettings),
    "state" => State(StateGrantSettings),
});

by_type!(CredentialSettings {
    "bearer" => Bearer(BearerSettings),
    "basic" => Basic(BasicSettings),
    "header" => Header(HeaderSettings),
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{destination, problems_of_sender};

    #[test]
    fn every_type_of_grant_is_read() {
        let sender = "[destination.sender]\nplugin = \"x\"\n\
             grants.api = { type = \"http\", url = \"https://h/p\", credentials = { type = \"bearer\", token = \"${secret:T}\" } }\n\
             grants.out = { type = \"folder\", path = \"out\", access = \"read\" }\n\
             grants.peer = { type = \"tcp\", host = \"ehr\", port = 2575, tls = {} }\n";
        let destination = destination(sender);
        let grants = &destination.sender.unwrap().grants;
        let words: Vec<_> =
            grants.iter().map(|(name, grant)| (name.as_str(), grant.value.type_word())).collect();
        assert_eq!(words, [("api", "http"), ("out", "folder"), ("peer", "tcp")]);
        let GrantSettings::Http(http) = &grants.values().next().unwrap().value else { panic!("not http") };
        let Some(CredentialSettings::Bearer(bearer)) = &http.credentials else { panic!("no bearer") };
        assert_eq!(bearer.token.reveal(), "s3cret");
        assert!(!format!("{grants:?}").contains("s3cret"));
    }

    #[test]
    fn an_unknown_type_is_a_problem_that_lists_the_known() {
        let problems = problems_of_sender("grants.api = { type = \"htp\" }");
        assert!(problems.contains("`api` has an unknown `type`"), "{problems}");
        assert!(problems.contains("http, folder, tcp, reveal, sign, state"), "{problems}");
    }

    #[test]
    fn a_url_with_a_password_is_refused_without_showing_it() {
        let problems = problems_of_sender("grants.api = { type = \"http\", url = \"http://u:hunter2@h/\" }");
        assert!(problems.contains("`url` is not a URL that can be called"), "{problems}");
        assert!(!problems.contains("hunter2"), "{problems}");
    }
}
