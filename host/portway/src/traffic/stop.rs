//! A way to ask a long-running part to end in order.

use tokio::sync::watch;

/// Held by who may end it. Dropped without a word, nothing is asked.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Held by who is to end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stopper {
    pub fn new() -> (Stopper, Stop) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Stop(receiver))
    }

    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Ready once it was asked; never, if nobody can ask any more.
    pub async fn asked(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
