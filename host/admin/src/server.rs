//! The listener: loopback only, so many connections, so much time for each.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use portway_model::code;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::guard::Guard;
use crate::handlers::router;
use crate::{Control, ControlFile, Token, TokenError};

/// Time for the head of a request, also the first of a connection that stays silent.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time of a connection as a whole: longer than any request, and an end to a caller that never
/// reads its answer.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(900);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Time for answers on their way when the engine stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// Where the API listens.
#[derive(Clone, Debug)]
pub struct AdminSettings {
    pub listen: SocketAddr,
    pub connections_max: usize,
    /// The engine's own folder, for the control file.
    pub data_dir: PathBuf,
    /// Bytes of a message that is handed in.
    pub message_bytes_max: usize,
}

/// Why the API could not start.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("the admin API listens on loopback only, not on `{0}`")]
    NotLoopback(SocketAddr),
    #[error("cannot listen on `{address}`")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl AdminError {
    /// Its code, which has a page.
    pub fn code(&self) -> &'static str {
        match self {
            AdminError::NotLoopback(_) => code::NOT_LOOPBACK,
            AdminError::Listen { .. } => code::CANNOT_LISTEN,
            AdminError::Token(error) => error.code(),
        }
    }
}

/// The API, bound and ready to run.
pub struct AdminServer {
    listener: TcpListener,
    address: SocketAddr,
    connections: Arc<Semaphore>,
    router: Router,
    /// True: connections finish what is on its way, streams end.
    stop: watch::Sender<bool>,
}

impl AdminServer {
    /// Listens, and writes a new control token into the data folder.
    pub async fn bind(settings: AdminSettings, control: Arc<dyn Control>) -> Result<AdminServer, AdminError> {
        if !settings.listen.ip().is_loopback() {
            return Err(AdminError::NotLoopback(settings.listen));
        }
        let failed = |source| AdminError::Listen { address: settings.listen, source };
        let listener = TcpListener::bind(settings.listen).await.map_err(failed)?;
        AdminServer::on(listener, settings, control)
    }

    /// The same on a socket that listens already. It must not block, and be a loopback one.
    pub fn bind_to(
        socket: std::net::TcpListener,
        settings: AdminSettings,
        control: Arc<dyn Control>,
    ) -> Result<AdminServer, AdminError> {
        let failed = |source| AdminError::Listen { address: settings.listen, source };
        let listener = TcpListener::from_std(socket).map_err(failed)?;
        AdminServer::on(listener, settings, control)
    }

    fn on(
        listener: TcpListener,
        settings: AdminSettings,
        control: Arc<dyn Control>,
    ) -> Result<AdminServer, AdminError> {
        let failed = |source| AdminError::Listen { address: settings.listen, source };
        let address = listener.local_addr().map_err(failed)?;
        if !address.ip().is_loopback() {
            return Err(AdminError::NotLoopback(address));
        }
        let token = Token::random();
        ControlFile { address, token: token.clone() }.write(&settings.data_dir)?;
        let (stop, stopped) = watch::channel(false);
        let guard = Arc::new(Guard::new(token, address));
        let router = router(control, guard, settings.message_bytes_max, stopped);
        let connections = Arc::new(Semaphore::new(settings.connections_max.max(1)));
        Ok(AdminServer { listener, address, connections, router, stop })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `shutdown` is ready, and then finishes what is on its way.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = self.listener.accept() => self.take(accepted, &mut tasks).await,
                Some(_) = tasks.join_next() => {}
            }
        }
        drop(self.listener);
        self.stop.send_replace(true);
        let finish = async { while tasks.join_next().await.is_some() {} };
        // What is still going on after this is dropped with the set.
        let _ = tokio::time::timeout(STOP_TIMEOUT, finish).await;
    }

    async fn take(&self, accepted: io::Result<(TcpStream, SocketAddr)>, tasks: &mut JoinSet<()>) {
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the admin API cannot accept a connection");
                // Out of descriptors: accepting again at once would only burn a core.
                tokio::time::sleep(Duration::from_millis(50)).await;
                return;
            }
        };
        let Ok(permit) = self.connections.clone().try_acquire_owned() else {
            tracing::warn!("the admin API has too many connections, one was closed");
            return;
        };
        let (router, stop) = (self.router.clone(), self.stop.subscribe());
        tasks.spawn(async move {
            serve(stream, router, stop).await;
            drop(permit);
        });
    }
}

/// One connection until it ends, stalls or the engine stops.
async fn serve(stream: TcpStream, router: Router, mut stop: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let run = async {
        tokio::select! {
            ended = connection.as_mut() => return ended,
            _ = stop.wait_for(|stopped| *stopped) => connection.as_mut().graceful_shutdown(),
        }
        connection.await
    };
    if let Ok(Err(error)) = tokio::time::timeout(CONNECTION_TIMEOUT, run).await {
        tracing::debug!(%error, "a connection of the admin API ended early");
    }
}
