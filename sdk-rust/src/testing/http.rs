//! A host for HTTP sources: hands requests over, stores what was accepted, settles.

use super::stored::Stored;
use crate::{
    Attributes, Body, Context, Decision, Failure, Fate, HttpAnswer, HttpRequest, HttpSource, Item, Later,
    Receipt, Refusal, parse_settings,
};

const TICKET_BYTES_MAX: usize = 4096;

/// One interface with an HTTP source.
#[derive(Debug)]
pub struct HttpHost<P> {
    plugin: P,
    settings: String,
    /// All that was stored.
    pub stored: Vec<Stored>,
    pub refused: Vec<Refusal>,
    /// Messages are not stored, under this code.
    pub not_stored: Option<Later>,
}

impl<P: HttpSource> HttpHost<P> {
    /// Opens the source.
    pub fn open(settings: &str) -> Result<HttpHost<P>, Failure> {
        let plugin = P::open(parse_settings(settings)?, &Context::default())?;
        Ok(HttpHost {
            plugin,
            settings: settings.to_owned(),
            stored: Vec::new(),
            refused: Vec::new(),
            not_stored: None,
        })
    }

    /// A request that is a body and a content type.
    pub fn post(&mut self, content_type: &str, body: impl Into<Body>) -> Result<HttpAnswer, Failure> {
        self.request("/", &[("content-type", content_type)], body)
    }

    /// One request. Another instance answers it, since the host may lose one in between. A
    /// dedupe key that was stored before is a duplicate.
    pub fn request(
        &mut self,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Result<HttpAnswer, Failure> {
        let body: Body = body.into().into_portable()?;
        let copy = Body::Inline(body.bytes()?.into_owned());
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request = HttpRequest {
            method: "POST".into(),
            target: target.into(),
            headers,
            peer: Attributes::new(),
            body,
        };
        let accepted = match self.plugin.receive(request)? {
            Decision::Refuse(answer) => {
                assert!((400..600).contains(&answer.status), "a refusal with status {}", answer.status);
                return Ok(answer);
            }
            Decision::Answer(answer) => return Ok(answer),
            Decision::Accept(accepted) => accepted,
        };
        assert!(accepted.ticket.len() <= TICKET_BYTES_MAX, "a ticket of {} bytes", accepted.ticket.len());
        let receipts = accepted.items.into_iter().map(|item| self.take(item, &copy)).collect();
        self.plugin = P::open(parse_settings(&self.settings)?, &Context::default())?;
        self.plugin.settle(&accepted.ticket, receipts)
    }

    fn take(&mut self, item: Item, body: &Body) -> Receipt {
        match item {
            Item::Message(mut draft) => {
                let ticket = std::mem::take(&mut draft.ticket);
                if let Some(later) = &self.not_stored {
                    return Receipt { fate: Fate::NotStored(later.clone()), ticket };
                }
                let stored = Stored::of(draft, self.stored.len() as u64 + 1, Some(body));
                let same = |known: &&Stored| known.dedupe.is_some() && known.dedupe == stored.dedupe;
                if let Some(first) = self.stored.iter().find(same) {
                    return Receipt { fate: Fate::Duplicate(first.id), ticket };
                }
                let fate = Fate::Stored(stored.id);
                self.stored.push(stored);
                Receipt { fate, ticket }
            }
            Item::Refused(refusal) => {
                self.refused.push(refusal.clone());
                Receipt { fate: Fate::Noted, ticket: refusal.ticket }
            }
            Item::Control(ticket) => Receipt { fate: Fate::Noted, ticket },
        }
    }
}
