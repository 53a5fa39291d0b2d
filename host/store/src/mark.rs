//! The trace a transaction leaves beside its mark: what became of its batch, as adapters store it.
//!
//! The outcome is stored with every transaction, so it is small where all went as usual: some ten
//! bytes for any number of messages and results. Numbers are variable-length, seven bits a byte,
//! low ones first, the high bit saying that more follow.

use portway_model::{DestinationId, Lane, MessageId, Round};

use crate::{ActionOutcome, MessageOutcome, ResultOutcome, WriteOutcome};

/// As stored.
pub fn encode(outcome: &WriteOutcome) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_messages(&mut bytes, &outcome.messages);
    put(&mut bytes, outcome.results.len() as u64);
    let unusual: Vec<_> =
        outcome.results.iter().enumerate().filter(|(_, result)| !is_usual(result)).collect();
    put(&mut bytes, unusual.len() as u64);
    for (index, result) in unusual {
        put(&mut bytes, index as u64);
        match result {
            ResultOutcome::Stale => put(&mut bytes, 0),
            ResultOutcome::Disowned => put(&mut bytes, 2),
            ResultOutcome::Applied(routed) => {
                put(&mut bytes, 1);
                put_messages(&mut bytes, routed);
            }
        }
    }
    put(&mut bytes, outcome.actions.len() as u64);
    for action in &outcome.actions {
        put_action(&mut bytes, action);
    }
    put(&mut bytes, outcome.suspects.len() as u64);
    outcome.suspects.iter().for_each(|count| put(&mut bytes, u64::from(*count)));
    bytes
}

fn is_usual(result: &ResultOutcome) -> bool {
    matches!(result, ResultOutcome::Applied(routed) if routed.is_empty())
}

/// A count, the first number, and those that are not simply stored under the next number.
fn put_messages(bytes: &mut Vec<u8>, messages: &[MessageOutcome]) {
    put(bytes, messages.len() as u64);
    let Some(first) = messages.first().map(id_of) else { return };
    put(bytes, first.0);
    let unusual: Vec<_> = (first.0..).zip(messages).filter(|(id, outcome)| !is_plain(*id, outcome)).collect();
    put(bytes, unusual.len() as u64);
    for (id, outcome) in unusual {
        put(bytes, id - first.0);
        put(bytes, id_of(outcome).0);
        let (kind, other) = match outcome {
            MessageOutcome::Stored { conflict: None, .. } => (0, 0),
            MessageOutcome::Stored { conflict: Some(other), .. } => (1, other.0),
            MessageOutcome::Duplicate { of, .. } => (2, of.0),
        };
        put(bytes, kind);
        put(bytes, other);
    }
}

fn id_of(outcome: &MessageOutcome) -> MessageId {
    match outcome {
        MessageOutcome::Stored { id, .. } | MessageOutcome::Duplicate { id, .. } => *id,
    }
}

fn is_plain(expected: u64, outcome: &MessageOutcome) -> bool {
    matches!(outcome, MessageOutcome::Stored { id, conflict: None } if id.0 == expected)
}

fn put_action(bytes: &mut Vec<u8>, action: &ActionOutcome) {
    match action {
        ActionOutcome::NoMessage => put(bytes, 0),
        ActionOutcome::NoBody => put(bytes, 1),
        ActionOutcome::Repeated => put(bytes, 3),
        ActionOutcome::Done(changed) => {
            put(bytes, 2);
            put(bytes, changed.len() as u64);
            for (destination, lane, round) in changed {
                put(bytes, u64::from(destination.0));
                put(bytes, u64::from(lane.number()));
                put(bytes, u64::from(round.0));
            }
        }
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// What [`encode`] wrote; none: it is damaged.
pub fn decode(bytes: &[u8]) -> Option<WriteOutcome> {
    let mut reader = Reader { bytes };
    let messages = reader.messages()?;
    let mut results = reader.repeat(|_| Some(ResultOutcome::Applied(Vec::new())))?;
    for _ in 0..reader.number()? {
        let index = usize::try_from(reader.number()?).ok()?;
        let outcome = match reader.number()? {
            0 => ResultOutcome::Stale,
            2 => ResultOutcome::Disowned,
            1 => ResultOutcome::Applied(reader.messages()?),
            _ => return None,
        };
        *results.get_mut(index)? = outcome;
    }
    let actions = reader.repeat(Reader::action)?;
    let suspects = reader.repeat(|reader| u32::try_from(reader.number()?).ok())?;
    // What others did is told anew.
    Some(WriteOutcome { messages, results, actions, suspects, elsewhere: Vec::new() })
}

struct Reader<'a> {
    bytes: &'a [u8],
}

/// No list of an outcome is longer: what says otherwise is damaged.
const LENGTH_MAX: u64 = 1 << 24;

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn repeat<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number().filter(|count| *count <= LENGTH_MAX)?;
        (0..count).map(|_| read(self)).collect()
    }

    fn messages(&mut self) -> Option<Vec<MessageOutcome>> {
        let count = self.number().filter(|count| *count <= LENGTH_MAX)?;
        if count == 0 {
            return Some(Vec::new());
        }
        let first = self.number()?;
        let plain = |id| MessageOutcome::Stored { id: MessageId(id), conflict: None };
        let mut messages: Vec<MessageOutcome> = (first..first.checked_add(count)?).map(plain).collect();
        for _ in 0..self.number()? {
            let index = usize::try_from(self.number()?).ok()?;
            let id = MessageId(self.number()?);
            let (kind, other) = (self.number()?, MessageId(self.number()?));
            *messages.get_mut(index)? = match kind {
                0 => MessageOutcome::Stored { id, conflict: None },
                1 => MessageOutcome::Stored { id, conflict: Some(other) },
                2 => MessageOutcome::Duplicate { id, of: other },
                _ => return None,
            };
        }
        Some(messages)
    }

    fn action(&mut self) -> Option<ActionOutcome> {
        match self.number()? {
            0 => Some(ActionOutcome::NoMessage),
            1 => Some(ActionOutcome::NoBody),
            2 => self.repeat(Reader::changed).map(ActionOutcome::Done),
            3 => Some(ActionOutcome::Repeated),
            _ => None,
        }
    }

    fn changed(&mut self) -> Option<(DestinationId, Lane, Round)> {
        let destination = DestinationId(u32::try_from(self.number()?).ok()?);
        let lane = Lane::from_number(u16::try_from(self.number()?).ok()?)?;
        Some((destination, lane, Round(u32::try_from(self.number()?).ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(id: u64, conflict: Option<u64>) -> MessageOutcome {
        MessageOutcome::Stored { id: MessageId(id), conflict: conflict.map(MessageId) }
    }

    #[test]
    fn an_outcome_reads_back_equal() {
        let duplicate = MessageOutcome::Duplicate { id: MessageId(302), of: MessageId(7) };
        let outcome = WriteOutcome {
            elsewhere: Vec::new(),
            messages: vec![
                stored(300, None),
                stored(301, Some(299)),
                duplicate.clone(),
                stored(u64::MAX / 2, None),
            ],
            results: vec![
                ResultOutcome::Applied(vec![]),
                ResultOutcome::Stale,
                ResultOutcome::Disowned,
                ResultOutcome::Applied(vec![duplicate, stored(303, None)]),
            ],
            actions: vec![
                ActionOutcome::NoBody,
                ActionOutcome::Done(vec![(DestinationId(9), Lane::APART, Round(1))]),
                ActionOutcome::NoMessage,
                ActionOutcome::Repeated,
            ],
            suspects: vec![1, 700],
        };
        let bytes = encode(&outcome);
        assert_eq!(format!("{:?}", decode(&bytes).unwrap()), format!("{outcome:?}"));
        for end in 0..bytes.len() {
            // Cut short it may read as something shorter or not at all, but it never panics.
            let _ = decode(&bytes[..end]);
        }
    }

    #[test]
    fn a_usual_outcome_is_small() {
        let outcome = WriteOutcome {
            messages: (1000..3048).map(|id| stored(id, None)).collect(),
            results: vec![ResultOutcome::Applied(vec![]); 4096],
            ..WriteOutcome::default()
        };
        assert!(encode(&outcome).len() < 16, "{}", encode(&outcome).len());
    }
}
