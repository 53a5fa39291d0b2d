//! A transaction: the envelope, the mail, and what the server says of both.

use portway_sdk::{Answer, Problem, log};

use crate::dots::Dots;
use crate::judge::{lost, not_taken, refused};
use crate::line::{Line, LineError};
use crate::mail::Mail;
use crate::reply::Reply;
use crate::session::Abilities;
use crate::settings::Partial;

/// What is written of a mail at once.
const PIECE_BYTES: usize = 64 * 1024;
/// How many refused recipients are named.
const NAMED_MAX: usize = 10;

/// Sends one mail over a line that is ready for it. After an error the line may be in the middle
/// of a transaction; whoever uses it next begins with RSET.
pub(crate) fn send(
    line: &mut Line,
    mail: &Mail,
    abilities: &Abilities,
    partial: Partial,
) -> Result<Answer, Problem> {
    let size = mail.bytes.len() as u64;
    if let Some(max) = abilities.size_max.filter(|max| *max < size) {
        let text = format!("the mail has {size} bytes, the server takes {max}");
        return Err(Problem::quarantine("too-large", text));
    }
    let size = if abilities.size { format!(" SIZE={size}") } else { String::new() };
    ask(line, "MAIL", &format!("MAIL FROM:<{}>{size}", mail.from))?;
    let refusals = recipients(line, mail)?;
    if !refusals.is_empty() {
        let all = refusals.len() == mail.recipients.len();
        let is_sent =
            partial == Partial::Send && !all && refusals.iter().all(|(_, reply)| reply.is_permanent());
        if !is_sent {
            return Err(not_to(&refusals, mail.recipients.len()));
        }
        log::notice("recipients-refused", named(&refusals));
    }
    let reply = line.command("DATA").map_err(|error| lost("DATA", error))?;
    if reply.code != 354 {
        return Err(refused("DATA", &reply));
    }
    let reply = write_mail(line, &mail.bytes)?;
    if !reply.is_good() {
        return Err(not_taken("the mail", &reply));
    }
    let mut text = reply.text();
    if !refusals.is_empty() {
        text.push_str("; not to ");
        text.push_str(&named(&refusals));
    }
    Ok(Answer::new(reply.code.to_string(), text))
}

/// A command that the server has to agree to.
fn ask(line: &mut Line, step: &str, command: &str) -> Result<(), Problem> {
    let reply = line.command(command).map_err(|error| lost(step, error))?;
    if reply.is_good() { Ok(()) } else { Err(refused(step, &reply)) }
}

/// The recipients that were refused, and how.
fn recipients<'m>(line: &mut Line, mail: &'m Mail) -> Result<Vec<(&'m str, Reply)>, Problem> {
    let mut refusals = Vec::new();
    for recipient in &mail.recipients {
        let reply = line.command(&format!("RCPT TO:<{recipient}>")).map_err(|error| lost("RCPT", error))?;
        if reply.is_farewell() {
            return Err(refused("RCPT", &reply));
        }
        if !reply.is_good() {
            refusals.push((recipient.as_str(), reply));
        }
    }
    Ok(refusals)
}

/// Nobody got it. One that is refused for good decides, since it would be refused every time.
fn not_to(refusals: &[(&str, Reply)], of: usize) -> Problem {
    let text = format!(
        "the server refused {} of {of} recipients, and nothing was sent: {}",
        refusals.len(),
        named(refusals)
    );
    if refusals.iter().any(|(_, reply)| !reply.is_temporary()) {
        Problem::quarantine("recipients-refused", text)
    } else {
        Problem::retry("recipients-refused", text)
    }
}

fn named(refusals: &[(&str, Reply)]) -> String {
    let mut names: Vec<String> = refusals
        .iter()
        .take(NAMED_MAX)
        .map(|(recipient, reply)| format!("`{recipient}` ({})", reply.shown()))
        .collect();
    if refusals.len() > NAMED_MAX {
        names.push(format!("{} more", refusals.len() - NAMED_MAX));
    }
    names.join(", ")
}

fn write_mail(line: &mut Line, mail: &[u8]) -> Result<Reply, Problem> {
    const STEP: &str = "the mail";
    let mut dots = Dots::new();
    let mut bytes = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
    for piece in mail.chunks(PIECE_BYTES) {
        bytes.clear();
        dots.push(piece, &mut bytes);
        line.write_on(&bytes).map_err(|error| broken_off(line, STEP, error))?;
    }
    bytes.clear();
    dots.finish(&mut bytes);
    line.write_on(&bytes).map_err(|error| broken_off(line, STEP, error))?;
    line.reply().map_err(|error| lost(STEP, error))
}

/// A server that stops taking a mail may have said why. Without its end the mail has not arrived,
/// so a refusal counts and anything else does not.
fn broken_off(line: &mut Line, step: &str, error: LineError) -> Problem {
    match line.last_word().filter(|reply| reply.is_permanent() || reply.is_temporary()) {
        Some(reply) => not_taken(step, &reply),
        None => lost(step, error),
    }
}
