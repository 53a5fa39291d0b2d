//! What is refused when a store is opened, and with which sentence.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use portway_store::Store as _;
use portway_store_postgres::{OpenError, PostgresSettings, PostgresStore};
use portway_testkit_postgres::{ClusterSettings, Programs};

use crate::harness::Server;

async fn refused(settings: PostgresSettings) -> (String, OpenError) {
    match PostgresStore::open(settings).await {
        Ok(_) => panic!("it opened"),
        Err(error) => {
            assert!(!error.hint().is_empty() && !error.code().is_empty());
            (error.to_string(), error)
        }
    }
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_without_showing_it() {
    for url in ["", "sqlite://x", "postgres://ann:secret@:x/y", "postgres://ann:secret@db/y?sslmode=perhaps"]
    {
        let (text, error) = refused(PostgresSettings::new(url, "one")).await;
        assert!(matches!(error, OpenError::Address { .. }), "{error:?}");
        assert!(!text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn who_may_not_come_in_is_told_why() {
    let access = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256";
    let settings = ClusterSettings { access: Some(access.into()), ..ClusterSettings::default() };
    let server = Server::start(&Programs::of_system().unwrap(), &settings);
    server.cluster.sql("CREATE ROLE ann LOGIN PASSWORD 'right'; CREATE SCHEMA AUTHORIZATION ann").unwrap();
    let url = |password: &str, database: &str| {
        format!("postgres://ann:{password}@127.0.0.1:{}/{database}", server.cluster.port())
    };
    let (text, error) = refused(PostgresSettings::new(url("wrong", "postgres"), "one")).await;
    assert!(matches!(error, OpenError::Login { .. }), "{error:?}");
    assert!(text.contains("password") && !text.contains("wrong"), "{text}");
    let (text, error) = refused(PostgresSettings::new(url("right", "nowhere"), "one")).await;
    assert!(matches!(error, OpenError::NoDatabase { .. }), "{error:?}");
    assert!(text.contains("nowhere"), "{text}");
    PostgresStore::open(PostgresSettings::new(url("right", "postgres"), "one")).await.unwrap();
}

#[tokio::test]
async fn a_user_without_the_right_to_make_tables_is_told_so() {
    let server = Server::of_system();
    server
        .cluster
        .sql("CREATE ROLE ann LOGIN; CREATE SCHEMA hers; GRANT USAGE ON SCHEMA hers TO ann")
        .unwrap();
    let base = server.cluster.url().replace("postgres@", "ann@");
    let settings = PostgresSettings::new(format!("{base}?options[search_path]=hers"), "one");
    let (text, error) = refused(settings).await;
    assert!(matches!(error, OpenError::Permission { .. }), "{error:?}");
    assert!(text.contains("permission denied"), "{text}");
    let settings = PostgresSettings::new(format!("{base}?options[search_path]=gone"), "one");
    let (text, _) = refused(settings).await;
    assert!(text.contains("no schema"), "{text}");
}

#[tokio::test]
async fn a_server_that_accepts_no_writes_is_refused() {
    let server = Server::of_system();
    let mut settings = server.new_settings();
    settings.url.push_str("&options[default_transaction_read_only]=on");
    let (text, error) = refused(settings).await;
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error:?}");
    assert!(text.contains("accepts no writes"), "{text}");
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let (text, error) =
        refused(PostgresSettings::new(format!("postgres://ann:secret@127.0.0.1:{port}/x"), "one")).await;
    assert!(matches!(error, OpenError::Unreachable { .. }), "{error:?}");
    assert!(text.contains("cannot be reached") && !text.contains("secret"), "{text}");
}

#[tokio::test]
async fn an_engine_of_the_same_name_is_refused_and_one_of_another_is_not() {
    let server = Server::of_system();
    let first = server.open().await;
    let short = |name: &str| PostgresSettings {
        engine: name.into(),
        takeover_max: Duration::from_millis(200),
        ..server.settings()
    };
    let (text, error) = refused(short("one")).await;
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
    assert!(text.contains("`one`"), "{text}");
    let second = PostgresStore::open(short("two")).await.unwrap();
    drop(first);
    PostgresStore::open(PostgresSettings { takeover_max: Duration::from_secs(10), ..short("one") })
        .await
        .unwrap();
    drop(second);
}

#[tokio::test]
async fn a_changed_migration_is_refused() {
    let server = Server::of_system();
    drop(server.open().await);
    server.sql("UPDATE schema_migrations SET digest = 'other' WHERE number = 2");
    let (text, error) = refused(server.settings()).await;
    assert!(matches!(error, OpenError::Changed { .. }), "{error:?}");
    assert!(text.contains("0002_create_destination_actions"), "{text}");
}

#[tokio::test]
async fn engines_that_start_together_bring_the_tables_up_to_date_once() {
    let server = Server::of_system();
    let settings = server.new_settings();
    let open =
        |n: u32| PostgresStore::open(PostgresSettings { engine: format!("engine {n}"), ..settings.clone() });
    let (a, b, c) = tokio::join!(open(1), open(2), open(3));
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    let known = portway_store_postgres::migrations().len();
    assert_eq!(server.sql("SELECT count(*) FROM schema_migrations"), known.to_string());
}

#[tokio::test]
async fn notes_say_what_may_be_lost() {
    let server = Server::of_system();
    let notes = server.open().await.notes().join("\n");
    assert!(notes.contains("standby") && notes.contains("fsync"), "{notes}");
    let settings = ClusterSettings { flushes: true, ..ClusterSettings::default() };
    let server = Server::start(&Programs::of_system().unwrap(), &settings);
    let notes = server.open().await.notes().join("\n");
    assert!(notes.contains("standby") && !notes.contains("fsync"), "{notes}");
}

/// A server that says what it is told to: enough of the protocol to be let in and asked.
struct Fake {
    port: u16,
}

impl Fake {
    /// `answers` are told in turn to all who ask, whichever connection they ask on.
    fn start(answers: &'static [&'static [&'static str]]) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let next = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (mut client, next) = (client.unwrap(), std::sync::Arc::clone(&next));
                std::thread::spawn(move || {
                    let _ = Fake::serve(&mut client, &|| {
                        let turn = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        answers[turn.min(answers.len() - 1)]
                    });
                });
            }
        });
        Fake { port }
    }

    fn serve(
        client: &mut std::net::TcpStream,
        next: &dyn Fn() -> &'static [&'static str],
    ) -> std::io::Result<()> {
        let mut head = [0; 4];
        let mut take = |client: &mut std::net::TcpStream| {
            client.read_exact(&mut head)?;
            let mut rest = vec![0; u32::from_be_bytes(head) as usize - 4];
            client.read_exact(&mut rest)?;
            Ok::<_, std::io::Error>(rest)
        };
        // Asked for TLS, it has none; then comes who wants in.
        take(client)?;
        client.write_all(b"N")?;
        take(client)?;
        let ready = message(b'Z', b"I");
        client.write_all(&[message(b'R', &0_u32.to_be_bytes()), ready.clone()].concat())?;
        loop {
            let mut kind = [0];
            client.read_exact(&mut kind)?;
            take(client)?;
            if kind[0] != b'Q' {
                return Ok(());
            }
            let values = next();
            let mut columns = (values.len() as u16).to_be_bytes().to_vec();
            let mut row = columns.clone();
            for value in values {
                // A column without a table, of the type the value looks like, as text.
                let (oid, bytes): (u32, i16) = match *value {
                    "t" | "f" => (16, 1),
                    number if number.bytes().all(|byte| byte.is_ascii_digit()) => (23, 4),
                    _ => (25, -1),
                };
                columns.extend(b"c\0\0\0\0\0\0\0");
                columns.extend(oid.to_be_bytes());
                columns.extend(bytes.to_be_bytes());
                columns.extend((-1_i32).to_be_bytes());
                columns.extend(0_u16.to_be_bytes());
                row.extend((value.len() as u32).to_be_bytes());
                row.extend(value.as_bytes());
            }
            let answer =
                [message(b'T', &columns), message(b'D', &row), message(b'C', b"SELECT 1\0"), ready.clone()];
            client.write_all(&answer.concat())?;
        }
    }

    fn settings(&self) -> PostgresSettings {
        PostgresSettings::new(format!("postgres://ann@127.0.0.1:{}/x", self.port), "one")
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// What a server answers first on each connection.
const PRIMARY: &[&str] = &["f", "00000001/7"];

#[tokio::test]
async fn an_old_server_is_refused() {
    let fake = Fake::start(&[PRIMARY, &["140012", "14.12", "f", "t"]]);
    let (text, error) = refused(fake.settings()).await;
    assert!(matches!(error, OpenError::TooOld { .. }), "{error:?}");
    assert!(text.contains("14.12") && text.contains("15"), "{text}");
}

#[tokio::test]
async fn a_standby_is_refused() {
    let fake = Fake::start(&[&["t", "00000001/7"]]);
    assert!(matches!(refused(fake.settings()).await.1, OpenError::ReadOnly { .. }));
}

#[tokio::test]
async fn a_proxy_that_lends_sessions_by_transaction_is_refused() {
    const SERVER: &[&str] = &["170002", "17.2", "f", "t"];
    // One session of the server for all of ours.
    let one = Fake::start(&[PRIMARY, SERVER, PRIMARY, &["71"]]);
    assert!(matches!(refused(one.settings()).await.1, OpenError::Proxy { .. }));
    // Several, in turns.
    let turns = Fake::start(&[PRIMARY, SERVER, PRIMARY, &["71"], &["72"], &["73"], &["71"], &["72"]]);
    let (text, error) = refused(turns.settings()).await;
    assert!(matches!(error, OpenError::Proxy { .. }), "{error:?}");
    assert!(text.contains("proxy"), "{text}");
}
