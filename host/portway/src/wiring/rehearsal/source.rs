//! What a source finds in an input: the bytes of a connection, a request, or a body as it is.

use bytes::Bytes;
use portway_config::{CaseFile, InterfaceSettings, Role, SourceSettings};
use portway_model::{Attributes, Draft, Failure};
use portway_runtime::{
    Decision, HttpAnswer, HttpRequest, PluginKind, Responder, Scheme, SourceError, SourceItem,
};

use super::super::assemble::AssembleError;
use super::super::openings::Owner;
use super::answers::Answers;
use super::{Rehearsal, with_case};

/// The byte before a message of MLLP, and the two behind it.
const MLLP_START: u8 = 0x0b;
const MLLP_END: &[u8] = &[0x1c, 0x0d];

/// What is given to a source.
#[derive(Clone, Debug)]
pub struct Input {
    /// The name of the file, whose ending says what it holds.
    pub name: String,
    pub bytes: Bytes,
}

/// One thing that a source found, in its order.
#[derive(Clone, Debug)]
pub enum Found {
    Message(Draft),
    /// Input that became no message.
    Refused(Failure),
    /// A part of the protocol that carries no message.
    Control,
    /// A request that was answered without a message.
    Answered {
        status: u16,
        text: String,
    },
    /// A component that answers requests itself did so.
    Responded {
        status: u16,
        text: String,
    },
    /// The source could not go on.
    Failed(String),
}

impl Rehearsal<'_> {
    /// What the interface's source finds in an input. A poll source looks for messages by itself,
    /// and a route has none: there the input is the body of a message.
    pub async fn receive(
        &mut self,
        interface: &InterfaceSettings,
        case: &CaseFile,
        input: &Input,
        answers: &mut Answers,
    ) -> Result<Vec<Found>, AssembleError> {
        self.set_clock(portway_model::Timestamp(case.clock.0));
        let Some(source) = &interface.source else {
            return Ok(vec![body_of(input)]);
        };
        let plugin_use = with_case(&source.plugin_use(), case, None, None);
        let owner = Owner { interface: interface.name.as_str(), destination: "" };
        let (plugin, opening) = self.open(Role::Source, &owner, &plugin_use, answers.desk(None)).await?;
        Ok(match plugin.kind() {
            PluginKind::StreamSource => {
                let opened = plugin.stream_source(opening)?;
                let is_mllp = source.plugin.value.as_str() == "mllp";
                let bytes = if is_mllp { framed(input) } else { input.bytes.clone() };
                let mut found = Vec::new();
                match stream(&opened, bytes, &mut found).await {
                    Ok(()) => {}
                    Err(error) => found.push(Found::Failed(error.to_string())),
                }
                found
            }
            PluginKind::HttpSource => {
                let opened = plugin.http_source(opening)?;
                match request_of(input, source) {
                    Ok(request) => decided(opened.receive(&request).await),
                    Err(text) => vec![Found::Failed(text)],
                }
            }
            PluginKind::Respond => {
                let opened = plugin.responder(opening, source.response_bytes_max.as_usize())?;
                match request_of(input, source) {
                    Ok(request) => vec![responded(&opened, request).await],
                    Err(text) => vec![Found::Failed(text)],
                }
            }
            PluginKind::PollSource | PluginKind::Transform | PluginKind::Sender | PluginKind::HttpSender => {
                vec![body_of(input)]
            }
        })
    }
}

fn body_of(input: &Input) -> Found {
    Found::Message(Draft {
        body: input.bytes.clone(),
        key: None,
        dedupe: None,
        occurred_at: None,
        attributes: Attributes::default(),
        doubt: None,
    })
}

async fn stream(
    source: &portway_runtime::StreamSource,
    bytes: Bytes,
    found: &mut Vec<Found>,
) -> Result<(), SourceError> {
    let mut connection = source.accept(peer(), 0).await?;
    found.extend(connection.receive(bytes).await?.into_iter().map(found_of));
    found.extend(connection.finish("peer-closed").await?.into_iter().map(found_of));
    Ok(())
}

fn found_of(item: SourceItem) -> Found {
    match item {
        SourceItem::Message { draft, .. } => Found::Message(draft),
        SourceItem::Refused { failure, .. } => Found::Refused(failure),
        SourceItem::Control { .. } => Found::Control,
    }
}

fn decided(decision: Result<Decision, SourceError>) -> Vec<Found> {
    match decision {
        Ok(Decision::Accept { items, .. }) => items.into_iter().map(found_of).collect(),
        Ok(Decision::Refuse(answer) | Decision::Answer(answer)) => vec![answered(&answer)],
        Err(error) => vec![Found::Failed(error.to_string())],
    }
}

fn answered(answer: &HttpAnswer) -> Found {
    Found::Answered { status: answer.status, text: String::from_utf8_lossy(&answer.body).into_owned() }
}

/// What a component answers by itself.
async fn responded(responder: &Responder, request: HttpRequest) -> Found {
    let mut made = http::Request::builder().method(request.method.as_str()).uri(request.target);
    for (name, value) in request.headers {
        made = made.header(name, value);
    }
    let made = match made.body(request.body) {
        Ok(made) => made,
        Err(error) => return Found::Failed(error.to_string()),
    };
    match responder.respond(Scheme::Http, made).await {
        Ok(answer) => Found::Responded {
            status: answer.status().as_u16(),
            text: String::from_utf8_lossy(answer.body()).into_owned(),
        },
        Err(error) => Found::Failed(error.to_string()),
    }
}

/// Who a source is told that it speaks with.
fn peer() -> Attributes {
    let pairs = [("address", "127.0.0.1"), ("port", "1")];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Attributes::new(pairs.to_vec()).unwrap_or_default()
}

/// A message of HL7 as it lies in a file, as MLLP carries it: in a frame, its segments ended with
/// carriage returns. What has a frame already is left as it is.
fn framed(input: &Input) -> Bytes {
    if input.bytes.first() == Some(&MLLP_START) {
        return input.bytes.clone();
    }
    let mut bytes = vec![MLLP_START];
    if input.bytes.contains(&b'\r') {
        bytes.extend_from_slice(&input.bytes);
    } else {
        bytes.extend(input.bytes.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }));
    }
    bytes.extend_from_slice(MLLP_END);
    bytes.into()
}

/// The request of a `.http` file; of any other the file is the body of a request to the source.
fn request_of(input: &Input, source: &SourceSettings) -> Result<HttpRequest, String> {
    if input.name.ends_with(".http") {
        return parse_request(&input.bytes);
    }
    let path = source.path.as_ref().map_or("/", |path| path.value.as_str()).trim_end_matches('*');
    let method = source.methods.as_ref().and_then(|methods| methods.first());
    let method = method.map_or("POST", |method| method.as_str());
    let headers = vec![("content-type".to_owned(), content_type(&input.name).to_owned())];
    Ok(HttpRequest {
        method: method.to_owned(),
        target: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
        headers,
        peer: peer(),
        body: input.bytes.clone(),
    })
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("json") => "application/json",
        Some("ndjson") => "application/x-ndjson",
        Some("xml") => "application/xml",
        Some("csv") => "text/csv",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// `POST /path`, headers, an empty line, the body.
fn parse_request(bytes: &Bytes) -> Result<HttpRequest, String> {
    let mut rest: &[u8] = bytes;
    let mut lines = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, after) = match end {
            Some(end) => (rest.get(..end).unwrap_or_default(), rest.get(end + 1..).unwrap_or_default()),
            None => (rest, &[][..]),
        };
        rest = after;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = std::str::from_utf8(line).map_err(|_| "the head of the request is not UTF-8")?;
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let (first, headers) = lines.split_first().ok_or("the request has no first line")?;
    let mut words = first.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(format!("`{first}` is no first line of a request, such as `POST /orders`"));
    };
    let header = |line: &&str| match line.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned())),
        None => Err(format!("`{line}` is no header")),
    };
    let headers = headers.iter().map(header).collect::<Result<Vec<_>, String>>()?;
    Ok(HttpRequest {
        method: method.to_ascii_uppercase(),
        target: target.to_owned(),
        headers,
        peer: peer(),
        body: bytes.slice_ref(rest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, text: &'static str) -> Input {
        Input { name: name.to_owned(), bytes: Bytes::from_static(text.as_bytes()) }
    }

    #[test]
    fn a_message_in_a_file_gets_its_frame_and_its_carriage_returns() {
        assert_eq!(framed(&input("input.hl7", "MSH|\nPID|\n")), "\x0bMSH|\rPID|\r\x1c\r");
        assert_eq!(framed(&input("input.hl7", "MSH|\rNTE|a\nb\r")), "\x0bMSH|\rNTE|a\nb\r\x1c\r");
        assert_eq!(framed(&input("input.bin", "\x0bMSH\x1c\r")), "\x0bMSH\x1c\r");
    }

    #[test]
    fn a_request_is_read_with_either_line_end() {
        for text in ["POST /a?b=c HTTP/1.1\r\nX-T: 1\r\n\r\n{}\n", "post /a?b=c\nx-t:1\n\n{}\n"] {
            let request = parse_request(&Bytes::from_static(text.as_bytes())).unwrap();
            assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/a?b=c"));
            assert_eq!(request.headers, [("x-t".to_owned(), "1".to_owned())]);
            assert_eq!(request.body, "{}\n");
        }
    }

    #[test]
    fn what_is_no_request_is_refused_with_a_sentence() {
        for (text, says) in
            [("", "no first line"), ("POST", "such as `POST /orders`"), ("GET /\nx\n\n", "`x` is no header")]
        {
            let error = parse_request(&Bytes::from_static(text.as_bytes())).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
