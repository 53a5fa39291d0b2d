//! The API over a real loopback socket.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod engine;
mod guards;
mod page;
mod requests;
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;

use portway_admin::{AdminServer, AdminSettings, ControlFile};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use engine::Engine;

/// A running API in front of an engine that only remembers.
pub(crate) struct Api {
    pub(crate) engine: Arc<Engine>,
    pub(crate) file: ControlFile,
    pub(crate) dir: tempfile::TempDir,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Api {
    pub(crate) async fn start() -> Api {
        Api::start_with(8).await
    }

    pub(crate) async fn start_with(connections_max: usize) -> Api {
        let dir = tempfile::tempdir().unwrap();
        let engine = Arc::new(Engine::default());
        let listen = ([127, 0, 0, 1], 0).into();
        let settings = AdminSettings {
            listen,
            connections_max,
            data_dir: dir.path().to_path_buf(),
            message_bytes_max: 100_000,
        };
        let server = AdminServer::bind(settings, engine.clone()).await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        let file = ControlFile::read(dir.path()).unwrap();
        Api { engine, file, dir, stop, task }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.file.address
    }

    /// Status, headers and body of a request with our Host and token.
    pub(crate) async fn send(&self, line: &str, body: &str) -> (u16, String, String) {
        let token = self.file.token.reveal();
        let json = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        let head = format!(
            "{line} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n{json}content-length: {}\r\nconnection: close\r\n\r\n",
            self.address(),
            body.len()
        );
        self.send_raw(&format!("{head}{body}")).await
    }

    pub(crate) async fn send_raw(&self, request: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A refused request may end in a reset after its answer.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, head.to_ascii_lowercase(), body.to_owned())
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }
}
