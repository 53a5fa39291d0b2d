//! The source as the host sees it: settings in, codecs and answers out.

use std::{
    rc::Rc,
    time::{SystemTime, UNIX_EPOCH},
};

use portway_sdk::{
    Attributes, Codec, Context, Failure, FinishReason, Receipt, Step, StreamReply, StreamSource,
};

use crate::{FrameCodec, Settings, answer::Answers};

/// One interface's MLLP source.
#[derive(Debug)]
pub struct MllpSource {
    settings: Rc<Settings>,
    answers: Answers,
}

impl StreamSource for MllpSource {
    type Settings = Settings;
    type Codec = FrameCodec;

    fn open(settings: Settings, _context: &Context) -> Result<Self, Failure> {
        Ok(MllpSource { settings: Rc::new(settings), answers: Answers::default() })
    }

    fn accept(&mut self, _peer: &Attributes, first: u64) -> Result<FrameCodec, Failure> {
        Ok(FrameCodec::new(Rc::clone(&self.settings), first))
    }

    fn settle(&mut self, receipts: Vec<Receipt>) -> Result<StreamReply, Failure> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.answers.settle(&receipts, u64::try_from(now.as_millis()).unwrap_or(0))
    }
}

impl Codec for FrameCodec {
    fn receive(&mut self, chunk: &[u8]) -> Result<Step, Failure> {
        Ok(self.cut(chunk))
    }

    fn finish(&mut self, reason: FinishReason) -> Result<Step, Failure> {
        Ok(self.end(&reason))
    }
}
