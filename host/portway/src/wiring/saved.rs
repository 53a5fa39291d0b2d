//! What a sender is given, as it is kept for people.

use portway_model::{Envelope, SavedBody, SavedOutput};

use super::deliver::Step;

/// One a message that goes to the sender. Bytes are shared, not copied; what is more than may be
/// kept is told by its size.
pub(super) fn outputs(messages: &[Envelope], steps: &[Step]) -> Vec<Option<Box<SavedOutput>>> {
    let mut left = SavedOutput::RUN_BYTES_MAX;
    let mut keep = |(message, step): (&Envelope, &Step)| {
        let Step::Ready(ready) = step else { return None };
        let given = ready.first()?;
        Some(Box::new(SavedOutput {
            key: given.key.clone(),
            attributes: given.attributes.clone(),
            body: body(message, given, &mut left),
        }))
    };
    messages.iter().zip(steps).map(&mut keep).collect()
}

fn body(message: &Envelope, given: &Envelope, left: &mut usize) -> SavedBody {
    let size = given.body.len();
    // A transform that passes a message on hands over the very same bytes.
    if given.body.as_ptr() == message.body.as_ptr() && size == message.body.len() {
        return SavedBody::Same;
    }
    if size > SavedOutput::BODY_BYTES_MAX || size > *left {
        return SavedBody::TooLarge(size as u64);
    }
    *left -= size;
    SavedBody::Kept(given.body.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use portway_engine::ports::Verdict;
    use portway_model::{AttemptNo, MessageId, Timestamp};

    use super::*;

    fn envelope(body: Bytes) -> Envelope {
        Envelope {
            id: MessageId(1),
            received_at: Timestamp(1),
            attempt: AttemptNo(1),
            key: None,
            attributes: Arc::default(),
            body,
        }
    }

    #[test]
    fn what_goes_to_the_sender_is_kept_within_limits() {
        let message = envelope(Bytes::from_static(b"as received"));
        let made = |size| Step::Ready(vec![envelope(vec![b'x'; size].into())]);
        let most = SavedOutput::BODY_BYTES_MAX;
        let mut steps =
            vec![Step::Ready(vec![message.clone()]), Step::Done(Verdict::Untried), made(most + 1)];
        steps.extend((0..9).map(|_| made(most)));
        let messages = vec![message; steps.len()];
        let kinds: String = outputs(&messages, &steps)
            .iter()
            .map(|output| match output.as_ref().map(|output| &output.body) {
                None => '-',
                Some(SavedBody::Same) => 's',
                Some(SavedBody::Kept(_)) => 'k',
                Some(SavedBody::TooLarge(_)) => 'l',
                Some(SavedBody::NoRoom(_)) => 'n',
            })
            .collect();
        assert_eq!(kinds, "s-lkkkkkkkkl");
    }
}
