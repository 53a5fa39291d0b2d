//! `portway message`: list, show, resend, dismiss.

use std::fmt::Write;

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
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// Only of this interface.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Only with a delivery to this destination.
    #[arg(long, value_name = "NAME", requires = "interface")]
    destination: Option<String>,
    /// Only in this status.
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// Only older than this message: the `next` of the page before.
    #[arg(long, value_name = "ID")]
    before: Option<u64>,
    /// Messages to show.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
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
}

#[derive(Debug, clap::Args)]
struct ActArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The message.
    id: u64,
    /// Only to this destination; otherwise to all that are not pending.
    #[arg(long, value_name = "NAME")]
    destination: Option<String>,
    /// Why, for the record.
    #[arg(long, default_value = "")]
    reason: String,
}

#[derive(Debug, clap::Args)]
struct DismissArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The message.
    id: u64,
    /// Only at this destination; otherwise at all where it is pending or quarantined.
    #[arg(long, value_name = "NAME")]
    destination: Option<String>,
    /// Why, for the record.
    #[arg(long)]
    reason: String,
}

pub async fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    match args.command {
        Command::List(args) => list(args, output).await?,
        Command::Show(args) => show_one(args, output).await?,
        Command::Resend(ActArgs { project, id, destination, reason }) => {
            act(&project, id, "resend", destination, reason, output).await?;
        }
        Command::Dismiss(DismissArgs { project, id, destination, reason }) => {
            act(&project, id, "dismiss", destination, reason, output).await?;
        }
    }
    Ok(Exit::Done)
}

async fn list(args: ListArgs, output: &mut Output) -> anyhow::Result<()> {
    let client = Client::of(&args.project)?;
    let list = params::ListMessages {
        interface: args.interface,
        status: args.status.map(MessageStatus::from),
        destination: args.destination,
        cursor: args.before.map(MessageId),
        limit: args.limit,
    };
    let page = client.list_messages(&list).await?;
    output.data(&page, show_page)?;
    if let (Format::Text, Some(next)) = (output.format(), page.next) {
        output.note(format!("there are more: `--before {next}`"));
    }
    Ok(())
}

async fn show_one(args: ShowArgs, output: &mut Output) -> anyhow::Result<()> {
    let client = Client::of(&args.project)?;
    let id = MessageId(args.id);
    if args.body {
        output.bytes(&client.get_body(id).await?).context("cannot write the body")?;
    } else {
        output.data(&client.get_message(id).await?, show_detail)?;
    }
    Ok(())
}

async fn act(
    project: &ProjectArgs,
    id: u64,
    verb: &str,
    destination: Option<String>,
    reason: String,
    output: &mut Output,
) -> anyhow::Result<()> {
    let client = Client::of(project)?;
    let act = params::Act { destination, reason, author: author() };
    let done = client.act(MessageId(id), verb, &act).await?;
    output.data(&done, |done| {
        let did = if done.action == "resend" { "is sent again to" } else { "is dismissed at" };
        format!("message {} {did} {}", done.message, done.destinations.join(", "))
    })?;
    Ok(())
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
    let views::MessageDetail { message, attributes, deliveries, attempts, actions } = detail;
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
