//! A mail server for the tests: it takes mail, and holds its client to the protocol.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::tls::Certificate;

/// Bytes of a line, with its end.
const LINE_BYTES_MAX: usize = 1_000;

/// How the server is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// TLS from the first byte.
    Tls,
    /// STARTTLS, without which it takes no mail.
    StartTls,
    /// No TLS at all.
    Plain,
}

/// What the server saw.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    Connection,
    /// A line before TLS, or of credentials.
    Line(String),
    Reset,
    Mail {
        from: String,
        to: Vec<String>,
        bytes: Vec<u8>,
    },
    /// The client broke the protocol.
    Violation(String),
}

/// Takes mail from those who log in as `lab` with `s3cret`, over TLS.
pub async fn start(certificate: Arc<Certificate>, entry: Entry) -> (u16, UnboundedReceiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, seen) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tell.send(Seen::Connection).unwrap();
            tokio::spawn(serve(stream, certificate.clone(), entry, tell.clone()));
        }
    });
    (port, seen)
}

/// Whatever ends a connection ends the script; what the client did wrong is told.
async fn serve(stream: TcpStream, certificate: Arc<Certificate>, entry: Entry, tell: UnboundedSender<Seen>) {
    let result = match entry {
        Entry::Tls => match certificate.accept(stream).await {
            Ok(stream) => Client::new(stream, &tell).mail("220 mail").await,
            Err(_) => Ok(()),
        },
        Entry::Plain => Client::new(stream, &tell).plain("250-mail\r\n250 AUTH PLAIN").await.map(drop),
        Entry::StartTls => match Client::new(stream, &tell).plain("250-mail\r\n250 STARTTLS").await {
            Ok(Some(stream)) => match certificate.accept(stream).await {
                Ok(stream) => Client::new(stream, &tell).mail("").await,
                Err(_) => Ok(()),
            },
            Ok(None) => Ok(()),
            Err(end) => Err(end),
        },
    };
    if let Err(End::Violation(what)) = result {
        let _ = tell.send(Seen::Violation(what));
    }
}

enum End {
    Closed,
    Violation(String),
}

impl From<std::io::Error> for End {
    fn from(_: std::io::Error) -> End {
        End::Closed
    }
}

struct Client<'a, S> {
    stream: S,
    heard: Vec<u8>,
    tell: &'a UnboundedSender<Seen>,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Client<'a, S> {
    fn new(stream: S, tell: &'a UnboundedSender<Seen>) -> Client<'a, S> {
        Client { stream, heard: Vec::new(), tell }
    }

    async fn say(&mut self, text: &str) -> Result<(), End> {
        self.stream.write_all(format!("{text}\r\n").as_bytes()).await?;
        self.stream.flush().await?;
        Ok(())
    }

    /// A line without its end, of those that end in CR LF and nothing else.
    async fn line(&mut self) -> Result<String, End> {
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=end).collect();
                let line = String::from_utf8(line).map_err(|_| End::Violation("not ASCII".into()))?;
                let fit = line.strip_suffix("\r\n").filter(|text| !text.contains('\r'));
                return match fit {
                    Some(text) if line.len() <= LINE_BYTES_MAX && text.is_ascii() => Ok(text.to_owned()),
                    _ => Err(End::Violation(format!("a line that is none: {line:?}"))),
                };
            }
            if self.stream.read_buf(&mut self.heard).await? == 0 {
                return Err(End::Closed);
            }
        }
    }

    /// A command; nothing may come before its answer.
    async fn command(&mut self) -> Result<String, End> {
        let line = self.line().await?;
        match self.heard.is_empty() {
            true => Ok(line),
            false => Err(End::Violation(format!("more than one command: {line}"))),
        }
    }

    /// Before TLS: greets, and takes nothing but the wish for TLS.
    async fn plain(mut self, abilities: &str) -> Result<Option<S>, End> {
        self.say("220 mail").await?;
        loop {
            let line = self.command().await?;
            let _ = self.tell.send(Seen::Line(line.clone()));
            match line.split(' ').next().unwrap_or_default() {
                "EHLO" => self.say(abilities).await?,
                "STARTTLS" => {
                    self.say("220 go").await?;
                    return Ok(Some(self.stream));
                }
                "QUIT" => return Ok(None),
                _ => self.say("530 TLS first").await?,
            }
        }
    }

    /// Over TLS: login, then mails.
    async fn mail(mut self, greeting: &str) -> Result<(), End> {
        if !greeting.is_empty() {
            self.say(greeting).await?;
        }
        let hello = self.command().await?;
        if !hello.starts_with("EHLO ") {
            return Err(End::Violation(format!("no EHLO: {hello}")));
        }
        self.say("250-mail\r\n250-SIZE 40000000\r\n250 AUTH PLAIN LOGIN").await?;
        self.login().await?;
        let (mut from, mut to) = (None, Vec::new());
        loop {
            let line = self.command().await?;
            if let Some(rest) = line.strip_prefix("MAIL FROM:<") {
                let size = rest.rsplit_once(" SIZE=").and_then(|(_, size)| size.parse().ok());
                from = Some((between(rest), size.unwrap_or(usize::MAX)));
                self.say("250 ok").await?;
            } else if let (Some(rest), true) = (line.strip_prefix("RCPT TO:<"), from.is_some()) {
                to.push(between(rest));
                self.say("250 ok").await?;
            } else if line == "RSET" {
                (from, to) = (None, Vec::new());
                let _ = self.tell.send(Seen::Reset);
                self.say("250 ok").await?;
            } else if line == "DATA" && !to.is_empty() {
                self.say("354 go").await?;
                let bytes = self.data().await?;
                let (from, size) = from.take().unwrap_or_default();
                if bytes.len() != size {
                    return Err(End::Violation(format!("SIZE={size} for {} bytes", bytes.len())));
                }
                let _ = self.tell.send(Seen::Mail { from, to: std::mem::take(&mut to), bytes });
                self.say("250 2.0.0 queued").await?;
            } else if line == "QUIT" {
                return self.say("221 bye").await;
            } else {
                return Err(End::Violation(format!("a command that does not belong here: {line}")));
            }
        }
    }

    async fn login(&mut self) -> Result<(), End> {
        let begin = self.command().await?;
        if begin != "AUTH PLAIN" {
            return Err(End::Violation(format!("no login: {begin}")));
        }
        self.say("334 ").await?;
        let line = self.command().await?;
        if line != STANDARD.encode("\0lab\0s3cret") {
            self.say("535 no").await?;
            return Err(End::Closed);
        }
        self.say("235 in").await
    }

    async fn data(&mut self) -> Result<Vec<u8>, End> {
        let mut bytes = Vec::new();
        loop {
            let line = self.line().await?;
            if line == "." {
                return Ok(bytes);
            }
            bytes.extend_from_slice(line.strip_prefix('.').unwrap_or(&line).as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
    }
}

fn between(rest: &str) -> String {
    rest.split('>').next().unwrap_or_default().to_owned()
}
