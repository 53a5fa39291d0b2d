//! The client of a running engine's API: found by the project, let in by its control token.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use portway_admin::{ControlFile, TokenError, params, views};
use portway_config::{Draft, Environment, Project};
use portway_model::{MessageId, code};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::cli::{ProjectArgs, Slot};
use crate::output::Exit;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Longer than the engine gives any request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(660);
/// Bytes of an answer; a message's body is the largest there is.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// Talks to one engine.
#[derive(Clone, Debug)]
pub struct Client {
    file: ControlFile,
}

/// Why an engine did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no engine has run in `{data_dir}`")]
    NeverRan {
        data_dir: PathBuf,
        #[source]
        source: TokenError,
    },
    #[error("cannot read how to reach the engine")]
    Token(#[source] TokenError),
    #[error("no engine answers at `{address}`")]
    NotRunning {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the engine did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
    TimedOut,
    #[error("the connection to the engine broke")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the engine answered with something else than expected")]
    Answer(#[source] serde_json::Error),
    #[error("{} ({}, request {})", .0.message, .0.code, .0.request_id)]
    Refused(views::Error),
    #[error("cannot read `{}`", Project::FILE)]
    NoProject,
}

impl ClientError {
    pub fn exit(&self) -> Exit {
        match self {
            ClientError::NeverRan { .. } | ClientError::NotRunning { .. } => Exit::NotRunning,
            ClientError::Refused(_) => Exit::Refused,
            ClientError::NoProject => Exit::Problems,
            ClientError::Token(_)
            | ClientError::TimedOut
            | ClientError::Broken(_)
            | ClientError::Answer(_) => Exit::Failed,
        }
    }

    /// Its code, which has a page; none: the engine said one that this program does not know.
    pub fn code(&self) -> Option<&'static str> {
        Some(match self {
            ClientError::NeverRan { .. } => code::NEVER_RAN,
            ClientError::Token(error) => error.code(),
            ClientError::NotRunning { .. } => code::NOT_RUNNING,
            ClientError::TimedOut => code::NO_ANSWER_IN_TIME,
            ClientError::Broken(_) => code::CONNECTION_BROKEN,
            ClientError::Answer(_) => code::ANSWER_UNREADABLE,
            ClientError::Refused(error) => return code::registered(&error.code),
            ClientError::NoProject => code::NO_PROJECT,
        })
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ClientError::NeverRan { .. } | ClientError::NotRunning { .. } => {
                Some("start it with `portway run`, or name its project with `--project`")
            }
            ClientError::Token(_) => Some("only the user that runs the engine can control it"),
            ClientError::NoProject => Some("run `portway validate` to see what is wrong with the project"),
            ClientError::Refused(error) if error.code == code::TOKEN_WRONG => {
                Some("another engine listens there now; is its project the one you named?")
            }
            ClientError::TimedOut
            | ClientError::Broken(_)
            | ClientError::Answer(_)
            | ClientError::Refused(_) => None,
        }
    }
}

impl Client {
    /// The engine of a project, which need not be free of problems.
    pub fn of_project(dir: &Path) -> Result<Client, ClientError> {
        Client::of_draft(&portway_config::read(dir, &Environment::of_process()))
    }

    /// The engine of the project that a command line names.
    pub fn of(args: &ProjectArgs) -> Result<Client, ClientError> {
        Client::of_draft(&args.read())
    }

    fn of_draft(draft: &Draft) -> Result<Client, ClientError> {
        let data_dir = draft.project().map(|project| project.data_dir().to_path_buf());
        Client::of_data_dir(&data_dir.ok_or(ClientError::NoProject)?)
    }

    pub fn of_data_dir(data_dir: &Path) -> Result<Client, ClientError> {
        match ControlFile::read(data_dir) {
            Ok(file) => Ok(Client { file }),
            Err(TokenError::Read { source, path }) if source.kind() == io::ErrorKind::NotFound => {
                let data_dir = data_dir.to_path_buf();
                Err(ClientError::NeverRan { data_dir, source: TokenError::Read { path, source } })
            }
            Err(error) => Err(ClientError::Token(error)),
        }
    }

    pub async fn status(&self) -> Result<views::Status, ClientError> {
        self.get("/api/v1/status").await
    }

    pub async fn list_messages(
        &self,
        list: &params::ListMessages,
    ) -> Result<views::MessagePage, ClientError> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("limit", &list.limit.to_string());
        let cursor = list.cursor.map(|cursor| cursor.to_string());
        let status = list.status.map(|status| status.as_str().to_owned());
        let (from, to) = (list.from.map(|time| time.to_string()), list.to.map(|time| time.to_string()));
        let given = [
            ("key", &list.key),
            ("attribute", &list.attribute),
            ("text", &list.text),
            ("from", &from),
            ("to", &to),
            ("interface", &list.interface),
            ("destination", &list.destination),
            ("status", &status),
            ("cursor", &cursor),
        ];
        for (name, value) in given {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        self.get(&format!("/api/v1/messages?{}", query.finish())).await
    }

    pub async fn get_message(&self, id: MessageId) -> Result<views::MessageDetail, ClientError> {
        self.get(&format!("/api/v1/messages/{id}")).await
    }

    pub async fn get_body(&self, id: MessageId) -> Result<Bytes, ClientError> {
        self.send(Method::GET, &format!("/api/v1/messages/{id}/body"), Bytes::new()).await
    }

    pub async fn get_output(&self, id: MessageId, destination: &str) -> Result<Bytes, ClientError> {
        self.send(Method::GET, &format!("/api/v1/messages/{id}/outputs/{destination}"), Bytes::new()).await
    }

    /// `verb` is `resend` or `dismiss`.
    pub async fn act(
        &self,
        id: MessageId,
        verb: &str,
        act: &params::Act,
    ) -> Result<views::ActionDone, ClientError> {
        self.post(&format!("/api/v1/messages/{id}/{verb}"), act).await
    }

    /// Stores a corrected copy of a message.
    pub async fn edit(
        &self,
        id: MessageId,
        edit: &params::Edit,
        body: Bytes,
    ) -> Result<views::Edited, ClientError> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("reason", &edit.reason).append_pair("author", &edit.author);
        if let Some(destinations) = &edit.destinations {
            query.append_pair("destinations", destinations);
        }
        let path = format!("/api/v1/messages/{id}/edit?{}", query.finish());
        let body = self.send(Method::POST, &path, body).await?;
        serde_json::from_slice(&body).map_err(ClientError::Answer)
    }

    /// `verb` is `resend` or `dismiss`.
    pub async fn act_on_many(
        &self,
        verb: &str,
        act: &params::BulkAct,
    ) -> Result<views::BulkDone, ClientError> {
        self.post(&format!("/api/v1/messages/{verb}"), act).await
    }

    /// `verb` is `pause` or `resume`.
    pub async fn act_on_destination(
        &self,
        slot: &Slot,
        verb: &str,
        word: &params::Word,
    ) -> Result<views::DestinationActionDone, ClientError> {
        self.post(&format!("{}/{verb}", slot.path()), word).await
    }

    /// `verb` is `skip` or `retry`.
    pub async fn act_on_lane(
        &self,
        slot: &Slot,
        verb: &str,
        lane: &params::ActOnLane,
    ) -> Result<views::ActionDone, ClientError> {
        self.post(&format!("{}/lanes/{verb}", slot.path()), lane).await
    }

    pub async fn list_state(
        &self,
        slot: &Slot,
        list: &params::ListState,
    ) -> Result<views::StatePage, ClientError> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("prefix", &list.prefix).append_pair("limit", &list.limit.to_string());
        for (name, value) in [("space", &list.space), ("after", &list.after)] {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        self.get(&format!("{}/state?{}", slot.path(), query.finish())).await
    }

    pub async fn get_state(
        &self,
        slot: &Slot,
        state: &params::GetState,
    ) -> Result<views::StateValue, ClientError> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("key", &state.key);
        if let Some(space) = &state.space {
            query.append_pair("space", space);
        }
        self.get(&format!("{}/state/value?{}", slot.path(), query.finish())).await
    }

    pub async fn remove_state(
        &self,
        slot: &Slot,
        remove: &params::RemoveState,
    ) -> Result<views::StateRemoved, ClientError> {
        self.post(&format!("{}/state/remove", slot.path()), remove).await
    }

    pub async fn list_destination_actions(
        &self,
        slot: &Slot,
    ) -> Result<Vec<views::DestinationActionRecord>, ClientError> {
        self.get(&format!("{}/actions", slot.path())).await
    }

    pub async fn list_retention(&self) -> Result<views::Retentions, ClientError> {
        self.get("/api/v1/retention").await
    }

    pub async fn confirm_retention(
        &self,
        interface: &str,
        word: &params::Word,
    ) -> Result<views::RetentionConfirmed, ClientError> {
        let name: String = url::form_urlencoded::byte_serialize(interface.as_bytes()).collect();
        self.post(&format!("/api/v1/retention/{name}/confirm"), word).await
    }

    pub async fn drain(&self, drain: &params::Drain) -> Result<views::Draining, ClientError> {
        self.post("/api/v1/drain", drain).await
    }

    pub async fn cancel_drain(&self) -> Result<views::Draining, ClientError> {
        let body = self.send(Method::DELETE, "/api/v1/drain", Bytes::new()).await?;
        serde_json::from_slice(&body).map_err(ClientError::Answer)
    }

    pub async fn backup(&self, file: &str) -> Result<views::Backup, ClientError> {
        self.post("/api/v1/backup", &params::Backup { file: file.to_owned() }).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let body = self.send(Method::GET, path, Bytes::new()).await?;
        serde_json::from_slice(&body).map_err(ClientError::Answer)
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, given: &impl Serialize) -> Result<T, ClientError> {
        let given = serde_json::to_vec(given).map_err(ClientError::Answer)?;
        let body = self.send(Method::POST, path, given.into()).await?;
        serde_json::from_slice(&body).map_err(ClientError::Answer)
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, ClientError> {
        match timeout(ANSWER_TIMEOUT, self.exchange(method, path, body)).await {
            Ok(answer) => answer,
            Err(_) => Err(ClientError::TimedOut),
        }
    }

    async fn exchange(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, ClientError> {
        let broken = |error: hyper::Error| ClientError::Broken(error.into());
        let stream = self.connect().await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.file.address.to_string())
            .header(AUTHORIZATION, format!("Bearer {}", self.file.token.reveal()))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| ClientError::Broken(error.into()))?;
        let answer = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            Ok((status, body.map_err(ClientError::Broken)?.to_bytes()))
        };
        let mut answer = std::pin::pin!(answer);
        let (status, body) = tokio::select! {
            answer = answer.as_mut() => answer?,
            ended = connection => {
                ended.map_err(broken)?;
                // What was read before the end is still handed over.
                answer.await?
            }
        };
        judge(status, body)
    }

    async fn connect(&self) -> Result<TcpStream, ClientError> {
        let address = self.file.address;
        let connecting = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
        let connected = connecting.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        connected.map_err(|source| ClientError::NotRunning { address, source })
    }
}

fn judge(status: StatusCode, body: Bytes) -> Result<Bytes, ClientError> {
    if status.is_success() {
        return Ok(body);
    }
    Err(match serde_json::from_slice(&body) {
        Ok(error) => ClientError::Refused(error),
        Err(error) => ClientError::Answer(error),
    })
}
