//! Plain TCP in and out, with a filter and a route between: the components inside the real binary.

use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::process::refused;
use super::project::{StoreKind, to_file};
use super::{Engine, Project, until};

on_both_stores!(
    messages_go_where_their_values_say_and_keep_their_order,
    a_message_without_an_answer_goes_again_on_another_connection,
);

const SOURCE: &str = "[source]\nplugin = \"tcp\"\nlisten = \"127.0.0.1:0\"\n[source.settings]\n\
    framing = { type = \"delimiters\", start = '\\x02', end = '\\x03' }\nstored_reply = '\\x06'\n\
    key = { pattern = '\"device\":\"(\\w+)\"' }\n";

/// The table that stands at both destinations, behind a filter.
const CHOICE: &str = "[[destination.transform]]\nplugin = \"filter\"\n\
    settings = { body = \"json\", rules = [{ name = \"no tests\", except = { path = \"/test\", equals = true } }] }\n\
    [[destination.transform]]\nplugin = \"route\"\n\
    settings = { body = \"json\", by = { path = \"/kind\" }, map = { alarm = [\"device\", \"log\"], value = \"log\" } }\n";

fn to_device(address: SocketAddr, answer: &str) -> String {
    format!(
        "[[destination]]\nname = \"device\"\nretry = {{ first_wait = \"10ms\", longest_wait = \"50ms\" }}\n{CHOICE}\
         [destination.sender]\nplugin = \"tcp\"\n\
         grants.peer = {{ type = \"tcp\", host = \"127.0.0.1\", port = {} }}\n[destination.sender.settings]\n\
         framing = {{ type = \"length\", bytes = 2 }}\nanswer = {{ bytes = 2, {answer} success = {{ equals = \"ok\" }} }}\n",
        address.port()
    )
}

/// A receiver that takes messages with a length of two bytes before them.
struct Device {
    address: SocketAddr,
    /// The connection of each message, and the message.
    taken: Arc<Mutex<Vec<(usize, String)>>>,
    task: JoinHandle<()>,
}

impl Device {
    /// `answers` says whether the message of this number is answered.
    async fn start(answers: fn(usize) -> bool) -> Device {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let taken: Arc<Mutex<Vec<(usize, String)>>> = Arc::default();
        let all = taken.clone();
        let task = tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, number, all.clone(), answers));
            }
        });
        Device { address, taken, task }
    }

    fn taken(&self) -> Vec<(usize, String)> {
        self.taken.lock().unwrap().clone()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    taken: Arc<Mutex<Vec<(usize, String)>>>,
    answers: fn(usize) -> bool,
) {
    while let Ok(length) = stream.read_u16().await {
        let mut message = vec![0; usize::from(length)];
        stream.read_exact(&mut message).await.unwrap();
        let number = {
            let mut taken = taken.lock().unwrap();
            taken.push((connection, String::from_utf8(message).unwrap()));
            taken.len() - 1
        };
        if answers(number) {
            stream.write_all(b"ok").await.unwrap();
        }
    }
}

async fn engine(project: &Project) -> (Engine, TcpStream) {
    let mut engine = project.run().await;
    let stream = TcpStream::connect(engine.address("in").await).await.unwrap();
    (engine, stream)
}

/// Sends messages in one piece and waits for as many replies.
async fn send(stream: &mut TcpStream, messages: &[&str]) {
    let framed: String = messages.iter().map(|message| format!("\u{2}{message}\u{3}")).collect();
    stream.write_all(framed.as_bytes()).await.unwrap();
    let mut replies = vec![0; messages.len()];
    stream.read_exact(&mut replies).await.unwrap();
    assert!(replies.iter().all(|reply| *reply == 6), "{replies:?}");
}

async fn messages_go_where_their_values_say_and_keep_their_order(store: StoreKind) {
    let device = Device::start(|_| true).await;
    let project = Project::on(store, "");
    project
        .interface("in", &format!("{SOURCE}{}{}", to_device(device.address, ""), to_file("log", "", CHOICE)));
    let (mut engine, mut stream) = engine(&project).await;
    let messages = [
        r#"{"device":"a","kind":"alarm","n":1}"#,
        r#"{"device":"a","kind":"value","n":2}"#,
        r#"{"device":"a","kind":"alarm","n":3,"test":true}"#,
        r#"{"device":"a","kind":"alarm","n":4}"#,
    ];
    send(&mut stream, &messages).await;
    engine.sent("in", "device", 2).await;
    engine.sent("in", "log", 3).await;
    let taken: Vec<String> = device.taken().into_iter().map(|(_, message)| message).collect();
    assert_eq!(taken, [messages[0], messages[3]]);
    let log = fs::read_to_string(project.path().join("out/log")).unwrap();
    assert_eq!(log.lines().collect::<Vec<_>>(), [messages[0], messages[1], messages[3]]);

    // What no rule knows waits for a person at both, and one that breaks off is counted.
    send(&mut stream, &[r#"{"device":"a","kind":"other"}"#]).await;
    for destination in ["device", "log"] {
        engine
            .until_destination("in", destination, "it is quarantined", |found| found.counts.quarantined == 1)
            .await;
    }
    stream.write_all(b"\x02half").await.unwrap();
    drop(stream);
    engine
        .until_status("the half is counted", |status| {
            (refused(status, "in", "closed-in-frame") == 1).then_some(())
        })
        .await;
    engine.stop().await;
}

async fn a_message_without_an_answer_goes_again_on_another_connection(store: StoreKind) {
    let device = Device::start(|number| number > 0).await;
    let project = Project::on(store, "");
    let to_device = to_device(device.address, "timeout = \"200ms\",");
    project.interface("in", &format!("{SOURCE}{to_device}{}", to_file("log", "", CHOICE)));
    let (mut engine, mut stream) = engine(&project).await;
    let messages = [r#"{"device":"a","kind":"alarm","n":1}"#, r#"{"device":"a","kind":"alarm","n":2}"#];
    send(&mut stream, &messages).await;
    engine.sent("in", "device", 2).await;
    let taken = until("all are taken", async || Some(device.taken()).filter(|taken| taken.len() >= 3)).await;
    let expected = [(0, messages[0].to_owned()), (1, messages[0].to_owned()), (1, messages[1].to_owned())];
    assert_eq!(taken, expected);
    engine.stop().await;
}

#[tokio::test]
async fn a_destination_that_its_table_does_not_name_is_refused() {
    let project = Project::new("");
    project.interface("in", &format!("{SOURCE}{}", to_file("elsewhere", "", CHOICE)));
    let validated = project.portway(&["validate"]).await;
    assert_eq!(validated.code, Some(3), "{validated:?}");
    assert!(validated.stdout.contains("names this destination, `elsewhere`"), "{validated:?}");
}
