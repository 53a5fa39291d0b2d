//! A full disk under a database: nothing is acknowledged that is not stored, nothing acknowledged is lost,
//! and the engine goes on by itself when there is room.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use portway::traffic::Template;
use portway::traffic::answer::Acknowledgement;
use portway::traffic::frame::write_frame;
use portway_testkit_postgres::{Cluster, ClusterSettings, Programs, Small};
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::project::{Project, to_file};
use super::{Peer, until};

const KEY: &str = "PWa";
/// A peer gives up an answer after this.
const ANSWER_MAX: Duration = Duration::from_secs(10);

fn cluster(small: Small) -> Cluster {
    let settings = ClusterSettings { small: Some(small), ..ClusterSettings::default() };
    Cluster::start(&Programs::of_system().unwrap(), &settings).unwrap()
}

fn project(cluster: &Cluster) -> Project {
    let project = Project::new(&format!("[store]\nurl = {:?}\n", cluster.url()));
    project.mllp("lab", "", &to_file("out", "order = \"strict\"", ""));
    project
}

/// A peer that sends large messages in order, each until it is taken, on a new connection if the old one is
/// of no use any more.
struct Sender {
    taken: Arc<AtomicU64>,
    refused: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Sender {
    fn start(address: SocketAddr) -> Sender {
        let (taken, refused, ends) =
            (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default(), Arc::default());
        let (taking, refusing, ending) = (Arc::clone(&taken), Arc::clone(&refused), Arc::clone(&ends));
        let task = tokio::spawn(async move {
            let ends: Arc<AtomicBool> = ending;
            let large = Template::new(256 << 10);
            let mut peer = Peer::connect(address).await;
            while !ends.load(Ordering::SeqCst) {
                let message = large.message(KEY, taking.load(Ordering::SeqCst) + 1);
                match timeout(ANSWER_MAX, ask(&mut peer, &message)).await {
                    Ok(Some(code)) if code == "AA" => {
                        taking.fetch_add(1, Ordering::SeqCst);
                    }
                    Ok(Some(code)) => {
                        assert_eq!(code, "AE");
                        refusing.fetch_add(1, Ordering::SeqCst);
                        // As a peer does before it sends again: its pace, and nothing is waited for.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    Ok(None) | Err(_) => peer = Peer::connect(address).await,
                }
            }
        });
        Sender { taken, refused, ends, task }
    }

    fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }

    fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    async fn until_more_are_taken(&self) {
        let before = self.taken();
        until("messages are taken", async || (self.taken() > before + 3).then_some(())).await;
    }

    async fn end(self) -> u64 {
        self.ends.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
        self.taken.load(Ordering::SeqCst)
    }
}

/// MSA-1; none: the connection is of no use any more.
async fn ask(peer: &mut Peer, message: &[u8]) -> Option<String> {
    let mut frame = Vec::new();
    write_frame(&mut frame, |into| into.extend_from_slice(message));
    peer.writer.write_all(&frame).await.ok()?;
    let answer = peer.reader.next().await.ok()??;
    Acknowledgement::read(&answer).map(|acknowledgement| acknowledgement.code)
}

/// In the order in which they came first; what was in hand may have come twice.
fn arrived(project: &Project) -> Vec<u64> {
    let mut arrived: Vec<u64> = Vec::new();
    for one in project.delivered("out") {
        if !arrived.contains(&one.sequence) {
            arrived.push(one.sequence);
        }
    }
    arrived
}

#[tokio::test]
async fn a_database_without_room_for_its_tables_closes_the_intake_until_there_is_some() {
    let cluster = cluster(Small::Data);
    let disk = cluster.small_disk().unwrap();
    let project = project(&cluster);
    let mut engine = project.run().await;
    let sender = Sender::start(engine.address("lab").await);
    sender.until_more_are_taken().await;
    disk.fill(4 << 20).unwrap();
    until("a message is refused", async || (sender.refused() > 0).then_some(())).await;
    // Really full: not a byte is left. Neither the engine nor the server ends.
    disk.fill(0).unwrap();
    let (refused, taken) = (sender.refused(), sender.taken());
    until("more is refused", async || (sender.refused() > refused + 5).then_some(())).await;
    let why = engine.until_status("the intake says why it is closed", |status| status.intake.closed.clone());
    assert_eq!(why.await.code, "full");
    assert!(sender.taken() <= taken + 1, "something was taken by a disk that is full");

    disk.make_room().unwrap();
    sender.until_more_are_taken().await;
    engine
        .until_status("the intake is open by itself", |status| status.intake.closed.is_none().then_some(()))
        .await;
    let taken = sender.end().await;
    engine.drained("lab", "out").await;
    assert_eq!(arrived(&project), (1..=taken).collect::<Vec<_>>());
    assert!(cluster.is_running(), "the server never ended");
    engine.stop().await;
}

#[tokio::test]
async fn a_server_that_ends_because_its_log_has_no_room_loses_nothing_that_was_acknowledged() {
    let cluster = cluster(Small::Log);
    let disk = cluster.small_disk().unwrap();
    let project = project(&cluster);
    let mut engine = project.run().await;
    let sender = Sender::start(engine.address("lab").await);
    sender.until_more_are_taken().await;
    disk.fill(0).unwrap();
    // It cannot even begin anew: that needs room in the log, too.
    until("the server ended", async || (!cluster.is_running()).then_some(())).await;
    let said = cluster.log().unwrap();
    assert!(said.contains("PANIC") && said.contains("No space left on device"), "{said}");
    until("messages are refused", async || (sender.refused() > 0).then_some(())).await;
    let taken = sender.taken();

    // As an operator would, or whatever watches over the server.
    disk.make_room().unwrap();
    cluster.start_again().unwrap();
    sender.until_more_are_taken().await;
    let all = sender.end().await;
    assert!(all > taken);
    engine.drained("lab", "out").await;
    assert_eq!(arrived(&project), (1..=all).collect::<Vec<_>>());
    engine.stop().await;
}
