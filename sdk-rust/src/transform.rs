//! Transforms: map, filter, enrich, split.

use serde::de::DeserializeOwned;

use crate::{Attributes, Body, Call, Context, Failure, Later, Message, Problem, Trouble, progress};

/// A plugin that maps, filters, enriches or splits messages on their way to one
/// destination. A plain function is one as well: see [`export_transform!`](crate::export_transform).
pub trait Transform: Sized + 'static {
    /// Read from the destination's settings; [`NoSettings`](crate::NoSettings) where there are none.
    type Settings: DeserializeOwned;

    /// Takes the settings; a failure is shown to whoever wrote them.
    fn open(settings: Self::Settings, context: &Context) -> Result<Self, Failure>;

    /// What becomes of one message. An error by `?` quarantines it.
    fn transform(&mut self, message: Message) -> Result<TransformVerdict, Problem>;

    /// One verdict a message, in order. Implement it where a batch is cheaper than its
    /// messages, and call [`progress::begin`] for each.
    fn transform_batch(
        &mut self,
        _call: &Call,
        messages: Vec<Message>,
    ) -> Result<Vec<TransformVerdict>, Trouble> {
        transform_each(messages, |message| self.transform(message))
    }
}

/// What happens to one message.
#[derive(Debug)]
pub enum TransformVerdict {
    /// On unchanged; nothing is copied back.
    Pass,
    /// One output, or several where the destination takes several.
    Deliver(Vec<Output>),
    /// Not for this destination, and why.
    Filter(String),
    Quarantine(Failure),
    Retry(Later),
}

impl TransformVerdict {
    /// One output with this body and nothing else changed.
    pub fn deliver(body: impl Into<Body>) -> Self {
        Output::new(body).into()
    }

    /// Not for this destination, and why.
    pub fn filter(reason: impl Into<String>) -> Self {
        TransformVerdict::Filter(reason.into())
    }
}

impl From<Output> for TransformVerdict {
    fn from(output: Output) -> Self {
        TransformVerdict::Deliver(vec![output])
    }
}

/// What goes on to the next transform or to the sender.
#[derive(Debug)]
pub struct Output {
    /// None keeps the message's. Its lane stays what it was.
    pub key: Option<String>,
    /// Added to the message's; a name given here replaces all its values.
    pub attributes: Attributes,
    pub body: Body,
}

impl Output {
    /// A new body; key and attributes stay.
    pub fn new(body: impl Into<Body>) -> Self {
        Output { key: None, attributes: Attributes::new(), body: body.into() }
    }

    /// With one more attribute.
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.push(name, value);
        self
    }

    /// With another key.
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// Calls a function for each message, telling the host where it is.
///
/// Trouble ends the whole call: a transform has done nothing that could not be done again.
pub fn transform_each(
    messages: Vec<Message>,
    mut transform: impl FnMut(Message) -> Result<TransformVerdict, Problem>,
) -> Result<Vec<TransformVerdict>, Trouble> {
    let mut verdicts = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        progress::begin(index);
        verdicts.push(match transform(message) {
            Ok(verdict) => verdict,
            Err(Problem::Quarantine(failure)) => TransformVerdict::Quarantine(failure),
            Err(Problem::Retry(later)) => TransformVerdict::Retry(later),
            Err(Problem::Trouble(trouble)) => return Err(trouble),
        });
    }
    Ok(verdicts)
}

/// Makes a transform of this crate's type or function the plugin.
///
/// - `export_transform!(Type)`: a type that implements [`Transform`].
/// - `export_transform!(fn name)`: a function `fn(Message) -> Result<TransformVerdict, Problem>`.
/// - `export_transform!(fn name, Settings)`: a function
///   `fn(Message, &Settings) -> Result<TransformVerdict, Problem>`.
///
/// Natively it only checks the types, so that `cargo test` needs nothing else.
#[macro_export]
macro_rules! export_transform {
    (fn $function:ident) => {
        const _: () = {
            struct FunctionTransform;
            impl $crate::Transform for FunctionTransform {
                type Settings = $crate::NoSettings;
                fn open(_: Self::Settings, _: &$crate::Context) -> Result<Self, $crate::Failure> {
                    Ok(FunctionTransform)
                }
                fn transform(
                    &mut self,
                    message: $crate::Message,
                ) -> Result<$crate::TransformVerdict, $crate::Problem> {
                    $function(message)
                }
            }
            $crate::__export!(transform, Transform, FunctionTransform);
        };
    };
    (fn $function:ident, $settings:ty) => {
        const _: () = {
            struct FunctionTransform($settings);
            impl $crate::Transform for FunctionTransform {
                type Settings = $settings;
                fn open(settings: Self::Settings, _: &$crate::Context) -> Result<Self, $crate::Failure> {
                    Ok(FunctionTransform(settings))
                }
                fn transform(
                    &mut self,
                    message: $crate::Message,
                ) -> Result<$crate::TransformVerdict, $crate::Problem> {
                    $function(message, &self.0)
                }
            }
            $crate::__export!(transform, Transform, FunctionTransform);
        };
    };
    ($plugin:ty) => {
        $crate::__export!(transform, Transform, $plugin);
    };
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::testing::{self, Event};

    #[derive(Deserialize)]
    struct Wrapping {
        before: String,
    }

    fn wrap(message: Message, settings: &Wrapping) -> Result<TransformVerdict, Problem> {
        let text = message.body.text()?;
        if text.is_empty() {
            return Ok(TransformVerdict::filter("empty"));
        }
        Ok(TransformVerdict::deliver(format!("{}{text}", settings.before)))
    }
    crate::export_transform!(fn wrap, Wrapping);

    fn pass(_: Message) -> Result<TransformVerdict, Problem> {
        Ok(TransformVerdict::Pass)
    }
    crate::export_transform!(fn pass);

    #[test]
    fn each_message_is_begun_and_judged_by_itself() {
        testing::reset();
        let settings = Wrapping { before: ">".into() };
        let messages = vec![Message::new("a"), Message::new(""), Message::new(b"\xFF")];
        let verdicts = transform_each(messages, |message| wrap(message, &settings)).unwrap();
        let [
            TransformVerdict::Deliver(outputs),
            TransformVerdict::Filter(reason),
            TransformVerdict::Quarantine(failure),
        ] = verdicts.as_slice()
        else {
            panic!("{verdicts:?}");
        };
        assert_eq!(outputs[0].body.bytes().unwrap().as_ref(), b">a");
        assert_eq!(reason, "empty");
        assert_eq!(failure.code, "not-utf-8");
        assert_eq!(testing::events(), [Event::Begin(0), Event::Begin(1), Event::Begin(2)]);
    }

    #[test]
    fn trouble_ends_the_call() {
        let result =
            transform_each(vec![Message::new("a")], |_| Err(Trouble::unavailable("away", "no").into()));
        assert_eq!(result.unwrap_err(), Trouble::unavailable("away", "no"));
    }
}
