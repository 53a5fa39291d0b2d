//! The program under a service manager: what it tells, the sockets it is passed, the log it writes.
//! The tests are the manager; they speak systemd's protocol.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tokio::net::UnixDatagram;
use tokio::time::timeout;

use super::project::to_file;
use super::{Engine, PATIENCE, Peer, Project, message};

impl Project {
    /// Starts the engine as systemd does: the socket is descriptor 3, the process is told that it is
    /// meant. Only the shell that becomes the engine knows its own number.
    fn start_as_service(&self, socket: Option<&TcpListener>, variables: &[(&str, &str)]) -> Engine {
        self.start_by(&["run", "--log-format", "json"], |engine| {
            let mut shell = Command::new("sh");
            let script = "exec 3<&0 </dev/null; LISTEN_PID=$$; export LISTEN_PID; exec \"$@\"";
            shell.args(["-c", script, "sh"]).arg(engine.get_program()).args(engine.get_args());
            for (name, value) in engine.get_envs() {
                shell.env(name, value.unwrap());
            }
            shell.envs(variables.iter().copied());
            match socket {
                Some(socket) => {
                    shell.env("LISTEN_FDS", "1").stdin(OwnedFd::from(socket.try_clone().unwrap()))
                }
                None => shell.stdin(Stdio::null()),
            };
            shell
        })
    }
}

/// The socket that the manager listens on.
struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    fn of(project: &Project) -> (Manager, String) {
        let path = project.path().join("notify");
        (Manager { socket: UnixDatagram::bind(&path).unwrap() }, path.display().to_string())
    }

    async fn told(&self) -> String {
        let mut bytes = [0; 4096];
        let length = timeout(PATIENCE, self.socket.recv(&mut bytes)).await.unwrap().unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }
}

#[tokio::test]
async fn the_manager_is_told_that_it_is_ready_lives_and_stops() {
    let project = Project::new("");
    project.mllp("lab", "", &to_file("archive", "", ""));
    let (manager, path) = Manager::of(&project);
    let unwanted = TcpListener::bind("127.0.0.1:0").unwrap();
    let variables =
        [("NOTIFY_SOCKET", path.as_str()), ("WATCHDOG_USEC", "200000"), ("LISTEN_FDNAMES", "spare")];
    let mut engine = project.start_as_service(Some(&unwanted), &variables);
    let ready = manager.told().await;
    assert!(ready.starts_with("READY=1\nSTATUS=running, admin API on 127.0.0.1:"), "{ready}");
    // What listens answers at once: nothing has to be waited for after READY.
    let address = engine.address("lab").await;
    assert_eq!(Peer::connect(address).await.send(&message("K", 1)).await, "AA");
    let began = tokio::time::Instant::now();
    for _ in 0..4 {
        assert_eq!(manager.told().await, "WATCHDOG=1");
    }
    assert!(began.elapsed() >= Duration::from_millis(150), "it is told too often");
    engine.signal(Signal::TERM);
    let mut last = manager.told().await;
    while last == "WATCHDOG=1" {
        last = manager.told().await;
    }
    assert!(last.starts_with("STOPPING=1\n"), "{last}");
    assert!(engine.ended().await.success());
    check_log(&engine.log());
}

/// Every line is an object with the promised fields; the socket that nobody wanted is told.
fn check_log(log: &str) {
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    for line in &lines {
        for field in ["timestamp", "level", "target", "message"] {
            assert!(line[field].is_string(), "{field}: {line}");
        }
    }
    let closed = lines.iter().find(|line| line["name"] == "spare").expect(log);
    assert_eq!(closed["level"], "WARN");
    assert!(closed["message"].as_str().unwrap().starts_with("a passed socket is closed"), "{closed}");
    assert!(lines.iter().any(|line| line["message"] == "running" && line["admin"].is_string()), "{log}");
}

#[tokio::test]
async fn a_restart_on_a_passed_socket_refuses_no_connection() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let project = Project::new("");
    project.mllp("lab", &format!("listen = \"{address}\"\n"), &to_file("archive", "", ""));
    let mut first = project.start_as_service(Some(&socket), &[]);
    assert_eq!(Peer::connect(address).await.send(&message("K", 1)).await, "AA");
    first.signal(Signal::TERM);
    assert!(first.ended().await.success());
    assert!(first.log().contains("listening on a passed socket"), "{}", first.log());
    // Nobody is there, and still nobody is refused.
    let mut early = Peer::connect(address).await;
    let mut second = project.start_as_service(Some(&socket), &[]);
    assert_eq!(early.send(&message("K", 2)).await, "AA");
    drop(early);
    second.signal(Signal::TERM);
    assert!(second.ended().await.success());
    let archive = std::fs::read(project.path().join("out/archive")).unwrap();
    assert_eq!(archive.iter().filter(|byte| **byte == b'\n').count(), 2);
}

#[tokio::test]
async fn a_manager_that_cannot_be_reached_is_no_harm() {
    let project = Project::new("");
    project.mllp("lab", "", &to_file("archive", "", ""));
    let gone = project.path().join("gone").display().to_string();
    let mut engine = project.start_as_service(None, &[("NOTIFY_SOCKET", &gone), ("WATCHDOG_USEC", "never")]);
    engine.wait_ready(project.path()).await;
    assert!(engine.log().contains("the service manager does not listen"), "{}", engine.log());
    engine.stop().await;
}
