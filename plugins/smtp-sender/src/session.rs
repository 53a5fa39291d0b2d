//! The session: a connection that is ready for the next mail, and given back afterwards.
//!
//! Greeting, TLS and login come before the first mail; what fails there is the destination's
//! trouble and no message's. A kept connection is asked with RSET whether it still lives, so that
//! one that died unnoticed is dialled anew before anything of a mail was said.

use std::time::Duration;

use portway_sdk::connect::{self, Credential, Protection};
use portway_sdk::{Answer, Deadline, Failure, Problem, Trouble, log};

use crate::address::is_domain;
use crate::judge::{not_opened, opening, unreachable};
use crate::line::{Line, LineError};
use crate::mail::Mail;
use crate::reply::Reply;
use crate::settings::{Mechanism, Partial, Settings, bad};
use crate::transaction;

/// The slot of the manifest.
const SERVER: &str = "server";
/// Kept connections that are tried before it is said that there is none.
const DEAD_MAX: u32 = 16;

/// How the server is spoken to.
#[derive(Debug)]
pub(crate) struct Conversation {
    hello: String,
    login: Mechanism,
    partial: Partial,
    timeout: Duration,
    messages_max: u32,
}

/// What an instance remembers between calls.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// What the server said it can when it was dialled last.
    abilities: Abilities,
    /// Mails since then.
    mails: u32,
}

/// What a server says it can.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    starttls: bool,
    plain: bool,
    login: bool,
    /// It takes the size of a mail beforehand.
    pub size: bool,
    /// The largest mail; none: it does not say.
    pub size_max: Option<u64>,
}

impl Conversation {
    pub fn new(settings: &Settings) -> Result<Conversation, Failure> {
        if settings.timeout.is_zero() {
            return Err(bad("timeout", "a time-out of nothing leaves no time to answer"));
        }
        if !is_domain(&settings.hello) {
            return Err(bad("hello", "it is neither the name of a host nor an address in brackets"));
        }
        if settings.messages_per_connection == 0 {
            return Err(bad("messages_per_connection", "at least one message goes over a connection"));
        }
        Ok(Conversation {
            hello: settings.hello.clone(),
            login: settings.login,
            partial: settings.partial,
            timeout: settings.timeout,
            messages_max: settings.messages_per_connection,
        })
    }
}

/// The conversation of one call.
pub(crate) struct Session<'a> {
    conversation: &'a Conversation,
    memory: &'a mut Memory,
    deadline: Deadline,
    line: Option<Line>,
}

impl<'a> Session<'a> {
    pub fn new(conversation: &'a Conversation, memory: &'a mut Memory, deadline: Deadline) -> Session<'a> {
        Session { conversation, memory, deadline, line: None }
    }

    /// Gives the connection back for a later call.
    pub fn release(self) {
        if let Some(line) = self.line {
            line.release();
        }
    }

    /// Sends one mail.
    pub fn deliver(&mut self, mail: &Mail) -> Result<Answer, Problem> {
        let mut line = self.ready()?;
        let result = transaction::send(&mut line, mail, &self.memory.abilities, self.conversation.partial);
        self.memory.mails += 1;
        if self.memory.mails >= self.conversation.messages_max {
            line.quit();
        } else if line.is_clear() {
            self.line = Some(line);
        } else {
            // What the server said behind its answer is told of; the connection is closed.
            line.release();
        }
        result
    }

    /// A line on which the next mail can begin.
    fn ready(&mut self) -> Result<Line, Trouble> {
        if let Some(line) = self.line.take().and_then(reset) {
            return Ok(line);
        }
        for _ in 0..DEAD_MAX {
            let connection = connect::open(SERVER).map_err(unreachable)?;
            let is_fresh = connection.is_fresh();
            let mut line = Line::new(connection, self.conversation.timeout, self.deadline);
            if is_fresh {
                self.memory.abilities = self.open(&mut line)?;
                self.memory.mails = 0;
                return Ok(line);
            }
            if let Some(line) = reset(line) {
                return Ok(line);
            }
        }
        Err(Trouble::unavailable("unreachable", "every kept connection turned out closed"))
    }

    /// Greeting, TLS and login.
    fn open(&self, line: &mut Line) -> Result<Abilities, Trouble> {
        let greeting = line.reply().map_err(|error| opening("its greeting", error))?;
        if !greeting.is_good() {
            return Err(not_opened("the connection", &greeting));
        }
        let mut abilities = self.hello(line)?;
        if matches!(line.protection(), Protection::Wanted | Protection::Required) {
            abilities = self.protect(line, abilities)?;
        }
        if line.has_credentials() {
            log_in(line, self.conversation.login, &abilities)?;
        }
        Ok(abilities)
    }

    fn hello(&self, line: &mut Line) -> Result<Abilities, Trouble> {
        let name = &self.conversation.hello;
        let reply = line.command(&format!("EHLO {name}")).map_err(|error| opening("EHLO", error))?;
        if reply.is_good() {
            return Ok(Abilities::of(&reply));
        }
        if !reply.is_permanent() {
            return Err(not_opened("EHLO", &reply));
        }
        // A server from before 1995, or one that shows less than it is.
        let reply = line.command(&format!("HELO {name}")).map_err(|error| opening("HELO", error))?;
        if reply.is_good() { Ok(Abilities::default()) } else { Err(not_opened("HELO", &reply)) }
    }

    /// STARTTLS, as the grant wants it. What the server said it can before counts for nothing.
    fn protect(&self, line: &mut Line, abilities: Abilities) -> Result<Abilities, Trouble> {
        let is_required = line.protection() == Protection::Required;
        if !abilities.starttls {
            return without_tls(is_required, "the server offers no STARTTLS").map(|()| abilities);
        }
        let reply = line.command("STARTTLS").map_err(|error| opening("STARTTLS", error))?;
        if reply.is_temporary() {
            return Err(not_opened("STARTTLS", &reply));
        }
        if !reply.is_good() {
            let why = format!("the server answered {} to STARTTLS", reply.shown());
            return without_tls(is_required, &why).map(|()| abilities);
        }
        line.start_tls().map_err(|error| match error {
            LineError::Bad(_) => Trouble::misconfigured("untrusted", "the server spoke on before TLS began"),
            error => opening("the TLS handshake", error),
        })?;
        self.hello(line)
    }
}

fn without_tls(is_required: bool, why: &str) -> Result<(), Trouble> {
    if is_required {
        let text = format!("{why}, and the grant requires it");
        return Err(Trouble::misconfigured("no-starttls", text));
    }
    log::notice("no-starttls", format!("{why}; mail goes in plain text"));
    Ok(())
}

/// None: the connection is no good any more.
fn reset(mut line: Line) -> Option<Line> {
    let reply = line.command("RSET").ok()?;
    (reply.is_good() && line.is_clear()).then_some(line)
}

/// What the server answers here is not shown: it may repeat what it was given.
fn log_in(line: &mut Line, login: Mechanism, abilities: &Abilities) -> Result<(), Trouble> {
    let is_plain = match login {
        Mechanism::Plain => true,
        Mechanism::Login => false,
        Mechanism::Auto => abilities.plain,
    };
    if !(if is_plain { abilities.plain } else { abilities.login }) {
        let text = "the server offers no way to log in that the settings allow: AUTH with PLAIN or LOGIN";
        return Err(Trouble::misconfigured("no-login", text));
    }
    let ways: (&str, &[Credential]) = if is_plain {
        ("AUTH PLAIN", &[Credential::Plain])
    } else {
        ("AUTH LOGIN", &[Credential::User, Credential::Password])
    };
    let mut reply = line.command(ways.0).map_err(|error| opening("AUTH", error))?;
    for credential in ways.1 {
        if reply.code != 334 {
            return Err(not_logged_in(&reply));
        }
        reply = line.credential(*credential).map_err(|error| opening("AUTH", error))?;
    }
    if reply.is_good() { Ok(()) } else { Err(not_logged_in(&reply)) }
}

fn not_logged_in(reply: &Reply) -> Trouble {
    let text = format!("the server answered {} to the login", reply.code);
    if reply.is_temporary() {
        return Trouble::unavailable("unreachable", text);
    }
    Trouble::misconfigured("login-refused", text)
}

impl Abilities {
    fn of(reply: &Reply) -> Abilities {
        let mut abilities = Abilities::default();
        // The first line is the server's name.
        for line in reply.lines.iter().skip(1) {
            let line = line.to_ascii_uppercase();
            let mut words = line.split([' ', '=']);
            match words.next() {
                Some("STARTTLS") => abilities.starttls = true,
                Some("SIZE") => {
                    abilities.size = true;
                    abilities.size_max =
                        words.next().and_then(|size| size.parse().ok()).filter(|size| *size > 0);
                }
                Some("AUTH") => {
                    for word in words {
                        abilities.plain |= word == "PLAIN";
                        abilities.login |= word == "LOGIN";
                    }
                }
                _ => {}
            }
        }
        abilities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abilities(lines: &[&str]) -> Abilities {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Abilities::of(&Reply { code: 250, lines })
    }

    #[test]
    fn what_a_server_can_is_read_from_its_lines() {
        let all = abilities(&["STARTTLS", "size 1000", "AUTH LOGIN PLAIN XOAUTH2", "STARTTLS"]);
        let expected =
            Abilities { starttls: true, plain: true, login: true, size: true, size_max: Some(1_000) };
        assert_eq!(all, expected);
        assert_eq!(abilities(&["mail", "SIZE 0"]), Abilities { size: true, ..Abilities::default() });
        assert!(abilities(&["mail", "AUTH=LOGIN"]).login);
        assert_eq!(abilities(&["STARTTLS AUTH PLAIN"]), Abilities::default());
    }
}
