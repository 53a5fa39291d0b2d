//! Project files: TOML in, validated settings out, every problem at once.
//!
//! [`read`] takes a project folder and answers with what could be read and all that is
//! wrong with it; [`load`] insists that nothing is. What only a plugin's manifest can
//! tell (is this name known, do settings and grants fit) is asked of a [`Catalog`].
//!
//! This crate must not know storage, plugins' code or sockets. It is the only one that
//! reads the process environment.

#[macro_use]
mod group;
mod admin;
mod auth;
mod by_type;
mod case;
mod catalog;
mod destination;
mod duration;
mod encrypted;
mod environments;
mod files;
mod grants;
mod http_path;
mod interface;
mod limits;
mod list;
mod load;
mod name;
mod place;
mod plugin;
mod ports;
mod problem;
mod project;
mod rate;
mod reader;
mod reference;
mod retention;
mod retry;
mod routes;
mod schema;
mod secret;
mod secret_grants;
mod secrets;
mod secrets_file;
mod size;
mod source;
mod state_grant;
mod store;
mod tcp_grant;
mod template;
mod text;
mod traces;
mod value;

#[cfg(test)]
mod tests;

pub use admin::AdminSettings;
pub use auth::{
    AuthSettings, BasicAuthSettings, BearerAuthSettings, HeaderAuthSettings, SignatureAuthSettings,
    SignatureScheme,
};
pub use case::{AnswerFailure, CaseAnswer, CaseFile, CaseSettings, Moment, read_case};
pub use catalog::{Catalog, Role};
pub use destination::DestinationSettings;
pub use encrypted::{Change, EncryptedError, EncryptedFile, make_identity};
pub use grants::{
    Access, Addresses, BasicSettings, CredentialSettings, FolderGrantSettings, GrantSettings,
    HttpGrantSettings,
};
pub use http_path::{HttpPath, Method};
pub use interface::{Durability, InterfaceSettings};
pub use limits::LimitSettings;
pub use load::{Draft, check_text, load, read, read_in};
pub use name::Name;
pub use place::{At, Place};
pub use plugin::{Isolation, PluginByPath, PluginSettings, PluginUse};
pub use problem::{Problem, Problems, Weight, nearest};
pub use project::Project;
pub use rate::RateSettings;
pub use reference::reference;
pub use retry::RetrySettings;
pub use schema::{PluginSchema, SlotSchema, schemas};
pub use secret::{Environment, Secret};
pub use secret_grants::{NamedSecret, RevealGrantSettings, SecretForm, SignGrantSettings};
pub use secrets::SecretStanding;
pub use size::ByteSize;
pub use source::{SourceSettings, TlsSettings};
pub use state_grant::StateGrantSettings;
pub use store::StoreSettings;
pub use tcp_grant::{StartTls, TcpCredentialSettings, TcpGrantSettings, TcpTlsChoice, TcpTlsSettings};
pub use text::ProjectPath;
pub use traces::{SampleShare, TraceSettings};
