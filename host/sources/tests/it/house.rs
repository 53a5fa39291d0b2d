//! A driver that runs, and clients that talk to it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use portway_engine::ports::Clock;
use portway_model::Timestamp;
use portway_net::listen::{ListenSettings, Listener};
use portway_sources::{Budget, Counters, Driver, DriverHandle, SourceLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::fakes::{FakeCodec, FakeIntake, frame};

/// Long enough that only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct House {
    pub address: SocketAddr,
    pub intake: FakeIntake,
    pub handle: DriverHandle,
    pub counters: Counters,
    shutdown: Option<oneshot::Sender<()>>,
    driver: JoinHandle<()>,
}

pub struct Options {
    pub listen: ListenSettings,
    pub limits: SourceLimits,
    pub budget: Budget,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            listen: ListenSettings {
                address: "127.0.0.1:0".parse().unwrap(),
                connections_max: 10,
                idle_timeout: PATIENCE,
                frame_timeout: PATIENCE,
                keepalive: None,
                allow: Vec::new(),
                tls: None,
            },
            limits: SourceLimits { busy_pause: Duration::from_millis(1), ..SourceLimits::default() },
            budget: Budget::new(64 << 20),
        }
    }
}

struct SystemClock(Instant);

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        Timestamp(u64::try_from(since.as_millis()).unwrap())
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Starts a driver with these options.
pub fn house(change: impl FnOnce(&mut Options)) -> House {
    let mut options = Options::default();
    change(&mut options);
    let listener = Listener::bind(options.listen).unwrap();
    let address = listener.local_addr();
    let (intake, counters) = (FakeIntake::new(), Counters::new());
    let clock = Arc::new(SystemClock(Instant::now()));
    let shared = (options.budget, counters.clone(), clock as Arc<dyn Clock>);
    let (driver, handle) = Driver::new(listener, FakeCodec, intake.clone(), options.limits, shared);
    let (shutdown, stopped) = oneshot::channel();
    let driver = tokio::spawn(driver.run(async move {
        stopped.await.ok();
    }));
    House { address, intake, handle, counters, shutdown: Some(shutdown), driver }
}

impl House {
    pub async fn client(&self) -> Client {
        Client { stream: TcpStream::connect(self.address).await.unwrap(), bytes: Vec::new() }
    }

    /// One from another address of this machine.
    pub async fn client_from(&self, address: IpAddr) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((address, 0).into()).unwrap();
        Client { stream: socket.connect(self.address).await.unwrap(), bytes: Vec::new() }
    }

    /// Connections that ended for this reason.
    pub fn closed(&self, why: &str) -> u64 {
        self.handle.status().connections_closed.get(why).copied().unwrap_or(0)
    }

    pub async fn until_closed(&self, why: &str) {
        until(why, || self.closed(why) > 0).await;
    }

    pub fn stop(&mut self) {
        self.shutdown.take().unwrap().send(()).unwrap();
    }

    pub async fn until_stopped(self) -> (DriverHandle, FakeIntake) {
        tokio::time::timeout(PATIENCE, self.driver).await.expect("the driver did not stop").unwrap();
        (self.handle, self.intake)
    }
}

/// Waits for a condition.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "still waiting: {what}");
        tokio::task::yield_now().await;
    }
}

pub struct Client {
    pub stream: TcpStream,
    bytes: Vec<u8>,
}

impl Client {
    pub async fn send(&mut self, bodies: &[&str]) {
        let bytes: Vec<u8> = bodies.iter().flat_map(|body| frame(body)).collect();
        self.send_bytes(&bytes).await;
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next answer; none if the driver closed.
    pub async fn answer(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|window| window == b"\x1c\r") {
                let framed: Vec<u8> = self.bytes.drain(..end + 2).collect();
                return Some(String::from_utf8_lossy(&framed[1..end]).trim_end().to_owned());
            }
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.bytes));
            match read.await.expect("no answer came") {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    pub async fn answers(&mut self, count: usize) -> Vec<String> {
        let mut answers = Vec::new();
        while answers.len() < count {
            answers.push(self.answer().await.expect("the driver closed"));
        }
        answers
    }

    /// True if nothing can be read now.
    pub fn heard_nothing(&self) -> bool {
        self.bytes.is_empty() && self.stream.try_read(&mut [0]).is_err()
    }
}
