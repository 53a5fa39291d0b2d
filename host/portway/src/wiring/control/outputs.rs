//! What senders were given, for people.

use bytes::Bytes;
use portway_admin::{Control, ControlError, views};
use portway_model::{MessageId, code};
use portway_store::{OutputBody, OutputView};

use super::{EngineControl, no_message, not_found, unavailable};

impl EngineControl {
    pub(super) async fn load_output(&self, id: MessageId, destination: &str) -> Result<Bytes, ControlError> {
        let view = self.store.get_message(id).await.map_err(unavailable)?.ok_or_else(|| no_message(id))?;
        let to = self.destination_id(&self.names.interface_name(view.interface), destination)?;
        let none = |why: String| not_found(code::NO_OUTPUT, why);
        let outputs = self.store.list_outputs(id).await.map_err(unavailable)?;
        let output = outputs.into_iter().find(|output| output.destination == to);
        let bytes = match output.map(|output| output.body) {
            None => {
                return Err(none(format!("nothing that `{destination}` was given of message {id} is kept")));
            }
            Some(OutputBody::TooLarge(size)) => {
                return Err(none(format!(
                    "what `{destination}` was given has {size} bytes: too large to keep"
                )));
            }
            Some(OutputBody::NoRoom(size)) => {
                return Err(none(format!(
                    "the store was full when `{destination}` was given these {size} bytes: they are not kept"
                )));
            }
            Some(OutputBody::Same) => self.get_body(id).await?,
            Some(OutputBody::Kept(_)) => self.store.load_output(id, to).await.map_err(unavailable)?,
        };
        bytes.ok_or_else(|| none(format!("message {id} has no body any more")))
    }
}

pub(super) fn output(destination: String, message_bytes: u64, output: OutputView) -> views::Output {
    let (body, body_bytes) = match output.body {
        OutputBody::Same => ("same", message_bytes),
        OutputBody::Kept(size) => ("kept", size),
        OutputBody::TooLarge(size) => ("too-large", size),
        OutputBody::NoRoom(size) => ("no-room", size),
    };
    views::Output {
        destination,
        round: output.round.0,
        attempt: output.attempt.0,
        saved_at: views::Time(output.saved_at),
        key: output.key,
        attributes: output.attributes.pairs().to_vec(),
        body: body.to_owned(),
        body_bytes,
    }
}
