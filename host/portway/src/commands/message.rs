//! `portway message`: list, show, resend, dismiss.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Subcommand, ValueEnum};
use portway_admin::{params, views};
use portway_model::{MessageId, MessageStatus};

use super::{author, show};
use crate::cli::ProjectArgs;
use crate::client::Client;
use crate::output::{Exit, Format, Output};

/// Lists and shows messages, sends them again or lets them go.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists messages, newest first.
    List(ListArgs),
    /// Shows a message with its deliveries, attempts and actions.
    Show(ShowArgs),
    /// Sends a message again, outside the order.
    Resend(ActArgs),
    /// Decides that a message is not to be sent.
    Dismiss(DismissArgs),
    /// Stores a corrected copy of a message and sends that; the original stays as it is.
    ///
    /// The copy has the key and the attributes of the original.
    Edit(EditArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    filter: FilterArgs,
    /// Messages to show.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
}

/// Which messages are meant.
#[derive(Clone, Debug, clap::Args)]
struct FilterArgs {
    /// Only of this interface.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Only with a delivery to this destination.
    #[arg(long, value_name = "NAME")]
    destination: Option<String>,
    /// Only in this status.
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// Only with this key.
    #[arg(long)]
    key: Option<String>,
    /// Only with this value of an attribute.
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute)]
    attribute: Option<String>,
    /// Only with this control id: the attribute `hl7.control-id`.
    #[arg(long, value_name = "ID", conflicts_with = "attribute")]
    control_id: Option<String>,
    /// Only with this text in the value of an attribute.
    #[arg(long)]
    text: Option<String>,
    /// Only stored at this time or later, such as `2026-11-30T08:00:00.000Z`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<views::Time>,
    /// Only stored before this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<views::Time>,
    /// Only older than this message: the `next` of the page before.
    #[arg(long, value_name = "ID")]
    before: Option<u64>,
}

impl FilterArgs {
    fn params(self, limit: u32) -> params::ListMessages {
        params::ListMessages {
            interface: self.interface,
            status: self.status.map(MessageStatus::from),
            destination: self.destination,
            key: self.key,
            attribute: self.control_id.map(|id| format!("hl7.control-id={id}")).or(self.attribute),
            text: self.text,
            from: self.from,
            to: self.to,
            cursor: self.before.map(MessageId),
            limit,
        }
    }
}

fn attribute(text: &str) -> Result<String, &'static str> {
    if text.contains('=') { Ok(text.to_owned()) } else { Err("write `NAME=VALUE`") }
}

fn time(text: &str) -> Result<views::Time, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Status {
    Pending,
    Finished,
    Quarantined,
    Duplicate,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The message.
    id: u64,
    /// Write its bytes as they were received, and nothing else.
    #[arg(long)]
    body: bool,
    /// Write the bytes that the sender of this destination was given, and nothing else; where the
    /// destination has `save_output = true`.
    #[arg(long, value_name = "DESTINATION", conflicts_with = "body", value_parser = destination_name)]
    output: Option<String>,
}

/// As the project has them: it becomes a part of a path.
fn destination_name(text: &str) -> Result<String, &'static str> {
    let name = portway_config::Name::new(text).ok_or("it is no name of a destination")?;
    Ok(name.as_str().to_owned())
}

#[derive(Debug, clap::Args)]
struct ActArgs {
    #[command(flatten)]
    many: ManyArgs,
    /// Why, for the record.
    #[arg(long, default_value = "")]
    reason: String,
}

#[derive(Debug, clap::Args)]
struct DismissArgs {
    #[command(flatten)]
    many: ManyArgs,
    /// Why, for the record.
    #[arg(long)]
    reason: String,
}

#[derive(Debug, clap::Args)]
struct EditArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The original.
    id: u64,
    /// A file with the corrected bytes.
    #[arg(long, value_name = "FILE")]
    body: PathBuf,
    /// Only to this destination; may be given several times. Otherwise to all of its interface.
    #[arg(long, value_name = "NAME")]
    destination: Vec<String>,
    /// Why, for the record.
    #[arg(long, default_value = "")]
    reason: String,
}

/// Which messages something is done to.
#[derive(Debug, clap::Args)]
struct ManyArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The messages, at most 500.
    #[arg(value_name = "ID", required_unless_present = "found", conflicts_with = "found")]
    ids: Vec<u64>,
    /// Those that are found by `--interface`, `--status` and the other filters, at most 500 at a time.
    #[arg(long)]
    found: bool,
    #[command(flatten)]
    filter: FilterArgs,
    /// Names the request: run again under the same name, it does nothing twice.
    #[arg(long, value_name = "NAME")]
    request: Option<String>,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    match args.command {
        Command::List(args) => list(args, output).await?,
        Command::Show(args) => show_one(args, output).await?,
        Command::Resend(ActArgs { many, reason }) => return act(many, "resend", reason, output).await,
        Command::Edit(args) => edit(args, output).await?,
        Command::Dismiss(DismissArgs { many, reason }) => return act(many, "dismiss", reason, output).await,
    }
    Ok(Exit::Done)
}

async fn list(args: ListArgs, output: &mut Output) -> anyhow::Result<()> {
    let client = Client::of(&args.project)?;
    let page = client.list_messages(&args.filter.params(args.limit)).await?;
    output.data(&page, show_page)?;
    if let (Format::Text, Some(next)) = (output.format(), page.next) {
        output.note(format!("there are more: `--before {next}`"));
    }
    Ok(())
}

async fn edit(args: EditArgs, output: &mut Output) -> anyhow::Result<()> {
    let client = Client::of(&args.project)?;
    let body = std::fs::read(&args.body).with_context(|| format!("cannot read `{}`", args.body.display()))?;
    let destinations = (!args.destination.is_empty()).then(|| args.destination.join(","));
    let edit = params::Edit { destinations, reason: args.reason, author: author() };
    let done = client.edit(MessageId(args.id), &edit, body.into()).await?;
    output.data(&done, |done| format!("message {} is the corrected copy of {}", done.message, done.of))?;
    Ok(())
}

async fn show_one(args: ShowArgs, output: &mut Output) -> anyhow::Result<()> {
    let client = Client::of(&args.project)?;
    let id = MessageId(args.id);
    if let Some(destination) = args.output {
        output.bytes(&client.get_output(id, &destination).await?).context("cannot write the output")?;
    } else if args.body {
        output.bytes(&client.get_body(id).await?).context("cannot write the body")?;
    } else {
        output.data(&client.get_message(id).await?, show_detail)?;
    }
    Ok(())
}

async fn act(many: ManyArgs, verb: &str, reason: String, output: &mut Output) -> anyhow::Result<Exit> {
    let client = Client::of(&many.project)?;
    if let ([id], None) = (many.ids.as_slice(), &many.request) {
        let act = params::Act { destination: many.filter.destination, reason, author: author() };
        let done = client.act(MessageId(*id), verb, &act).await?;
        output.data(&done, |done| did(&done.action, done.message, &done.destinations))?;
        return Ok(Exit::Done);
    }
    let request = many.request.unwrap_or_else(|| format!("{:016x}", rand::random::<u64>()));
    let destination = many.filter.destination.clone();
    let limit = params::ListMessages::LIMIT_MAX;
    let (ids, search) = match many.found {
        true => (None, Some(many.filter.params(limit))),
        false => (Some(many.ids.into_iter().map(MessageId).collect()), None),
    };
    let act = params::BulkAct { ids, search, destination, request, reason, author: author() };
    let done = client.act_on_many(verb, &act).await?;
    output.data(&done, show_many)?;
    let failed = done.items.iter().any(|item| item.error.is_some());
    if let (Format::Text, Some(next)) = (output.format(), done.next) {
        output.note(format!("there may be more: `--before {next}`"));
    }
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

fn did(action: &str, message: MessageId, destinations: &[String]) -> String {
    let did = if action == "resend" { "is sent again to" } else { "is dismissed at" };
    format!("message {message} {did} {}", destinations.join(", "))
}

fn show_many(done: &views::BulkDone) -> String {
    let line = |item: &views::BulkItem| match &item.error {
        Some(why) => format!("message {}: {} ({})", item.message, why.text, why.code),
        None if item.repeated => {
            format!("message {}: done before, by request {}", item.message, done.request)
        }
        None => did(&done.action, item.message, &item.destinations),
    };
    let mut lines: Vec<String> = done.items.iter().map(line).collect();
    lines.push(format!("{} by request {}", show::counted(done.items.len() as u64, "message"), done.request));
    lines.join("\n")
}

fn show_page(page: &views::MessagePage) -> String {
    let rows: Vec<_> = page.items.iter().map(row).collect();
    show::table(["ID", "RECEIVED", "INTERFACE", "STATUS", "KEY", "SIZE", "FROM"], &rows)
}

fn row(message: &views::Message) -> [String; 7] {
    [
        message.id.to_string(),
        message.received_at.to_string(),
        message.interface.clone(),
        message.status.to_string(),
        message.key.clone().unwrap_or_default(),
        show::bytes(message.body_bytes),
        origin(message),
    ]
}

fn origin(message: &views::Message) -> String {
    match (message.origin, &message.origin_kind) {
        (Some(origin), Some(kind)) => format!("{kind} of {origin}"),
        _ => String::new(),
    }
}

fn show_detail(detail: &views::MessageDetail) -> String {
    let views::MessageDetail { message, attributes, deliveries, attempts, outputs, actions, edits } = detail;
    let mut text = format!("message {} of {}: {}\n", message.id, message.interface, message.status);
    let _ = writeln!(text, "  received {}, stored {}", message.received_at, message.stored_at);
    let optional = [
        ("occurred", message.occurred_at.map(|time| time.to_string())),
        ("key", message.key.clone()),
        ("dedupe key", message.dedupe.clone()),
        ("from", Some(origin(message)).filter(|origin| !origin.is_empty())),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            let _ = writeln!(text, "  {name} {value}");
        }
    }
    let _ =
        writeln!(text, "  {}: `portway message show {} --body`", show::bytes(message.body_bytes), message.id);
    for copy in edits {
        let _ = writeln!(text, "  corrected as message {copy}");
    }
    for (name, value) in attributes {
        let _ = writeln!(text, "  {name}: {value}");
    }
    for delivery in deliveries {
        show_delivery(&mut text, delivery);
        for attempt in attempts.iter().filter(|attempt| attempt.destination == delivery.destination) {
            let _ = writeln!(
                text,
                "      {} attempt {}.{}: {} after {} ms: {}",
                attempt.started_at,
                attempt.round,
                attempt.number,
                attempt.outcome,
                attempt.took_ms,
                attempt.text
            );
        }
        for output in outputs.iter().filter(|output| output.destination == delivery.destination) {
            show_output(&mut text, message.id, output);
        }
    }
    for action in actions {
        let at = action.destination.as_deref().unwrap_or("every destination");
        let _ = writeln!(
            text,
            "  {} {} by {} at {at}: {}",
            action.at, action.action, action.author, action.reason
        );
    }
    text
}

fn show_output(text: &mut String, id: MessageId, output: &views::Output) {
    let views::Output { destination, round, attempt, body, body_bytes, .. } = output;
    let size = show::bytes(*body_bytes);
    let _ = match body.as_str() {
        "too-large" | "no-room" => {
            let why = if body == "no-room" { "not kept: the store was full" } else { "too large to keep" };
            writeln!(text, "      given to the sender for attempt {round}.{attempt}: {size}, {why}")
        }
        _ => writeln!(
            text,
            "      given to the sender for attempt {round}.{attempt}: {size}{}: `portway message show {id} --output {destination}`",
            if body == "same" { ", as received" } else { "" },
        ),
    };
}

fn show_delivery(text: &mut String, delivery: &views::Delivery) {
    let attempts = show::counted(u64::from(delivery.attempts), "attempt");
    let _ = write!(
        text,
        "  → {}: {} ({attempts}, round {})",
        delivery.destination, delivery.state, delivery.round
    );
    if let Some(finished) = delivery.finished_at {
        let _ = write!(text, " at {finished}");
    }
    if let Some(due) = delivery.due_at {
        let _ = write!(text, ", tried again {}", show::until(due));
    }
    let _ = match &delivery.reason {
        Some(reason) => writeln!(text, ": {reason}"),
        None => writeln!(text),
    };
}

impl From<Status> for MessageStatus {
    fn from(status: Status) -> MessageStatus {
        match status {
            Status::Pending => MessageStatus::Pending,
            Status::Finished => MessageStatus::Finished,
            Status::Quarantined => MessageStatus::Quarantined,
            Status::Duplicate => MessageStatus::Duplicate,
        }
    }
}
